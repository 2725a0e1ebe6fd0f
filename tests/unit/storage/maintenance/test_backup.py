"""A backup holds a whole state, and nothing that is damaged is taken for one."""

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from paddock.log.file.disk import Disk
from paddock.log.interface import LogError
from paddock.state.machine import StateMachine
from paddock.storage.epoch import begin_epoch
from paddock.storage.load import Loaded, load
from paddock.storage.maintenance.archive import unpack
from paddock.storage.maintenance.backup import (
    BackupError,
    Manifest,
    StreamedBackup,
    read_backup,
    write_backup,
)
from paddock.storage.maintenance.check import check
from paddock.storage.maintenance.history_backup import history_files
from paddock.storage.state_swap import write_state
from tests.unit.log.folders import SESSION, FolderBuilder, names, paths

TIME_MS = 1_700_000_000_000


@pytest.fixture
def loaded(tmp_path: Path) -> Loaded:
    folder = tmp_path / "data"
    with FolderBuilder(folder) as builder:
        builder.create(*names(4))
        builder.snapshot()
        builder.create(*names(3, 4))
    return load(folder)


def written(loaded: Loaded, near: Path, *, compress: bool = False) -> tuple[bytes, Manifest]:
    file = io.BytesIO()
    manifest = write_backup(
        file, loaded, compress=compress, version="1.2.3", time_ms=TIME_MS, near=near
    )
    return file.getvalue(), manifest


def streamed(loaded: Loaded, near: Path) -> StreamedBackup:
    """A backup that is made while it is sent, of the same state."""
    machine = loaded.machine
    snapshot = write_state(near, machine, loaded.index, Disk()).read_bytes()
    manifest = Manifest(
        backup=1,
        paddock="1.2.3",
        time_ms=TIME_MS,
        index=loaded.index,
        zxid=machine.zxid,
        nodes=len(machine.tree),
        sessions=len(machine.sessions.by_id),
        digest=machine.digest(),
        sha256={},
    )
    return StreamedBackup(io.BytesIO(snapshot), len(snapshot), manifest)


def test_a_backup_that_is_made_while_it_is_sent_holds_the_same(
    loaded: Loaded, tmp_path: Path
) -> None:
    backup = streamed(loaded, tmp_path)
    data = b"".join(backup.pieces())
    assert len(data) == backup.size
    again, manifest = read_backup(io.BytesIO(data), "b.tar")
    assert again.machine.digest() == loaded.machine.digest()
    before, said = written(loaded, tmp_path)
    assert (manifest.index, manifest.zxid, manifest.nodes) == (said.index, said.zxid, said.nodes)
    with (
        tarfile.open(fileobj=io.BytesIO(data)) as one,
        tarfile.open(fileobj=io.BytesIO(before)) as other,
    ):
        assert one.getnames() == other.getnames()


def test_a_backup_that_is_sent_in_part_is_no_whole_one(loaded: Loaded, tmp_path: Path) -> None:
    pieces = list(streamed(loaded, tmp_path).pieces())
    for count in range(1, len(pieces) - 1):
        assert refusal(b"".join(pieces[:count]))


def refusal(data: bytes) -> str:
    with pytest.raises(BackupError) as raised:
        read_backup(io.BytesIO(data), "b.tar")
    text = str(raised.value)
    assert text.startswith("b.tar: ")
    assert "\n" not in text
    return text


def repacked(data: bytes, **changes: bytes | None) -> bytes:
    """Pack a backup again with files added, replaced, or taken out."""
    files = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            content = archive.extractfile(member)
            assert content is not None
            files[member.name] = content.read()
    manifest = files.pop("manifest.json")
    replaced = {**files, "manifest.json": manifest, **changes}
    result = io.BytesIO()
    with tarfile.open(fileobj=result, mode="w") as archive:
        for name, text in replaced.items():
            if text is not None:
                member = tarfile.TarInfo(name)
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text))
    return result.getvalue()


@pytest.mark.parametrize("compress", [False, True])
def test_what_is_written_is_read_back(loaded: Loaded, tmp_path: Path, compress: bool) -> None:
    data, manifest = written(loaded, tmp_path, compress=compress)
    assert data.startswith(b"\x1f\x8b") == compress
    again, said = read_backup(io.BytesIO(data), "b.tar")
    assert said == manifest
    assert (said.index, said.zxid, said.time_ms) == (8, 8, TIME_MS)
    assert paths(again.machine) == set(names(7))
    assert again.machine.digest() == loaded.machine.digest()
    assert again.machine.sessions.by_id[SESSION].password
    assert again.machine.sessions.last_id == SESSION
    # Nothing is left of the snapshot that was made on the way.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


def test_a_backup_that_is_unpacked_by_hand_is_a_data_folder(loaded: Loaded, tmp_path: Path) -> None:
    data, _ = written(loaded, tmp_path)
    folder = tmp_path / "by hand"
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        unpack(archive, folder)
    report = check(folder)
    assert not report.findings
    assert paths(load(folder).machine) == set(names(7))


@pytest.mark.parametrize("compress", [False, True])
def test_a_backup_cut_anywhere_is_refused(loaded: Loaded, tmp_path: Path, compress: bool) -> None:
    data, manifest = written(loaded, tmp_path, compress=compress)
    refused = 0
    for length in range(0, len(data), 1 if compress else 97):
        try:
            _, said = read_backup(io.BytesIO(data[:length]), "b.tar")
        except BackupError:
            refused += 1
            continue
        # Behind the manifest there is nothing that anybody needs.
        assert said == manifest
    assert refused > 20


def test_a_flipped_byte_of_any_file_in_it_is_refused(loaded: Loaded, tmp_path: Path) -> None:
    data, _ = written(loaded, tmp_path)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        members = [(member.name, member.offset_data, member.size) for member in archive]
    for name, offset, size in members:
        for at in range(offset, offset + size, 5):
            damaged = bytearray(data)
            damaged[at] ^= 0x01
            try:
                _, manifest = read_backup(io.BytesIO(bytes(damaged)), "b.tar")
            except BackupError:
                continue
            # Only what the manifest tells people and nothing depends on.
            assert name == "manifest.json"
            assert (manifest.index, manifest.zxid) == (8, 8)


def test_what_is_no_backup_is_refused(loaded: Loaded, tmp_path: Path) -> None:
    data, manifest = written(loaded, tmp_path)
    refusal(b"")
    refusal(b"x" * 5000)
    assert "its end is missing" in refusal(repacked(data, **{"manifest.json": None}))
    assert "'evil', which does not belong" in refusal(repacked(data, evil=b"x"))
    assert "layout" in refusal(repacked(data, format=b"paddock 2\n"))
    unknown = json.dumps({"backup": 2}).encode()
    assert "not one that this version knows" in refusal(
        repacked(data, **{"manifest.json": unknown})
    )
    assert "recursion" in refusal(repacked(data, **{"manifest.json": b"[" * 100_000}))
    (name,) = (name for name in manifest.sha256 if name.startswith("snapshots/"))
    assert "its end is missing" in refusal(repacked(data, **{name: None}))


def test_a_manifest_that_says_something_else_is_refused(loaded: Loaded, tmp_path: Path) -> None:
    data, manifest = written(loaded, tmp_path)
    values = {
        "backup": 1,
        "paddock": "1.2.3",
        "time_ms": TIME_MS,
        "index": manifest.index,
        "zxid": manifest.zxid,
        "nodes": manifest.nodes,
        "sessions": manifest.sessions,
        "digest": manifest.digest,
        "sha256": manifest.sha256,
    }
    for key, value in (
        ("index", 7),
        ("zxid", 9),
        ("nodes", 1),
        ("sessions", 5),
        ("digest", 5),
        ("sha256", {**manifest.sha256, "format": hashlib.sha256(b"").hexdigest()}),
    ):
        text = json.dumps({**values, key: value}).encode()
        assert "its manifest says" in refusal(repacked(data, **{"manifest.json": text}))
    for time_ms in (-1, 1 << 60, 1.5, "now", None, True):
        text = json.dumps({**values, "time_ms": time_ms}).encode()
        assert "when it was made" in refusal(repacked(data, **{"manifest.json": text}))
    assert read_backup(
        io.BytesIO(repacked(data, **{"manifest.json": json.dumps(values).encode()})), "b.tar"
    )


@pytest.mark.parametrize(("zxid", "session"), [((1 << 63) - 1, 5), (5, (1 << 63) - 1)])
def test_a_state_without_an_epoch_above_it_is_refused(zxid: int, session: int) -> None:
    machine = StateMachine()
    machine.zxid, machine.sessions.last_id = zxid, session
    with pytest.raises(LogError, match="at their end"):
        begin_epoch(machine)


@pytest.mark.parametrize("seen", [0, 5, 100, (1 << 32) + 5, (7 << 32) + 1])
def test_a_new_epoch_is_above_everything_that_was_seen(seen: int) -> None:
    machine = StateMachine()
    machine.zxid = 50
    machine.sessions.last_id = 1000
    begin_epoch(machine, seen, 2000)
    assert machine.zxid > max(50, seen)
    assert machine.zxid & 0xFFFFFFFF == 0
    assert machine.zxid >> 32 == (max(50, seen) >> 32) + 1
    assert machine.sessions.last_id > 2000


def with_history(folder: Path, near: Path, index: int | None = None) -> bytes:
    loaded = load(folder, index)
    file = io.BytesIO()
    manifest = write_backup(
        file,
        loaded,
        compress=False,
        version="1.2.3",
        time_ms=TIME_MS,
        near=near,
        history=history_files(folder, loaded.index),
    )
    assert manifest.has_history
    return file.getvalue()


def test_a_backup_with_history_is_read_as_one_without(loaded: Loaded, tmp_path: Path) -> None:
    again, manifest = read_backup(io.BytesIO(with_history(tmp_path / "data", tmp_path)), "b.tar")
    assert again.machine.digest() == loaded.machine.digest()
    assert manifest.has_history
    assert not written(loaded, tmp_path)[1].has_history


def test_what_is_changed_in_the_history_is_noticed(loaded: Loaded, tmp_path: Path) -> None:
    data = with_history(tmp_path / "data", tmp_path)
    changes: list[dict[str, bytes | None]] = [
        {"history/format": b"changed"},
        {"history/log/00000000000000000001.log": None},
    ]
    for change in changes:
        assert "does not hold what its manifest says" in refusal(repacked(data, **change))
    assert "does not belong there" in refusal(repacked(data, **{"history/../evil": b""}))


def test_a_file_with_holes_does_not_belong_in_a_backup() -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        member = tarfile.TarInfo("format")
        member.type = tarfile.GNUTYPE_SPARSE
        archive.addfile(member)
    packed.seek(0)
    with pytest.raises(BackupError, match="'format', which does not belong there"):
        read_backup(packed, "backup")

"""Snapshots of every version: what is read of them, and that no damage goes unnoticed."""

import gzip
import os
import tracemalloc
from pathlib import Path

import pytest

from paddock.protocol.acl import ACL, OPEN, Identity
from paddock.upgrade import stream
from paddock.upgrade.snapshot_file import SnapshotFile, read_snapshot
from paddock.upgrade.state import NOT_YET_KNOWN
from paddock.upgrade.stream import DamagedFileError, UpgradeError
from tests.unit.upgrade import files
from tests.unit.upgrade.files import Node

ZXID = 0x30
NODES = {
    "/app": Node(b"x", 2, 10, 11, 12, 13, 14, 15, 16, 0, 17),
    "/app/null": Node(None),
    "/app/mine": Node(owner=files.SESSION),
    "/app/ünï": Node(b"\0\xff"),
    "/box": Node(owner=files.CONTAINER),
}
ENDS = {
    "3.4": (None, None),
    "3.6": ((ZXID, -99), None),
    "3.9": ((ZXID, -99), ZXID),
    "3.9 without digests": (None, ZXID),
}


def contents(version: str = "3.9") -> bytes:
    digest, last_zxid = ENDS[version]
    sessions = {files.SESSION: 4_000, 5: 6_000}
    return files.snapshot(NODES, sessions, {2: files.ALICE}, digest, last_zxid)


def read(folder: Path, data: bytes, suffix: str = "") -> SnapshotFile:
    path = folder / f"snapshot.{ZXID:x}{suffix}"
    path.write_bytes(data)
    return read_snapshot(path, ZXID)


@pytest.mark.parametrize("version", ENDS)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_snapshot_is_read_whole(tmp_path: Path, version: str, suffix: str) -> None:
    data = contents(version)
    found = read(tmp_path, gzip.compress(data) if suffix else data, suffix)
    state = found.state
    assert (state.zxid, found.reaches_zxid) == (ZXID, ZXID)
    assert state.digest == (-99 if ENDS[version][0] else None)
    assert state.sessions == {files.SESSION: 4_000, 5: 6_000}
    assert state.last_session == files.SESSION
    assert state.ephemerals == {files.SESSION: {b"/app/mine": None}}
    app = state.nodes[b"/app"]
    assert (app.data, app.czxid, app.mzxid, app.ctime, app.mtime) == (b"x", 10, 11, 12, 13)
    assert (app.version, app.created, app.aversion, app.owner, app.pzxid) == (14, 15, 16, 0, 17)
    assert app.acl.entries == (
        ACL(31, Identity("digest", "alice:hash")),
        ACL(1, Identity("sasl", "bob")),
    )
    assert set(app.child_names()) == {b"null", b"mine", "ünï".encode()}
    assert state.nodes[b"/app/null"].data is None
    assert state.nodes[b"/app/mine"].data == b""
    assert state.nodes[b"/box"].owner == files.CONTAINER
    root = state.nodes[b"/"]
    assert root is state.nodes[b""]
    assert root.acl.entries == OPEN
    assert set(root.child_names()) == {b"zookeeper", b"app", b"box"}


def test_a_snapshot_says_how_far_the_server_had_come_when_it_was_written(tmp_path: Path) -> None:
    found = read(tmp_path, files.snapshot(digest=(ZXID + 3, 1)))
    # The digest is of a later state than the snapshot surely has.
    assert (found.state.zxid, found.reaches_zxid, found.state.digest) == (ZXID, ZXID + 3, None)
    found = read(tmp_path, files.snapshot(digest=(ZXID, 1), last_zxid=ZXID + 5))
    assert found.reaches_zxid == ZXID + 5
    # A new leader's snapshot may have a later name than any transaction.
    found = read(tmp_path, files.snapshot(digest=(ZXID - 3, 1)))
    assert (found.reaches_zxid, found.state.digest) == (ZXID, None)


def test_an_acl_that_came_while_it_was_written_is_not_known_yet(tmp_path: Path) -> None:
    found = read(tmp_path, files.snapshot({"/a": Node(acl=77)}))
    assert found.state.nodes[b"/a"].acl is NOT_YET_KNOWN


@pytest.mark.parametrize("version", ENDS)
def test_a_byte_that_is_wrong_anywhere_is_noticed(tmp_path: Path, version: str) -> None:
    data = contents(version)
    path = tmp_path / "snapshot.30"
    path.write_bytes(data)
    with path.open("r+b", buffering=0) as file:
        for offset, byte in enumerate(data):
            for flip in (1, 0x80):
                os.pwrite(file.fileno(), bytes([byte ^ flip]), offset)
                with pytest.raises(DamagedFileError):
                    read_snapshot(path, ZXID)
            os.pwrite(file.fileno(), bytes([byte]), offset)
    assert len(read_snapshot(path, ZXID).state.nodes) == 10


def test_a_snapshot_that_is_cut_anywhere_is_damaged_or_an_older_one(tmp_path: Path) -> None:
    data = contents("3.9")
    older = {len(contents("3.4")), len(contents("3.6"))}
    path = tmp_path / "snapshot.30"
    path.write_bytes(data)
    for cut in reversed(range(len(data))):
        os.truncate(path, cut)
        if cut in older:
            assert len(read_snapshot(path, ZXID).state.nodes) == 10
        else:
            with pytest.raises(DamagedFileError):
                read_snapshot(path, ZXID)


def test_a_compressed_snapshot_that_is_cut_anywhere_is_damaged(tmp_path: Path) -> None:
    data = gzip.compress(contents())
    for cut in range(len(data)):
        with pytest.raises(DamagedFileError):
            read(tmp_path, data[:cut], ".gz")


@pytest.mark.parametrize("suffix", [".gz", ".snappy"])
def test_something_else_under_the_name_of_a_compressed_one_is_damaged(
    tmp_path: Path, suffix: str
) -> None:
    with pytest.raises(DamagedFileError, match=r"offset 0: it cannot be decompressed: "):
        read(tmp_path, contents(), suffix)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"ZKLG" + bytes(60), "offset 4: this is not how a snapshot begins"),
        (files.Snapshot({}).encode(), "it has no root"),
        (files.Snapshot({"/a": Node()}).encode(), "there is nothing above b'/a'"),
        (files.Snapshot({"": Node(), "/a/b": Node()}).encode(), "there is nothing above b'/a/b'"),
        (files.Snapshot({"": Node(), "a": Node()}).encode(), "a node that cannot be: b'a'"),
        (files.Snapshot({"": Node(), "/a\0": Node()}).encode(), "a node that cannot be"),
        (contents("3.9") + b"x", "there is something behind the end"),
    ],
)
def test_what_cannot_be_a_snapshot_is_refused_though_its_checksum_fits(
    tmp_path: Path, data: bytes, reason: str
) -> None:
    with pytest.raises(DamagedFileError) as caught:
        read(tmp_path, data)
    assert reason in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path}/snapshot.30: offset ")


@pytest.mark.parametrize("length", [-2, -(2**31), 2**31 - 1, 200 << 20])
def test_a_length_that_lies_takes_no_memory(tmp_path: Path, length: int) -> None:
    head = b"ZKSN" + bytes(12) + files.integer(0) + files.integer(0)
    for data in (
        head + files.integer(length) + b"/a",
        head + files.string("") + files.integer(length) + b"data",
        b"ZKSN" + bytes(12) + files.integer(length) + bytes(100),
        b"ZKSN" + bytes(12) + files.integer(0) + files.integer(length) + bytes(100),
    ):
        tracemalloc.start()
        with pytest.raises(DamagedFileError):
            read(tmp_path, data)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 4 << 20


def test_a_value_larger_than_any_that_apache_reads_back_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compressed file may hold a thousand times its size."""
    monkeypatch.setattr(stream, "VALUE_BYTES_MAX", 1_000)
    assert read(tmp_path, files.snapshot({"/a": Node(bytes(1_000))})).state.nodes[b"/a"].data
    with pytest.raises(DamagedFileError, match="a value of 1001 bytes"):
        read(tmp_path, gzip.compress(files.snapshot({"/a": Node(bytes(1_001))})), ".gz")


def test_a_snapshot_larger_than_what_is_read_at_once_is_whole(tmp_path: Path) -> None:
    nodes = {f"/n{number}": Node(os.urandom(300_000)) for number in range(10)}
    found = read(tmp_path, files.snapshot(nodes))
    assert all(found.state.nodes[path.encode()].data == node.data for path, node in nodes.items())


def test_a_file_that_cannot_be_read_is_not_passed_over(tmp_path: Path) -> None:
    with pytest.raises(UpgradeError, match="cannot be read: No such file") as caught:
        read_snapshot(tmp_path / "snapshot.1", 1)
    assert not isinstance(caught.value, DamagedFileError)

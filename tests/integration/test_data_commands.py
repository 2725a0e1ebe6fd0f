"""`paddock fsck`, `backup` and `restore` as their users meet them, with and without a server."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.log.file.disk import Disk
from paddock.log.file.segment import RECORD_HEADER_BYTES, SegmentReader
from paddock.server.admin.control_socket import RefusedError, ask
from paddock.storage.data_directory import DataDirectory
from paddock.storage.maintenance.archive import unpack
from paddock.storage.maintenance.check import check
from paddock.storage.snapshots import SnapshotWriter, snapshot_name
from tests.fault.stage.process import FaultServer, read_tree
from tests.support import requests as rq
from tests.support import wire
from tests.support.command import paddock, refusal, success
from tests.support.disks import unwritable
from tests.support.kazoo_clients import KazooClients, watch_states
from tests.support.records import Code, Mode
from tests.unit.log.folders import FolderBuilder, contents, names
from tests.unit.log.helpers import flip, segments


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder that no server uses."""
    with FolderBuilder(tmp_path / "data") as builder:
        builder.create(*names(8))
    return tmp_path / "data"


def damage_middle(folder: Path) -> tuple[Path, int]:
    """Damage a record in the middle; return its file and where it begins."""
    path = segments(folder / "log")[1]
    reader = SegmentReader(path.read_bytes())
    offset = next(reader.last_offset for _ in reader)
    flip(path, offset + RECORD_HEADER_BYTES + 3)
    return path, offset


# fsck


def test_fsck_says_what_it_has_checked(data: Path) -> None:
    before = contents(data)
    said = success("fsck", data)
    assert said.splitlines()[0] == f"data folder {data}"
    assert "9 whole records, 1 to 9" in said
    assert "record 9, zxid 0x9" in said
    assert "9 digests compared" in said
    assert said.endswith("\nfine\n")
    assert contents(data) == before


def test_fsck_of_a_damaged_folder_has_status_1_and_names_file_byte_and_way_on(data: Path) -> None:
    path, offset = damage_middle(data)
    result = paddock("fsck", data)
    said = result.stdout.decode()
    assert (result.returncode, result.stderr) == (1, b"")
    assert f"damage: {path}, byte {offset}: record {int(path.stem)} is damaged" in said
    assert "what to do: " in said
    assert said.endswith("\ndamaged\n")


def test_fsck_for_programs_is_json(data: Path) -> None:
    found = json.loads(success("fsck", "--json", data))
    assert found["damaged"] is False
    assert found["state"]["index"] == 9
    assert found["findings"] == []
    path, offset = damage_middle(data)
    result = paddock("fsck", "--json", data)
    assert result.returncode == 1
    found = json.loads(result.stdout)
    assert found["damaged"] is True
    (finding,) = found["findings"]
    assert (finding["file"], finding["offset"]) == (str(path), offset)


def test_fsck_writes_a_repaired_copy_on_which_a_server_starts(data: Path, tmp_path: Path) -> None:
    path, _ = damage_middle(data)
    before = contents(data)
    (tmp_path / "server").mkdir()
    server = FaultServer(tmp_path / "server")
    result = paddock("fsck", data, "--repair", server.data)
    said = result.stdout.decode()
    assert result.returncode == 1
    last = int(path.stem) - 1
    assert f"everything after record {last} and zxid 0x{last:x}" in said
    assert contents(data) == before
    with server:
        # A client that has seen what is lost can connect.
        with wire.connect(server.address, last_zxid=9) as client:
            assert client.session_id
            assert set(read_tree(client)) == set(names(last - 1))
    assert success("fsck", server.data).endswith("\nfine\n")


def test_fsck_writes_a_copy_of_what_came_before_a_record(data: Path, tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    server = FaultServer(tmp_path / "server")
    before = contents(data)
    said = success("fsck", data, "--repair", server.data, "--before", "6")
    assert contents(data) == before
    assert "\n4 whole records behind record 5 left out\nfine\n" in said
    assert "everything after record 5 and zxid 0x5: records 6 to 9; 4 of them are whole" in said
    assert "at zxid 0x100000000, a new epoch" in said
    with server, wire.connect(server.address, last_zxid=9) as client:
        assert set(read_tree(client)) == set(names(4))


def test_fsck_before_a_record_for_programs(data: Path, tmp_path: Path) -> None:
    arguments = ("fsck", "--json", data, "--repair", tmp_path / "copy", "--before", "6")
    found = json.loads(success(*arguments))
    assert (found["damaged"], found["loses"], found["left_out_records"]) == (False, True, 4)
    assert found["repaired"]["saved"]["index"] == 5


def test_a_record_that_cannot_be_left_out_is_refused(data: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    assert "--before needs --repair" in refusal("fsck", data, "--before", "6", status=2)
    for record in ("1", "0", "-3", "six"):
        refusal("fsck", data, "--repair", copy, "--before", record, status=2)
    line = refusal("fsck", data, "--repair", copy, "--before", "10", status=1)
    assert line == f"{data}: the last record is 9, so nothing is left out before record 10"
    assert not copy.exists()


def test_fsck_of_a_folder_in_use_says_so(tmp_path: Path) -> None:
    with FaultServer(tmp_path) as server:
        with wire.connect(server.address) as client:
            client.calls(*(rq.create(path) for path in names(20)))
            said = success("fsck", server.data)
            assert f"in use     by process {server.pid}" in said
            assert "in use by a server" in refusal(
                "fsck", server.data, "--repair", tmp_path / "copy", status=1
            )
            assert client.call(rq.exists("/n0")).err == Code.OK


# backup and restore, offline


@pytest.mark.parametrize("name", ["b.tar", "b.tar.gz", "b.tgz"])
def test_a_backup_is_one_file_for_its_owner_only(data: Path, tmp_path: Path, name: str) -> None:
    file = tmp_path / "backups" / name
    file.parent.mkdir()
    before = contents(data)
    assert success("backup", data, file).startswith(f"{file}: record 9, zxid 0x9, ")
    assert contents(data) == before
    assert [path.name for path in file.parent.iterdir()] == [name]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_bytes().startswith(b"\x1f\x8b") == name.endswith("gz")
    with tarfile.open(file) as archive:
        assert archive.getnames()[-1] == "manifest.json"


def test_a_folder_that_nobody_has_written_to_is_backed_up_and_restored(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    with FaultServer(tmp_path / "new") as other:
        other.stop()
        DataDirectory(tmp_path / "data").close()
        success("backup", tmp_path / "data", tmp_path / "b.tar")
        success("restore", tmp_path / "b.tar", other.data, "--replace")
        for _ in range(2):
            other.start()
            with wire.connect(other.address) as client:
                client.call(rq.create("/a"))
                assert set(read_tree(client)) == {"/a"}
            other.stop()


def test_a_backup_goes_through_pipes(data: Path, tmp_path: Path) -> None:
    result = paddock("backup", data, "-", "--gzip")
    assert result.returncode == 0
    assert result.stderr.startswith(b"stdout: record 9")
    restored = paddock("restore", "-", tmp_path / "new", input=result.stdout)
    assert restored.returncode == 0, restored.stderr
    assert "record 9" in success("fsck", tmp_path / "new")


def test_a_backup_has_history_if_asked_and_a_restore_leaves_it_there(
    data: Path, tmp_path: Path
) -> None:
    file = tmp_path / "b.tar"
    assert success("backup", data, file, "--history").endswith(", and history\n")
    said = success("restore", file, tmp_path / "new")
    assert "\nthe history in the backup is not restored: it can be read there\n" in said
    with tarfile.open(file) as archive:
        unpack(archive, tmp_path / "unpacked")
    past = check(tmp_path / "unpacked" / "history")
    assert past.history == check(data).history
    assert (past.history is None, past.findings) == (False, [])
    line = refusal("backup", data, file, "--history-from", data, status=2)
    assert line.endswith("--history-from is for a log; of a folder, take --history")


def test_a_backup_of_damaged_data_is_refused_and_leaves_no_file(data: Path, tmp_path: Path) -> None:
    path, offset = damage_middle(data)
    line = refusal("backup", data, tmp_path / "b.tar", status=1)
    assert line.startswith(f"{path}: offset {offset}: ")
    assert "paddock fsck" in line
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_restored_folder_begins_a_new_epoch_and_its_nodes_are_as_they_were(
    tmp_path: Path,
) -> None:
    (tmp_path / "new").mkdir()
    file = tmp_path / "b.tar"
    with FaultServer(tmp_path) as server:
        with wire.connect(server.address) as client:
            client.calls(*(rq.create(path, path.encode()) for path in names(5)))
            client.call(rq.create("/e", flags=Mode.EPHEMERAL))
            tree = read_tree(client)
            zxid = client.call(rq.exists("/")).zxid
            server.kill()
        success("backup", server.data, file)
        other = FaultServer(tmp_path / "new")
        said = success("restore", file, other.data)
        assert "it goes on at zxid 0x100000000" in said
        assert "replaced" not in said
        with other, wire.reattach(other.address, client, zxid) as again:
            # The session of the backup is there, with its node.
            assert again.session_id == client.session_id
            assert read_tree(again) == tree
            assert again.call(rq.set_data("/n1", b"x")).zxid > 1 << 32


def test_what_became_of_a_restore_is_a_line_of_json(data: Path, tmp_path: Path) -> None:
    file, new = tmp_path / "b.tar", tmp_path / "new"
    success("backup", data, file)
    told = json.loads(success("restore", "--json", file, new))
    assert told.pop("time_ms") > 0
    assert told == {
        "zxid": 1 << 32,
        "nodes": 12,
        "sessions": 1,
        "has_history": False,
        "aside": None,
    }
    told = json.loads(success("restore", "--json", "--replace", file, new))
    assert told["aside"] == str(*new.glob("replaced-*"))
    # A folder is at fault, then what was read.
    refused = paddock("restore", "--json", file, new)
    assert json.loads(refused.stdout)["is_backup"] is True
    assert refused.returncode == 1
    refused = paddock("restore", "--json", "-", tmp_path / "other", input=b"stdin: is none")
    assert json.loads(refused.stdout)["error"].startswith("is not a whole backup: ")
    assert json.loads(refused.stdout)["is_backup"] is False
    assert refused.returncode == 1


def test_what_was_there_is_moved_aside_and_stays_whole(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "b.tar"
    success("backup", data, file)
    (data / "mine").write_text("mine")
    assert "--replace" in refusal("restore", file, data, status=1)
    said = success("restore", file, data, "--replace")
    (aside,) = data.glob("replaced-*")
    assert said.splitlines()[1] == f"what was there before is in {aside}"
    assert "record 9, zxid 0x9" in success("fsck", aside)
    assert "record 9, zxid 0x100000000" in success("fsck", data)
    assert (data / "mine").read_text() == "mine"
    # Above the epoch of what is replaced, not only of the backup.
    success("restore", file, data, "--replace")
    assert "record 9, zxid 0x200000000" in success("fsck", data)


def test_a_configuration_and_a_pid_file_beside_the_data_change_nothing(
    data: Path, tmp_path: Path
) -> None:
    file, new = tmp_path / "b.tar", tmp_path / "new"
    new.mkdir()
    for folder in (data, new):
        (folder / "zoo.cfg").write_text("clientPort=1")
        (folder / "zookeeper_server.pid").write_text("1")
    assert success("fsck", data).endswith("\nfine\n")
    success("backup", data, file)
    success("restore", file, new)
    assert success("fsck", new).endswith("\nfine\n")
    success("restore", file, data, "--replace")
    for folder in (data, new):
        assert (folder / "zoo.cfg").read_text() == "clientPort=1"
        assert (folder / "zookeeper_server.pid").read_text() == "1"


def test_damaged_data_is_replaced_too(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "b.tar"
    success("backup", data, file)
    damage_middle(data)
    (data / "format").unlink()
    success("restore", file, data, "--replace")
    assert success("fsck", data).endswith("\nfine\n")


def test_a_damaged_backup_touches_nothing(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "b.tar"
    success("backup", data, file)
    flip(file, 1024 + 300)
    before = contents(data)
    assert "damaged" in refusal("restore", file, data, "--replace", status=1)
    assert contents(data) == before
    assert "damaged" in refusal("restore", file, tmp_path / "new", status=1)
    assert not (tmp_path / "new").exists()


def test_a_backup_is_not_overwritten_unless_asked(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "b.tar"
    file.write_text("old")
    assert "--overwrite" in refusal("backup", data, file, status=1)
    assert file.read_text() == "old"
    success("backup", data, file, "--overwrite")
    assert tarfile.is_tarfile(file)


def test_a_backup_that_cannot_be_written_is_named_as_it_was_given(
    data: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "closed"
    folder.mkdir()
    with unwritable(folder):
        line = refusal("backup", data, folder / "b.tar", status=1)
    assert f"{folder / 'b.tar'}: cannot be written: " in line


@pytest.mark.parametrize(
    ("arguments", "status", "named"),
    [
        (["fsck"], 2, "DATA"),
        (["fsck", "missing"], 2, "missing: there is no such folder"),
        (["fsck", "file"], 2, "file: is not a folder"),
        (["fsck", "empty"], 1, "empty: holds no data of Paddock"),
        (["fsck", "data", "--repair", "full"], 1, "full: exists already"),
        (["fsck", "data", "--repair", "file"], 1, "file: exists already"),
        (["fsck", "data", "--repair", "data/copy"], 1, "lies in"),
        (["fsck", "data", "--nothing"], 2, "--nothing"),
        (["backup", "data"], 2, "FILE"),
        (["backup", "missing", "b.tar"], 2, "missing: there is no such folder"),
        (["backup", "empty", "b.tar"], 1, "empty: holds no data of Paddock"),
        (["backup", "data", "file"], 1, "file: exists already"),
        (["backup", "data", "empty", "--overwrite"], 1, "empty: is not a file"),
        (["backup", "data", "pipe", "--overwrite"], 1, "pipe: is not a file"),
        (["backup", "data", "data/format", "--overwrite"], 1, "data/format: lies in data"),
        (["backup", "data", "data/log/b.tar"], 1, "data/log/b.tar: lies in data"),
        (["backup", "data", "nowhere/b.tar"], 1, "there is no folder"),
        (["restore", "missing.tar", "new"], 1, "missing.tar: No such file"),
        (["restore", "file", "new"], 1, "file: is not a whole backup"),
        (["restore", "empty", "new"], 1, "empty: Is a directory"),
        (["restore", "good.tar", "file"], 2, "file: is not a folder"),
        (["restore", "good.tar", "full"], 1, "full: is not empty"),
        (["restore", "good.tar", "data"], 1, "data: is not empty"),
        (["restore", "good.tar", "full", "--replace"], 1, "full: holds something else"),
        (["restore", "good.tar", "other", "--replace"], 1, "other: holds something else"),
        (["restore", "good.tar", "file/new"], 1, "Not a directory"),
        (["restore", "good.tar"], 2, "DATA"),
    ],
)
def test_a_mistake_is_one_line(
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    status: int,
    named: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "other" / "log").mkdir(parents=True)
    (tmp_path / "other" / "log" / "access.log").touch()
    if "good.tar" in arguments:
        success("backup", data, "good.tar")
    before = contents(tmp_path)
    assert named in refusal(*arguments, status=status)
    assert not (tmp_path / "new").exists()
    assert contents(tmp_path) == before


def test_a_folder_that_cannot_be_written_is_one_line(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "b.tar"
    success("backup", data, file)
    target = tmp_path / "target"
    target.mkdir()
    with unwritable(target):
        assert str(target) in refusal("restore", file, target, status=1)
        assert str(target) in refusal("restore", file, target / "new", status=1)
        assert str(target) in refusal("backup", data, target / "b.tar", status=1)
        assert str(target) in refusal("fsck", data, "--repair", target / "copy", status=1)
    assert list(target.iterdir()) == []


def test_a_folder_that_must_not_be_looked_into_is_one_line(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "b.tar"
    success("backup", data, file)
    before = contents(tmp_path)
    data.chmod(0)
    # Root may look into everything, unless that is taken away from it.
    powerless = ["setpriv", "--bounding-set=-all"] if os.geteuid() == 0 else []
    if powerless and shutil.which("setpriv") is None:
        pytest.skip("there is no setpriv")
    for arguments in (
        ["fsck", data],
        ["fsck", data / "inside"],
        ["backup", data, tmp_path / "new.tar"],
        ["restore", file, data],
        ["restore", file, data, "--replace"],
        ["restore", file, data / "inside", "--replace"],
    ):
        result = subprocess.run(
            [*powerless, sys.executable, "-m", "paddock", *map(str, arguments)], capture_output=True
        )
        assert result.returncode in (1, 2), result
        assert result.stderr.count(b"\n") == 1, result
        assert re.search(b"Permission denied|not readable", result.stderr), result
    data.chmod(0o700)
    assert contents(tmp_path) == before


@pytest.fixture
def theirs(data: Path) -> Iterator[Path]:
    """A data folder of another user, which every user can reach."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name) / "home"
        Path(name).chmod(0o755)
        shutil.copytree(data, home / "data")
        for path in [home, *home.rglob("*")]:
            os.chown(path, 12345, 12345)
        yield home / "data"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
@pytest.mark.parametrize("is_apart", [False, True])
def test_what_root_restores_belongs_to_the_owner_of_the_folder(
    data: Path, theirs: Path, tmp_path: Path, is_apart: bool
) -> None:
    success("backup", data, tmp_path / "b.tar")
    if is_apart:
        (theirs / "log").rename(theirs.parent / "log")
        (theirs / "log").symlink_to("../log")
        os.chown(theirs / "log", 12345, 12345, follow_symlinks=False)
    (theirs / "lock").unlink()
    success("restore", tmp_path / "b.tar", theirs, "--replace")
    success("fsck", theirs)
    for path in theirs.parent.rglob("*"):
        assert path.lstat().st_uid == 12345, path
    for path in (theirs / "snapshots").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((theirs / "snapshots").stat().st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
@pytest.mark.parametrize(("link", "leads_to"), [("log", "precious"), ("lock", "precious/file")])
def test_root_follows_no_link_that_the_owner_of_the_folder_could_not(
    data: Path, theirs: Path, tmp_path: Path, link: str, leads_to: str
) -> None:
    success("backup", data, tmp_path / "b.tar")
    precious = theirs.parent.parent / "precious"
    precious.mkdir()
    (precious / "file").write_text("of root")
    before = contents(theirs.parent.parent)
    (theirs / link).rename(tmp_path / link)
    (theirs / link).symlink_to(f"../../{leads_to}")
    refusal("restore", tmp_path / "b.tar", theirs, "--replace", status=1)
    assert contents(precious) == {"file": b"of root"}
    assert (precious / "file").stat().st_uid == precious.stat().st_uid == 0
    (theirs / link).unlink()
    (tmp_path / link).rename(theirs / link)
    assert contents(theirs.parent.parent).keys() <= before.keys()


def test_a_data_folder_that_can_only_be_read_is_checked_and_backed_up(
    data: Path, tmp_path: Path
) -> None:
    with unwritable(data):
        assert success("fsck", data).endswith("\nfine\n")
        success("backup", data, tmp_path / "b.tar")


# while a server runs


def test_a_running_server_is_backed_up_and_restored_under_its_clients(tmp_path: Path) -> None:
    file = tmp_path / "b.tgz"
    with FaultServer(tmp_path) as server, KazooClients(server.address) as clients:
        client = clients.connect(timeout=30.0)
        for path in names(5):
            client.create(path, b"before")
        client.create("/mine", ephemeral=True)
        session = client.client_id
        assert success("backup", server.data, file).startswith(f"{file}: record ")
        # The server was asked for a fresh snapshot.
        assert len(server.snapshots) == 1
        zxid = client.set("/n1", b"after").mzxid
        client.create("/later")
        states = watch_states(client)
        said = success("restore", file, server.data, "--replace")
        aside = Path(said.splitlines()[1].partition(" is in ")[2])
        states.take_until(lambda state: state == "CONNECTED")
        # The session was in the backup, and goes on.
        assert client.client_id == session
        assert client.get("/n1")[0] == b"before"
        assert client.exists("/later") is None
        assert client.exists("/mine").ephemeralOwner == session[0]
        assert client.set("/n1", b"again").mzxid > zxid
        # The same process, and the old data is whole.
        assert server.alive
        assert "fine" in success("fsck", aside)
        assert "fine" in success("fsck", server.data)
    assert "Traceback" not in server.log_tail()


def test_a_session_that_the_backup_does_not_know_begins_anew(tmp_path: Path) -> None:
    file = tmp_path / "b.tar"
    with FaultServer(tmp_path) as server, KazooClients(server.address) as clients:
        with wire.connect(server.address) as first:
            first.call(rq.create("/kept"))
            first.close()
        success("backup", server.data, file)
        client = clients.connect(timeout=30.0)
        client.create("/later", ephemeral=True)
        session = client.client_id
        states = watch_states(client)
        success("restore", file, server.data, "--replace")
        states.take_until(lambda state: state == "LOST")
        states.take_until(lambda state: state == "CONNECTED")
        assert client.client_id[0] > session[0]
        assert client.get_children("/") == ["zookeeper", "kept"]


def test_a_server_that_cannot_serve_the_new_data_serves_the_old(tmp_path: Path) -> None:
    file = tmp_path / "b.tar"
    with FaultServer(tmp_path) as server:
        with wire.connect(server.address) as client:
            client.call(rq.create("/a", b"old"))
        success("backup", server.data, file)
        # Staged by another version, say: its checksums are right, and we do not understand it.
        staged = server.data / "restore-incoming-x"
        (staged / "snapshots").mkdir(parents=True)
        writer = SnapshotWriter(Disk(), staged / "snapshots" / snapshot_name(1), 1)
        writer.append(b"\x09nonsense")
        writer.commit()
        with pytest.raises(RefusedError, match="the old data is served again, since: "):
            ask(server.data, {"command": "restore", "staged": staged.name}, 60.0)
        with wire.reattach(server.address, client) as again:
            assert again.session_id == client.session_id
            assert again.call(rq.get_data("/a")).data == b"old"
            assert again.call(rq.create("/b")).err == Code.OK
        left = {path.name for path in server.data.iterdir()}
        assert left == {"control", "events", "format", "lock", "log", "snapshots"}
        for nonsense in ("snapshots", "../data", 5, None, ""):
            with pytest.raises(RefusedError, match="nothing is staged"):
                ask(server.data, {"command": "restore", "staged": nonsense}, 60.0)
        with pytest.raises(RefusedError, match="there is no command 'dance'"):
            ask(server.data, {"command": "dance"}, 60.0)
        assert server.stop() == 0


def test_a_data_folder_with_a_very_long_path_is_backed_up_while_a_server_runs(
    tmp_path: Path,
) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    with FaultServer(folder) as server:
        with wire.connect(server.address) as client:
            client.call(rq.create("/a"))
        success("backup", server.data, tmp_path / "b.tar")
        assert len(server.snapshots) == 1
        success("restore", tmp_path / "b.tar", server.data, "--replace")

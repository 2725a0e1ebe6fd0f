"""The data folder that is made: whole, as a server starts on it, or not there at all."""

import errno
import os
from pathlib import Path

import pytest

from paddock.log.file.disk import Disk
from paddock.log.file.file_log import FileLog
from paddock.log.interface import LogCorruptError
from paddock.state.machine import StateMachine
from paddock.storage.snapshots import SnapshotStore
from paddock.upgrade.source import read_service
from paddock.upgrade.stream import UpgradeError
from paddock.upgrade.target import check_target, write_data_folder
from tests.support.logs import Reports, recover_state
from tests.unit.upgrade import files
from tests.unit.upgrade.files import ApacheFolder, Node


@pytest.fixture
def machine(tmp_path: Path) -> StateMachine:
    apache = ApacheFolder(tmp_path / "apache")
    nodes = {f"/n{number}": Node(b"x" * number) for number in range(2_000)}
    apache.snapshot(0x77, files.snapshot({**nodes, "/mine": Node(owner=5)}, {5: 4_000}))
    machine, _ = read_service(apache.path, apache.path)
    return machine


def test_a_server_starts_with_the_state_and_goes_on(tmp_path: Path, machine: StateMachine) -> None:
    target = tmp_path / "deep" / "down" / "data"
    write_data_folder(machine, target)
    assert sorted(path.name for path in target.iterdir()) == ["format", "lock", "log", "snapshots"]
    log = FileLog(target / "log")
    recovered = recover_state(log, SnapshotStore(target / "snapshots"))
    assert recovered.machine.digest() == machine.digest()
    assert recovered.machine.zxid == 0x77
    assert recovered.machine.sessions.by_id[5].timeout_ms == 4_000
    assert recovered.machine.tree.ephemerals == {5: {b"/mine": None}}
    assert recovered.index == 1
    log.close()


def test_without_its_snapshot_a_folder_that_was_used_does_not_start(
    tmp_path: Path, machine: StateMachine
) -> None:
    target = tmp_path / "data"
    write_data_folder(machine, target)
    log = FileLog(target / "log")
    log.start(Reports(log, lambda *_: None), after=1)
    log.propose(0, b"a batch")
    log.close()
    (snapshot,) = (target / "snapshots").iterdir()
    snapshot.unlink()
    log = FileLog(target / "log")
    with pytest.raises(LogCorruptError):
        recover_state(log, SnapshotStore(target / "snapshots"))
    log.close()


def test_an_empty_folder_may_be_there_already(tmp_path: Path, machine: StateMachine) -> None:
    target = tmp_path / "data"
    target.mkdir()
    check_target(target)
    write_data_folder(machine, target)
    assert (target / "format").exists()


def test_a_link_to_an_empty_folder_stays_a_link(tmp_path: Path, machine: StateMachine) -> None:
    (tmp_path / "disk").mkdir()
    link = tmp_path / "data"
    link.symlink_to(tmp_path / "disk")
    check_target(link)
    write_data_folder(machine, link)
    assert link.is_symlink()
    assert (tmp_path / "disk" / "format").exists()


def test_a_place_that_is_taken_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "data"
    target.mkdir()
    (target / "something").write_bytes(b"")
    with pytest.raises(UpgradeError, match="is not an empty folder, and is left as it is"):
        check_target(target)
    with pytest.raises(UpgradeError, match="is not an empty folder"):
        check_target(target / "something")


def test_a_place_where_another_disk_begins_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It cannot be replaced by a folder that was made beside it.
    monkeypatch.setattr(os.path, "ismount", lambda path: path == tmp_path)
    with pytest.raises(UpgradeError, match="another disk begins here; name a folder below it"):
        check_target(tmp_path)
    check_target(tmp_path / "data")


def test_a_place_inside_the_folder_that_is_taken_over_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UpgradeError, match="is in the folder that is taken over"):
        check_target(tmp_path / "apache" / "new", tmp_path / "other", tmp_path / "apache")
    check_target(tmp_path / "apache-new", tmp_path / "other", tmp_path / "apache")


@pytest.mark.parametrize("step", ["create", "write", "sync", "rename", "sync_folder"])
def test_a_disk_that_refuses_leaves_nothing(
    tmp_path: Path, machine: StateMachine, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setattr(Disk, step, refuse)
    with pytest.raises(UpgradeError, match=r"home/data.*: No space left on device"):
        write_data_folder(machine, home / "data")
    assert list(home.iterdir()) == []


def test_an_interrupted_run_leaves_nothing(
    tmp_path: Path, machine: StateMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setattr(Disk, "sync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_data_folder(machine, home / "data")
    assert list(home.iterdir()) == []


def test_somebody_who_was_faster_keeps_the_place(tmp_path: Path, machine: StateMachine) -> None:
    target = tmp_path / "data"
    target.mkdir()
    (target / "theirs").write_bytes(b"")
    with pytest.raises(UpgradeError, match="cannot be written: Directory not empty"):
        write_data_folder(machine, target)
    assert [path.name for path in target.iterdir()] == ["theirs"]

"""The data folder: one server at a time, and only a layout that this version knows."""

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from paddock.log.file.disk import Disk
from paddock.log.file.segments import begin_log
from paddock.storage.data_directory import DataDirectory, DataDirectoryError, look_before_claim
from paddock.storage.layout import FolderInUseError
from paddock.storage.scan import user_of
from tests.support.disks import unwritable
from tests.unit.log.folders import contents

_HOLDER = """
import sys
from pathlib import Path
from paddock.storage.data_directory import DataDirectory
with DataDirectory(Path(sys.argv[1])):
    print("claimed", flush=True)
    sys.stdin.read()
"""


class _PowerCut(BaseException):
    """The end of the process, in the middle."""


def refusal(path: Path, log_directory: Path | None = None) -> str:
    with pytest.raises(DataDirectoryError) as raised:
        DataDirectory(path, log_directory)
    text = str(raised.value)
    assert text.startswith(f"data folder {path}: ")
    assert "\n" not in text
    return text.removeprefix(f"data folder {path}: ")


def test_new_folder_is_created_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "above" / "data"
    with DataDirectory(path) as directory:
        assert directory.log_path.is_dir()
        assert directory.snapshots_path.is_dir()
    assert path.stat().st_mode & 0o777 == 0o700
    assert sorted(entry.name for entry in path.iterdir()) == ["format", "lock", "log", "snapshots"]
    assert (path / "format").read_text() == "paddock 1\n"


def test_new_folders_are_synced_into_those_above_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a crash takes the folder away with everything that was synced in it."""
    synced: list[Path] = []
    monkeypatch.setattr(Disk, "sync_folder", lambda _, folder: synced.append(folder))
    DataDirectory(tmp_path / "a" / "data").close()
    assert {tmp_path, tmp_path / "a", tmp_path / "a" / "data"} <= set(synced)


def test_folder_can_be_claimed_again_after_it_is_closed(tmp_path: Path) -> None:
    for _ in range(2):
        with DataDirectory(tmp_path):
            pass


@pytest.mark.parametrize(
    "name",
    [
        *("lost+found", ".gitkeep", "myid", "initialize"),
        *("zoo.cfg", "zoo.cfg.dynamic.100000000", "zookeeper_server.pid", "paddock.pid"),
    ],
)
def test_folder_with_files_that_mean_nothing_is_used_and_they_stay(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text("1\n")
    with DataDirectory(tmp_path):
        pass
    assert (tmp_path / name).read_text() == "1\n"


def test_folder_with_other_files_is_refused_and_nothing_is_put_among_them(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    (tmp_path / "log").mkdir()
    said = "is neither empty nor a data folder of Paddock, since there is 'thesis.tex' in it"
    assert refusal(tmp_path) == said
    assert {path.name for path in tmp_path.iterdir()} == {"thesis.tex", "log"}


def test_folder_that_is_ours_may_hold_other_files(tmp_path: Path) -> None:
    DataDirectory(tmp_path).close()
    (tmp_path / "notes").touch()
    (tmp_path / "version-2").mkdir()
    (tmp_path / "version-2" / "log.1").touch()
    DataDirectory(tmp_path).close()


@pytest.mark.parametrize("name", ["snapshot.0", "log.1", "snapshot.1a.gz", "snapshot.f.snappy"])
def test_data_of_apache_are_refused_with_the_command_that_takes_them_over(
    tmp_path: Path, name: str
) -> None:
    data = tmp_path / "Apache's"
    (data / "version-2").mkdir(parents=True)
    (data / "version-2" / name).touch()
    said = refusal(data)
    assert said.startswith("holds data of Apache ZooKeeper; ")
    assert "paddock cluster import;" in said
    assert said.endswith(f" paddock upgrade {shlex.quote(str(data))} NEW_FOLDER")
    assert os.listdir(data) == ["version-2"]


@pytest.mark.parametrize("is_one_place", [False, True])
def test_the_log_of_apache_is_refused_too(tmp_path: Path, is_one_place: bool) -> None:
    log = tmp_path / "log"
    (log / "version-2").mkdir(parents=True)
    (log / "version-2" / "log.1").touch()
    data = log if is_one_place else tmp_path / "data"
    option = "" if is_one_place else f"--log-dir {log} "
    assert refusal(data, log).endswith(f" paddock upgrade {option}{data} NEW_FOLDER")


@pytest.mark.parametrize("has_log_elsewhere", [False, True])
def test_a_first_start_that_was_interrupted_anywhere_is_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_log_elsewhere: bool
) -> None:
    steps_left = 0

    def interrupted(name: str, owner: type) -> None:
        done = getattr(owner, name)

        def step(*arguments: Any, **keywords: Any) -> Any:
            nonlocal steps_left
            steps_left -= 1
            if steps_left < 0:
                raise _PowerCut
            return done(*arguments, **keywords)

        monkeypatch.setattr(owner, name, step)

    for name in ("create", "write", "sync", "rename", "sync_folder"):
        interrupted(name, Disk)
    for name in ("mkdir", "symlink_to"):
        interrupted(name, Path)
    seen = set()
    for cut in range(100):
        data = tmp_path / str(cut) / "data"
        log = tmp_path / str(cut) / "disk" if has_log_elsewhere else None
        steps_left = cut
        with contextlib.suppress(_PowerCut):
            DataDirectory(data, log).close()
            break
        seen |= set(os.listdir(data)) if data.exists() else set()
        steps_left = 100
        with DataDirectory(data, log) as directory:
            assert directory.log_path.is_dir()
    else:
        raise AssertionError("it was never done")
    assert {"lock", "format.tmp", "format", "log"} <= seen


@pytest.mark.parametrize("left", [["lock"], ["restore-incoming-1"], ["lock", "exchange.tmp"]])
def test_what_a_first_restore_leaves_behind_is_no_obstacle(tmp_path: Path, left: list[str]) -> None:
    for name in left:
        (tmp_path / name).touch()
    with DataDirectory(tmp_path):
        pass


def test_looking_before_the_claim_touches_nothing(tmp_path: Path) -> None:
    path = tmp_path / "data"
    look_before_claim(path)
    assert not path.exists()
    DataDirectory(path).close()
    look_before_claim(path)
    with DataDirectory(path), pytest.raises(FolderInUseError, match=f"process {os.getpid()}"):
        look_before_claim(path)
    (tmp_path / "other").touch()
    with pytest.raises(DataDirectoryError, match="'data' in it"):
        look_before_claim(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["data", "other"]


def test_folder_in_use_in_this_process_is_refused(tmp_path: Path) -> None:
    with DataDirectory(tmp_path):
        assert refusal(tmp_path) == f"in use by another server (process {os.getpid()})"


def test_folder_in_use_by_another_process_is_free_when_that_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"claimed\n"
        assert refusal(tmp_path) == f"in use by another server (process {holder.pid})"
        holder.kill()
        holder.wait()
        with DataDirectory(tmp_path):
            pass


def test_process_id_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    with DataDirectory(tmp_path):
        (tmp_path / "lock").write_bytes(b"\xff garbage")
        assert refusal(tmp_path) == "in use by another server"


def test_folder_that_cannot_be_created_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert refusal(tmp_path / "file") == "is not a folder"
    assert refusal(tmp_path / "file" / "data") == "cannot be created: Not a directory"


def test_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    assert refusal(tmp_path) == "cannot be written: Is a directory"


@pytest.mark.parametrize("inside", [".", "log", "snapshots"])
def test_folder_without_permission_is_refused(tmp_path: Path, inside: str) -> None:
    if inside != ".":
        DataDirectory(tmp_path).close()
    with unwritable(tmp_path / inside):
        assert refusal(tmp_path).startswith("cannot be written: ")


@pytest.mark.parametrize("content", ["paddock 2\n", "", "paddock 1 and more", "\0\xff"])
def test_unknown_format_is_refused_and_nothing_touched(tmp_path: Path, content: str) -> None:
    (tmp_path / "format").write_text(content)
    text = refusal(tmp_path)
    assert "knows only 'paddock 1'" in text
    assert not (tmp_path / "log").exists()


def test_data_without_a_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    assert refusal(tmp_path).startswith("holds data, but its file 'format' is missing")


def test_refused_folder_is_not_kept_locked(tmp_path: Path) -> None:
    (tmp_path / "format").write_text("paddock 2\n")
    refusal(tmp_path)
    (tmp_path / "format").write_text("paddock 1\n")
    with DataDirectory(tmp_path):
        pass


def test_a_log_elsewhere_is_found_by_a_link(tmp_path: Path) -> None:
    data, disk = tmp_path / "data", tmp_path / "disk"
    with DataDirectory(data, disk) as directory:
        (directory.log_path / "segment").touch()
    assert (disk / "log" / "segment").exists()
    for said in (None, disk):
        with DataDirectory(data, said) as directory:
            assert (directory.log_path / "segment").exists()


def test_an_empty_log_moves_to_where_it_is_said_to_be(tmp_path: Path) -> None:
    DataDirectory(tmp_path / "data").close()
    with DataDirectory(tmp_path / "data", tmp_path / "disk") as directory:
        assert directory.log_path.resolve() == tmp_path / "disk" / "log"


def test_a_log_without_records_moves_with_what_it_begins_with(tmp_path: Path) -> None:
    """As after a restore: without its beginning the log would seem to be lost."""
    with DataDirectory(tmp_path / "data") as directory:
        begin_log(directory.log_path, 7, Disk())
    before = contents(tmp_path / "data" / "log")
    with DataDirectory(tmp_path / "data", tmp_path / "disk") as directory:
        assert directory.log_path.resolve() == tmp_path / "disk" / "log"
    assert contents(tmp_path / "disk" / "log") == before
    assert not (tmp_path / "data" / "log-moved").exists()


@pytest.mark.parametrize("done", ["copied", "moved", "linked"])
@pytest.mark.parametrize("is_said", [False, True])
def test_a_log_that_was_moved_half_way_is_found(tmp_path: Path, done: str, is_said: bool) -> None:
    data, disk = tmp_path / "data", tmp_path / "disk"
    with DataDirectory(data) as directory:
        begin_log(directory.log_path, 7, Disk())
    before = contents(data / "log")
    shutil.copytree(data / "log", disk / "log")
    if done != "copied":
        (data / "log").rename(data / "log-moved")
    if done == "linked":
        (data / "log").symlink_to(disk / "log")
    with DataDirectory(data, disk if is_said else None) as directory:
        assert contents(directory.log_path) == before
        assert directory.log_path.is_symlink() == (is_said or done == "linked")
    assert not (data / "log-moved").exists()


def test_a_log_that_is_elsewhere_than_said_is_refused(tmp_path: Path) -> None:
    data, disk = tmp_path / "data", tmp_path / "disk"
    with DataDirectory(data) as directory:
        (directory.log_path / "segment").touch()
    assert refusal(data, disk).startswith(f"its log is in {data}/log, not in {disk}/log; to move")


def test_a_log_that_is_not_there_is_refused(tmp_path: Path) -> None:
    data, disk = tmp_path / "data", tmp_path / "disk"
    DataDirectory(data, disk).close()
    disk.rename(tmp_path / "unmounted")
    for said in (None, disk):
        assert refusal(data, said) == f"its log is in {disk}/log, which is not there"


def test_the_log_of_another_folder_is_refused(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with DataDirectory(tmp_path / "one", disk) as directory:
        (directory.log_path / "segment").touch()
    assert "holds the log of another data folder" in refusal(tmp_path / "two", disk)


def test_the_log_of_another_folder_is_refused_also_without_records(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with DataDirectory(tmp_path / "one", disk) as directory:
        begin_log(directory.log_path, 7, Disk())
    with DataDirectory(tmp_path / "two") as directory:
        begin_log(directory.log_path, 7, Disk())
    assert "holds the log of another data folder" in refusal(tmp_path / "two", disk)
    (disk / "log" / "00000000000000000008.log").unlink()
    (disk / "log" / "lost+found").mkdir()
    assert "holds the log of another data folder" in refusal(tmp_path / "two", disk)


def test_whoever_looks_whether_a_folder_is_in_use_does_not_keep_a_server_off(
    tmp_path: Path,
) -> None:
    DataDirectory(tmp_path).close()
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            user_of(tmp_path)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for _ in range(40):
            DataDirectory(tmp_path).close()
    finally:
        over.set()
        looking.join()

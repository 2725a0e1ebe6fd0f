"""Exchanging the state of a data folder: the old one or the new one, whole, whenever it stops."""

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.log.file.disk import Disk
from paddock.log.file.segment import SEGMENT_HEADER_BYTES, SPARE_BYTES
from paddock.log.interface import LogError
from paddock.storage import load as loading
from paddock.storage.data_directory import DataDirectory
from paddock.storage.layout import Claim, DataDirectoryError
from paddock.storage.load import load
from paddock.storage.maintenance import check as checking
from paddock.storage.maintenance.check import check
from paddock.storage.scan import Item, scan
from paddock.storage.state_swap import (
    StateSwap,
    discard_staged,
    finish_swap,
    holds_data,
    is_interrupted,
    is_staged,
    stage,
    swap_state,
    undo_swap,
)
from tests.unit.log.folders import FolderBuilder, contents, copy_of, names, paths

OLD, NEW = set(names(6)), set(names(3, 100))
NOW = "now"
EMPTY_BYTES = SEGMENT_HEADER_BYTES + SPARE_BYTES


class PowerCut(BaseException):
    """The end of the process, in the middle."""


class CountingDisk(Disk):
    """A disk that stops at one of its operations: with an error, or as if the power was cut."""

    def __init__(self, stop_at: int | None = None, error: BaseException | None = None) -> None:
        self.count = 0
        self._stop_at = stop_at
        self._error = error or PowerCut()

    def _step(self) -> None:
        self.count += 1
        if self.count == self._stop_at:
            raise self._error

    def create(self, path: Path) -> int:
        self._step()
        return super().create(path)

    def sync(self, file: int) -> None:
        self._step()
        super().sync(file)

    def rename(self, old: Path, new: Path) -> None:
        self._step()
        super().rename(old, new)

    def remove(self, path: Path) -> None:
        self._step()
        super().remove(path)

    def sync_folder(self, folder: Path) -> None:
        self._step()
        super().sync_folder(folder)


class FullDisk(Disk):
    """A disk with room for so many more files."""

    def __init__(self, room_for: int) -> None:
        self._room_for = room_for

    def create(self, path: Path) -> int:
        if self._room_for == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        self._room_for -= 1
        return super().create(path)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with the old state, and the new one staged in it."""
    with FolderBuilder(tmp_path / "new") as builder:
        builder.create(*names(3, 100))
    folder = tmp_path / "data"
    with FolderBuilder(folder) as builder:
        builder.create(*names(4))
        builder.snapshot()
        builder.create(*names(2, 4))
    (folder / "myid").write_text("1")
    stage_new(folder)
    return folder


@pytest.fixture
def apart(data: Path) -> Path:
    """The same, with the log on a disk of its own."""
    place = data.parent / "fast" / "log"
    place.parent.mkdir()
    (data / "log").rename(place)
    (data / "log").symlink_to(place)
    return data


def stage_new(folder: Path) -> str:
    loaded = load(folder.parent / "new")
    return stage(folder, loaded.machine, loaded.index, Disk())


def copied(folder: Path, name: str) -> Path:
    """Copy a folder; a log on a disk of its own is copied to one of the copy's own."""
    copy = copy_of(folder, name)
    if (folder / "log").is_symlink():
        place = copy_of((folder / "log").resolve().parent, f"{name}-fast") / "log"
        shutil.rmtree(copy / "log")
        (copy / "log").symlink_to(place)
    return copy


def staged_in(folder: Path) -> str:
    (name,) = (path.name for path in folder.glob("restore-incoming-*"))
    return name


def state(folder: Path) -> set[str]:
    """What a server would serve that starts on the folder."""
    with DataDirectory(folder):
        pass
    report = check(folder)
    assert not report.is_damaged, report.findings
    return paths(load(folder).machine)


def leftovers(folder: Path) -> list[str]:
    known = {"format", "lock", "log", "snapshots", "myid"}
    return sorted(path.name for path in folder.iterdir() if path.name not in known)


def test_what_is_staged_is_not_there_yet(data: Path) -> None:
    assert is_staged(data, staged_in(data))
    assert paths(load(data).machine) == OLD
    assert not is_staged(data, "snapshots")
    assert not is_staged(data, f"../{data.name}/{staged_in(data)}")


def test_the_new_state_takes_the_place_of_the_old_one_which_is_moved_aside(data: Path) -> None:
    before = contents(data)
    done = swap_state(data, staged_in(data), NOW, Disk())
    assert done.aside == "replaced-now"
    assert state(data) == NEW
    assert leftovers(data) == ["replaced-now"]
    aside = contents(data / "replaced-now")
    assert aside.items() <= before.items()
    assert {"format", "log", "snapshots"} == {name.split("/")[0] for name in aside}
    # It is a data folder itself.
    assert state(data / "replaced-now") == OLD
    assert (data / "myid").read_text() == "1"


def test_nothing_moved_aside_is_ever_written_over(data: Path) -> None:
    for expected in ("replaced-now", "replaced-now-2", "replaced-now-3"):
        assert swap_state(data, staged_in(data), NOW, Disk()).aside == expected
        stage_new(data)
    assert state(data / "replaced-now") == OLD


def test_a_folder_that_held_nothing_gets_the_state(data: Path) -> None:
    empty = data.parent / "empty"
    empty.mkdir()
    assert not holds_data(empty)
    assert swap_state(empty, stage_new(empty), NOW, Disk()).aside is None
    assert state(empty) == NEW
    assert leftovers(empty) == []


def test_a_log_on_a_disk_of_its_own_stays_there(apart: Path) -> None:
    swap_state(apart, staged_in(apart), NOW, Disk())
    assert (apart / "log").is_symlink()
    place = (apart / "log").resolve()
    assert place == apart.parent / "fast" / "log"
    assert [path.stat().st_size for path in place.iterdir()] == [EMPTY_BYTES]
    assert (place.parent / "log-replaced-now").is_dir()
    assert state(apart) == NEW
    assert state(apart / "replaced-now") == OLD


@pytest.mark.parametrize("fixture", ["data", "apart"])
def test_a_power_cut_anywhere_leaves_the_old_state_or_the_new_one(
    fixture: str, request: pytest.FixtureRequest
) -> None:
    original: Path = request.getfixturevalue(fixture)
    found = []
    counted = CountingDisk()
    folder = copied(original, "cut")
    swap_state(folder, staged_in(folder), NOW, counted)
    assert counted.count > 10
    for stop_at in range(1, counted.count + 1):
        folder = copied(original, "cut")
        with pytest.raises(PowerCut):
            swap_state(folder, staged_in(folder), NOW, CountingDisk(stop_at))
        interrupted = is_interrupted(folder)
        found.append(state(folder))
        assert found[-1] in (OLD, NEW)
        assert not is_interrupted(folder)
        if interrupted:
            assert found[-1] == NEW
        if found[-1] == NEW:
            assert state(folder / "replaced-now") == OLD
    # First it was the old one, and from some point on always the new one.
    assert found.index(NEW) > 1
    assert found == [OLD] * found.index(NEW) + [NEW] * (len(found) - found.index(NEW))


def test_finishing_may_be_interrupted_too(data: Path) -> None:
    for first in range(5, 16):
        for second in range(1, 8):
            folder = copy_of(data, "twice")
            with pytest.raises(PowerCut):
                swap_state(folder, staged_in(folder), NOW, CountingDisk(first))
            try:
                finish_swap(folder, CountingDisk(second))
            except PowerCut:
                pass
            assert state(folder) == NEW
            assert state(folder / "replaced-now") == OLD


@pytest.mark.parametrize("fixture", ["data", "apart"])
def test_an_error_anywhere_leaves_the_old_state(
    fixture: str, request: pytest.FixtureRequest
) -> None:
    original: Path = request.getfixturevalue(fixture)
    counted = CountingDisk()
    folder = copied(original, "failed")
    swap_state(folder, staged_in(folder), NOW, counted)
    for stop_at in range(1, counted.count + 1):
        folder = copied(original, "failed")
        error = OSError(errno.EIO, os.strerror(errno.EIO))
        with pytest.raises(LogError, match="cannot be exchanged"):
            swap_state(folder, staged_in(folder), NOW, CountingDisk(stop_at, error))
        assert state(folder) == OLD
        assert leftovers(folder) == []


@pytest.mark.parametrize("fixture", ["data", "apart"])
def test_a_disk_that_is_full_from_some_point_on_keeps_the_old_state(
    fixture: str, request: pytest.FixtureRequest
) -> None:
    """To undo an exchange takes no room."""
    original: Path = request.getfixturevalue(fixture)
    for room_for in range(4):
        folder = copied(original, "full")
        with pytest.raises(LogError, match=r"cannot be exchanged: .*No space left"):
            swap_state(folder, staged_in(folder), NOW, FullDisk(room_for))
        assert not is_interrupted(folder)
        assert state(folder) == OLD
        assert leftovers(folder) == []
    swap_state(folder, stage_new(folder), NOW, FullDisk(4))


def test_a_log_whose_disk_is_not_there_is_not_exchanged(apart: Path) -> None:
    """A new log would hide the old one, and the old one would follow new snapshots."""
    fast = apart.parent / "fast"
    fast.rename(apart.parent / "away")
    fast.mkdir()
    before = contents(apart / "snapshots")
    with pytest.raises(LogError, match=r"its log is in .*, which is not there"):
        swap_state(apart, staged_in(apart), NOW, Disk())
    assert contents(apart / "snapshots") == before
    assert leftovers(apart) == []
    assert list(fast.iterdir()) == []
    fast.rmdir()
    (apart.parent / "away").rename(fast)
    assert state(apart) == OLD


@pytest.mark.parametrize("is_undone", [False, True])
def test_a_log_whose_disk_goes_in_the_middle_is_waited_for(apart: Path, is_undone: bool) -> None:
    counted = CountingDisk()
    folder = copied(apart, "gone")
    this = swap_state(folder, staged_in(folder), NOW, counted)
    total = counted.count
    if is_undone:
        counted = CountingDisk()
        undo_swap(folder, this, counted)
    for stop_at in range(1, counted.count + 1):
        folder = copied(apart, "gone")
        fast, away = apart.parent / "gone-fast", apart.parent / "gone-away"
        cut = CountingDisk(stop_at)
        if is_undone:
            this = swap_state(folder, staged_in(folder), NOW, Disk())
            with pytest.raises(PowerCut):
                undo_swap(folder, this, cut)
        else:
            with pytest.raises(PowerCut):
                swap_state(folder, staged_in(folder), NOW, cut)
        if not is_interrupted(folder):
            continue
        shutil.rmtree(away, ignore_errors=True)
        fast.rename(away)
        fast.mkdir()
        with pytest.raises(DataDirectoryError, match=r"its log is in .*, which is not there"):
            DataDirectory(folder)
        assert list(fast.iterdir()) == []
        fast.rmdir()
        away.rename(fast)
        assert state(folder) == (OLD if is_undone else NEW)
    assert total > 10


def test_an_old_log_that_was_left_on_its_disk_is_not_taken_for_the_one_that_goes(
    apart: Path,
) -> None:
    swap_state(apart, staged_in(apart), NOW, Disk())
    # The operator has removed what was moved aside, except the log on the other disk.
    shutil.rmtree(apart / "replaced-now")
    index = load(apart).index
    with FolderBuilder(apart, after=index) as builder:
        builder.index = index
    this = swap_state(apart, stage_new(apart), NOW, Disk())
    assert this.aside == "replaced-now-2"
    assert state(apart) == NEW
    assert [path.stat().st_size for path in (apart / "log").iterdir()] == [EMPTY_BYTES]


@pytest.mark.parametrize("fixture", ["data", "apart"])
def test_an_exchange_can_be_undone(fixture: str, request: pytest.FixtureRequest) -> None:
    folder: Path = request.getfixturevalue(fixture)
    before = contents(folder)
    undo_swap(folder, swap_state(folder, staged_in(folder), NOW, Disk()), Disk())
    assert state(folder) == OLD
    assert leftovers(folder) == []
    kept = {name: data for name, data in before.items() if not name.startswith("restore-")}
    assert contents(folder) == kept | {"lock": contents(folder)["lock"]}


def test_a_state_without_snapshots_comes_back_too(data: Path) -> None:
    for path in (data / "snapshots").iterdir():
        path.unlink()
    (data / "snapshots").rmdir()
    undo_swap(data, swap_state(data, staged_in(data), NOW, Disk()), Disk())
    assert state(data) == OLD


def test_undoing_may_be_interrupted_anywhere(data: Path) -> None:
    def done(name: str) -> tuple[Path, StateSwap]:
        folder = copy_of(data, name)
        return folder, swap_state(folder, staged_in(folder), NOW, Disk())

    counted = CountingDisk()
    undo_swap(*done("undone"), counted)
    found = []
    for stop_at in range(1, counted.count + 1):
        folder, this = done("undone")
        with pytest.raises(PowerCut):
            undo_swap(folder, this, CountingDisk(stop_at))
        found.append(state(folder))
    assert found == [NEW] * found.index(OLD) + [OLD] * (len(found) - found.index(OLD))
    assert found[-1] == OLD


def test_what_was_staged_in_vain_is_removed_by_the_next_claim(data: Path) -> None:
    with DataDirectory(data):
        assert leftovers(data) == []
    discard_staged(data, stage_new(data))
    assert leftovers(data) == []


def test_a_check_says_that_an_exchange_was_interrupted(data: Path) -> None:
    with pytest.raises(PowerCut):
        swap_state(data, staged_in(data), NOW, CountingDisk(8))
    report = check(data)
    assert [finding.kind for finding in report.findings] == ["interrupted-restore"]
    assert not report.is_damaged


def test_what_is_neither_state_is_not_read(data: Path) -> None:
    """In the middle the snapshots may be there without the log that follows them."""
    counted = CountingDisk()
    folder = copy_of(data, "middle")
    swap_state(folder, staged_in(folder), NOW, counted)
    refused = 0
    for stop_at in range(1, counted.count + 1):
        folder = copy_of(data, "middle")
        with pytest.raises(PowerCut):
            swap_state(folder, staged_in(folder), NOW, CountingDisk(stop_at))
        with Claim(folder):
            # As beside a server that is in the middle of it.
            if not is_interrupted(folder):
                assert paths(load(folder).machine) in (OLD, NEW)
                assert not check(folder).is_damaged
                continue
            refused += 1
            with pytest.raises(LogError, match="a restore is in progress"):
                load(folder)
            with pytest.raises(LogError, match="a restore is in progress"):
                check(folder)
    assert refused > 5


@pytest.mark.parametrize("name", ["exchange", "exchange-undone"])
@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"staged": 5, "aside": null}',
        '{"staged": "restore-incoming-1/../..", "aside": null}',
        '{"staged": "restore-incoming-1", "aside": "log"}',
    ],
)
def test_a_damaged_record_of_an_exchange_stops_the_start(data: Path, name: str, text: str) -> None:
    (data / name).write_text(text)
    with pytest.raises(DataDirectoryError, match=f"its file '{name}' cannot be read"):
        DataDirectory(data)


def test_a_state_that_is_exchanged_while_it_is_read_is_read_again(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the snapshot would be of the old one and the log, empty, of the new."""

    def scan_behind_an_exchange(folder: Path, after: int = 0) -> Iterator[Item]:
        if list(data.glob("restore-incoming-*")):
            swap_state(data, staged_in(data), NOW, Disk())
        return scan(folder, after)

    monkeypatch.setattr(loading, "scan", scan_behind_an_exchange)
    assert paths(load(data).machine) == NEW
    stage_new(data)
    monkeypatch.setattr(checking, "scan", scan_behind_an_exchange)
    assert not check(data).is_damaged

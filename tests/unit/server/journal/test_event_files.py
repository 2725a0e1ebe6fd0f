"""The files of events: rotated, purged, and what becomes of them on a bad disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from paddock.log.file.disk import Disk
from paddock.server.journal.event_files import EventFiles
from paddock.storage.events import LOST, STALLED, Event, event_files, file_name, read_events

DAY_MS = 86_400_000


class FullDisk(Disk):
    """A disk that takes some bytes of each write, and no more; None takes all."""

    def __init__(self) -> None:
        self.room: int | None = None

    def write(self, file: int, data: bytes, offset: int) -> None:
        super().write(file, data if self.room is None else data[: self.room], offset)
        if self.room is not None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def files(folder: Path, *, keep_bytes: int = 1 << 20, disk: Disk | None = None) -> EventFiles:
    return EventFiles(folder / "events", DAY_MS, keep_bytes, disk or Disk())


def stalls(*times: int) -> list[Event]:
    return [Event(one, STALLED) for one in times]


def kept(folder: Path) -> list[tuple[int, str]]:
    return [(event.time_ms, event.kind) for event in read_events(folder / "events")]


def names(folder: Path) -> list[int]:
    return [begin for begin, _ in event_files(folder / "events")]


def test_the_next_server_appends_to_the_newest_file(tmp_path: Path) -> None:
    for begin in (1, 3):
        written = files(tmp_path)
        written.append(stalls(begin))
        written.append(stalls(begin + 1))
    assert names(tmp_path) == [1]
    assert kept(tmp_path) == [(one, STALLED) for one in (1, 2, 3, 4)]


def test_a_line_that_a_crash_has_torn_spoils_no_other(tmp_path: Path) -> None:
    files(tmp_path).append(stalls(1))
    (path,) = (path for _, path in event_files(tmp_path / "events"))
    path.write_bytes(path.read_bytes() + b'{"time_ms":')
    files(tmp_path).append(stalls(3))
    assert kept(tmp_path) == [(1, STALLED), (3, STALLED)]


def test_a_file_that_is_full_is_followed_by_another_and_the_oldest_go(tmp_path: Path) -> None:
    written = files(tmp_path, keep_bytes=8_000)
    for time_ms in range(1, 1_001):
        written.append(stalls(time_ms))
        size = sum(path.stat().st_size for _, path in event_files(tmp_path / "events"))
        assert size <= 8_000
    assert len(names(tmp_path)) > 4
    times = [time_ms for time_ms, _ in kept(tmp_path)]
    assert times == list(range(names(tmp_path)[0], 1_001))
    assert len(times) > 100


def test_what_is_older_than_a_day_goes(tmp_path: Path) -> None:
    written = files(tmp_path)
    hour = DAY_MS // 24
    for time_ms in range(1, 5 * DAY_MS, hour):
        written.append(stalls(time_ms))
    times = [time_ms for time_ms, _ in kept(tmp_path)]
    assert DAY_MS <= times[-1] - times[0] <= DAY_MS + DAY_MS // 3


def test_a_clock_that_was_set_back_empties_no_file(tmp_path: Path) -> None:
    first = files(tmp_path, keep_bytes=0)
    first.append(stalls(1_000))
    first.append(stalls(500))
    first.append(stalls(1_000))
    assert names(tmp_path) == [1_002]
    first = files(tmp_path)
    first.append(stalls(7))
    assert kept(tmp_path) == [(1_000, STALLED), (7, STALLED)]


@pytest.mark.parametrize("room", [0, 10, 45])
def test_what_a_full_disk_does_not_take_is_counted(
    tmp_path: Path, room: int, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FullDisk()
    written = files(tmp_path, disk=disk)
    written.append(stalls(1))
    disk.room = room
    written.append(stalls(2, 3))
    written.append(stalls(4))
    assert "2 events are lost: [Errno 28]" in caplog.text
    disk.room = None
    written.append(stalls(5))
    written.append(stalls(6))
    assert kept(tmp_path) == [(1, STALLED), (5, LOST), (5, STALLED), (6, STALLED)]
    (lost,) = (event for event in read_events(tmp_path / "events") if event.kind == LOST)
    assert lost.details == {"count": 3}


def test_a_folder_that_cannot_be_written_is_tried_again(tmp_path: Path) -> None:
    (tmp_path / "events").write_text("in the way")
    written = files(tmp_path)
    written.append(stalls(1), lost=5)
    (tmp_path / "events").unlink()
    written.append(stalls(2))
    (lost, _) = read_events(tmp_path / "events")
    assert (lost.kind, lost.details) == (LOST, {"count": 6})


def test_a_file_that_somebody_deletes_is_followed_by_another(tmp_path: Path) -> None:
    written = files(tmp_path)
    written.append(stalls(1))
    for _, path in event_files(tmp_path / "events"):
        path.unlink()
    written.append(stalls(2))
    written.append(stalls(3))
    assert (names(tmp_path), kept(tmp_path)) == ([2], [(2, STALLED), (3, STALLED)])


class ForeignDisk(Disk):
    """A disk with files of somebody else, which can be neither opened nor removed."""

    def __init__(self, *foreign: Path) -> None:
        self.foreign = foreign

    def open(self, path: Path) -> int:
        self._check(path)
        return super().open(path)

    def remove(self, path: Path) -> None:
        self._check(path)
        super().remove(path)

    def _check(self, path: Path) -> None:
        if path in self.foreign:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def test_a_newest_file_that_cannot_be_appended_to_is_followed_by_another(tmp_path: Path) -> None:
    files(tmp_path).append(stalls(5))
    ((_, path),) = event_files(tmp_path / "events")
    written = files(tmp_path, disk=ForeignDisk(path))
    written.append(stalls(6))
    written.append(stalls(7))
    assert (names(tmp_path), kept(tmp_path)) == ([5, 6], [(one, STALLED) for one in (5, 6, 7)])


def test_what_cannot_be_purged_or_is_not_ours_keeps_no_other_file(tmp_path: Path) -> None:
    folder = tmp_path / "events"
    (folder / file_name(DAY_MS)).mkdir(parents=True)
    (folder / file_name(DAY_MS) / "theirs").touch()
    (folder / "notes.jsonl").touch()
    foreign = folder / file_name(2)
    for begin in (1, 2, 3):
        (folder / file_name(begin)).write_bytes(Event(begin, STALLED).line().encode())
    written = files(tmp_path, disk=ForeignDisk(foreign))
    written.append(stalls(3 * DAY_MS))
    assert names(tmp_path) == [2, 3, 3 * DAY_MS]
    assert (folder / file_name(DAY_MS) / "theirs").exists()
    assert (folder / "notes.jsonl").exists()


def test_a_folder_in_the_place_of_the_newest_file_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "events" / file_name(9)).mkdir(parents=True)
    files(tmp_path).append(stalls(5))
    assert kept(tmp_path) == [(5, STALLED)]


def test_the_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    files(tmp_path).append(stalls(1))
    ((_, path),) = event_files(tmp_path / "events")
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)

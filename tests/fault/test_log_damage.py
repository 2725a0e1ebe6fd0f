"""Damaged and cut log files: nothing acknowledged is ever lost in silence."""

import contextlib
import shutil
from pathlib import Path

import pytest

from paddock.log.file.file_log import FileLog
from paddock.log.file.segment import (
    RECORD_BYTES,
    SEGMENT_HEADER_BYTES,
    SegmentHeader,
    encode_record,
)
from paddock.log.interface import LogCorruptError, LogError, Torn
from paddock.storage.snapshots import SnapshotStore
from tests.unit.log.helpers import FailingDisk, Proposer, fill, flip, payloads, read, segments

BATCHES = [b"first", b"second", b"third", b"fourth", b"fifth"]
# Three records fit, so the five are in two segments.
SEGMENT_BYTES = 140


@pytest.fixture
def small_log(tmp_path: Path) -> Path:
    folder = tmp_path / "log"
    folder.mkdir()
    fill(folder, *BATCHES, segment_bytes=SEGMENT_BYTES)
    assert len(segments(folder)) == 2
    return folder


def copy_of(folder: Path, name: str) -> Path:
    return shutil.copytree(folder, folder.parent / name)


def last_record_offset(folder: Path) -> int:
    return SEGMENT_HEADER_BYTES + RECORD_BYTES + len(BATCHES[-2])


def test_last_file_that_was_cut_short_anywhere_stops_the_start(small_log: Path) -> None:
    segment = segments(small_log)[-1]
    end = last_record_offset(small_log) + RECORD_BYTES + len(BATCHES[-1])
    for length in range(end + 1):
        folder = copy_of(small_log, f"cut-{length}")
        with (folder / segment.name).open("r+b") as file:
            file.truncate(length)
        with pytest.raises(LogCorruptError) as raised:
            FileLog(folder)
        assert str(folder / segment.name) in str(raised.value)
        assert "short" in str(raised.value)
        assert (folder / segment.name).stat().st_size == length
    # What is cut of the space behind it loses nothing, and is made again when it is needed.
    folder = copy_of(small_log, "cut-space")
    with (folder / segment.name).open("r+b") as file:
        file.truncate(end + 1)
    assert payloads(folder) == BATCHES
    with contextlib.closing(FileLog(folder, segment_bytes=4096)) as log:
        Proposer(log).write(b"more")
    assert len(segments(folder)) == 2
    assert payloads(folder) == [*BATCHES, b"more"]


def test_last_record_of_which_only_a_part_arrived_is_dropped_and_written_over(
    small_log: Path,
) -> None:
    start = last_record_offset(small_log)
    end = start + RECORD_BYTES + len(BATCHES[-1])
    for number, lost in enumerate(
        [(start, arrived) for arrived in range(start + 1, end + 1)]
        + [(arrived, end) for arrived in range(start, end)]
    ):
        folder = copy_of(small_log, f"torn-{number}")
        path = segments(folder)[-1]
        data = bytearray(path.read_bytes())
        data[slice(*lost)] = bytes(lost[1] - lost[0])
        path.write_bytes(data)
        with contextlib.closing(FileLog(folder, segment_bytes=SEGMENT_BYTES)) as log:
            assert log.last_index == 4
            remains = len(data.rstrip(b"\0")) - start
            assert log.torn == (Torn(path, start, remains) if remains > 0 else None)
            assert path.read_bytes() == data, "opening it changes nothing"
            proposer = Proposer(log)
            assert not any(path.read_bytes()[start:])
            proposer.write(b"again")
        assert payloads(folder) == [*BATCHES[:-1], b"again"]


def test_flipped_byte_anywhere_stops_the_start_or_costs_nothing(small_log: Path) -> None:
    stopped: list[tuple[str, str]] = []
    for number, segment in enumerate(segments(small_log)):
        for offset in range(segment.stat().st_size):
            folder = copy_of(small_log, f"flip-{number}-{offset}")
            flip(folder / segment.name, offset)
            try:
                found = payloads(folder)
            except LogCorruptError as error:
                stopped.append((segment.name, str(error)))
            else:
                assert found == BATCHES
    assert all(name in text for name, text in stopped)
    # Every byte of both headers and of every record; the zeros hold nothing.
    records = sum(RECORD_BYTES + len(batch) for batch in BATCHES)
    assert len(stopped) == 2 * SEGMENT_HEADER_BYTES + records


def early_log(folder: Path, *batches: bytes, zeros: int) -> Path:
    """Write a log as early versions of Paddock did: without ends, or zeros that must be there."""
    marker = b"\xa5of old!"
    records = [encode_record(marker, index, batch) for index, batch in enumerate(batches, 1)]
    folder.mkdir()
    path = folder / "00000000000000000001.log"
    header = SegmentHeader(1, marker).encode()
    path.write_bytes(header + b"".join(records) + bytes(zeros))
    return path


@pytest.mark.parametrize("zeros", [0, 200])
def test_log_of_an_early_version_goes_on_in_a_new_file(tmp_path: Path, zeros: int) -> None:
    folder = tmp_path / "log"
    path = early_log(folder, b"a", b"b", zeros=zeros)
    before = path.read_bytes()
    with contextlib.closing(FileLog(folder)) as log:
        Proposer(log).write(b"c")
    assert [int(one.stem) for one in segments(folder)] == [1, 3]
    assert path.read_bytes() == before
    assert payloads(folder) == [b"a", b"b", b"c"]


def test_log_of_an_early_version_without_records_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    path = early_log(folder, zeros=0)
    with contextlib.closing(FileLog(folder)) as log:
        Proposer(log).write(b"a")
    assert segments(folder) == [path]
    with path.open("r+b") as file:
        file.truncate(SEGMENT_HEADER_BYTES)
    with pytest.raises(LogCorruptError, match="cut short"):
        FileLog(folder)


def test_log_of_an_early_version_that_was_cut_in_a_record_stops_the_start(tmp_path: Path) -> None:
    path = early_log(tmp_path / "log", b"a", b"b", zeros=0)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 1)
    with pytest.raises(LogCorruptError, match="cut short: record 2"):
        FileLog(path.parent)


def test_missing_segment_stops_the_start(tmp_path: Path) -> None:
    fill(tmp_path, b"a", b"b", b"c", segment_bytes=1)
    segments(tmp_path)[1].unlink()
    with pytest.raises(LogCorruptError, match="record 2 is damaged or missing"):
        read(tmp_path)


def test_segment_under_the_name_of_another_stops_the_start(tmp_path: Path) -> None:
    fill(tmp_path, b"a", b"b", segment_bytes=1)
    first, second = segments(tmp_path)
    first.replace(second)
    with pytest.raises(LogCorruptError, match="holds the records from 1"):
        read(tmp_path)


def test_segment_without_records_promises_those_before_it(tmp_path: Path) -> None:
    fill(tmp_path, b"a", b"b", segment_bytes=1)
    for path in segments(tmp_path):
        data = path.read_bytes()
        path.write_bytes(data[:SEGMENT_HEADER_BYTES] + bytes(len(data) - SEGMENT_HEADER_BYTES))
    with pytest.raises(LogCorruptError, match="record 1 is damaged or missing"):
        read(tmp_path)


def test_message_says_what_where_and_how_to_go_on(small_log: Path) -> None:
    first, second = segments(small_log)
    flip(first, SEGMENT_HEADER_BYTES + 20)
    with pytest.raises(LogCorruptError) as raised:
        read(small_log)
    text = str(raised.value)
    assert text.startswith(f"{first}: offset {SEGMENT_HEADER_BYTES}: record 1 is damaged")
    assert "paddock fsck" in text
    assert "paddock restore" in text
    assert second.exists()


def test_damage_changes_no_file(small_log: Path) -> None:
    flip(segments(small_log)[1], SEGMENT_HEADER_BYTES + 20)
    before = [path.read_bytes() for path in segments(small_log)]
    with pytest.raises(LogCorruptError):
        FileLog(small_log)
    assert [path.read_bytes() for path in segments(small_log)] == before


def test_last_record_is_written_and_synced_again_when_the_log_starts(tmp_path: Path) -> None:
    fill(tmp_path, b"a", b"b")
    disk = FailingDisk()
    with contextlib.closing(FileLog(tmp_path, disk=disk)) as log:
        assert disk.calls == ["read"]
        Proposer(log, after=log.last_index)
    assert disk.calls == ["read", "write", "sync", "sync_folder"]


def test_log_that_cannot_sync_its_last_record_does_not_start(tmp_path: Path) -> None:
    fill(tmp_path, b"a")
    disk = FailingDisk()
    with contextlib.closing(FileLog(tmp_path, disk=disk)) as log:
        with disk.fail("sync"), pytest.raises(LogError, match="cannot be opened"):
            Proposer(log)
    assert payloads(tmp_path) == [b"a"]


def test_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    fill(tmp_path, b"a")
    disk = FailingDisk()
    with disk.fail("read"), pytest.raises(LogError, match=r"001\.log: cannot be read"):
        FileLog(tmp_path, disk=disk)


def test_start_without_a_whole_snapshot_needs_the_log_from_its_beginning(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    writer = store.begin(2)
    writer.append(b"the state after two batches")
    writer.commit()
    with contextlib.closing(FileLog(tmp_path, segment_bytes=1)) as log:
        Proposer(log).write(b"a", b"b", b"c")
        log.purge(store.purge(keep=1))
    newest = store.newest(lambda path, chunks: list(chunks))
    assert newest.snapshot is not None
    assert [record.payload for record in read(tmp_path, newest.snapshot.index)] == [b"c"]

    flip(newest.snapshot.path, 30)
    newest = store.newest(lambda path, chunks: list(chunks))
    assert newest.snapshot is None
    assert len(newest.damaged) == 1
    with pytest.raises(LogCorruptError, match="begins with record 3, but there is no whole snap"):
        read(tmp_path)

"""Damaged and cut log files: nothing acknowledged is ever lost in silence."""

import contextlib
import shutil
from pathlib import Path

import pytest

from paddock.log.file import FileLog
from paddock.log.interface import LogCorruptError, LogError
from paddock.log.segment import RECORD_HEADER_BYTES, SEGMENT_HEADER_BYTES
from paddock.log.snapshots import SnapshotStore
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
    return SEGMENT_HEADER_BYTES + RECORD_HEADER_BYTES + len(BATCHES[-2])


def test_last_record_cut_at_any_byte_is_dropped_and_written_over(small_log: Path) -> None:
    start = last_record_offset(small_log)
    for length in range(start, start + RECORD_HEADER_BYTES + len(BATCHES[-1])):
        folder = copy_of(small_log, f"cut-{length}")
        with segments(folder)[-1].open("r+b") as file:
            file.truncate(length)
        assert payloads(folder) == BATCHES[:-1]
        with contextlib.closing(FileLog(folder, segment_bytes=SEGMENT_BYTES)) as log:
            assert log.last_index == 4
            Proposer(log).write(b"again")
        assert payloads(folder) == [*BATCHES[:-1], b"again"]


def test_last_record_of_which_only_a_part_arrived_leaves_no_remains(small_log: Path) -> None:
    start = last_record_offset(small_log)
    end = start + RECORD_HEADER_BYTES + len(BATCHES[-1])
    for arrived in range(start, end):
        folder = copy_of(small_log, f"torn-{arrived}")
        path = segments(folder)[-1]
        data = bytearray(path.read_bytes())
        data[start:arrived] = bytes(arrived - start)
        path.write_bytes(data)
        expected = BATCHES if arrived == start else BATCHES[:-1]
        assert payloads(folder) == expected
        if arrived > start:
            assert not any(path.read_bytes()[start:])


def test_flipped_byte_anywhere_stops_the_start_or_costs_nothing(small_log: Path) -> None:
    stopped: list[tuple[str, str]] = []
    for number, segment in enumerate(segments(small_log)):
        for offset in range(segment.stat().st_size):
            folder = copy_of(small_log, f"flip-{number}-{offset}")
            flip(folder / segment.name, offset)
            in_last_record = number == 1 and offset >= last_record_offset(small_log)
            try:
                found = payloads(folder)
            except LogCorruptError as error:
                stopped.append((segment.name, str(error)))
            else:
                # A damaged last record cannot be told from a torn one.
                assert found == BATCHES or (in_last_record and found == BATCHES[:-1])
    assert all(name in text for name, text in stopped)
    # Every byte of both headers and of every record but the last; the zeros hold nothing.
    records = sum(RECORD_HEADER_BYTES + len(batch) for batch in BATCHES[:-1])
    assert len(stopped) == 2 * SEGMENT_HEADER_BYTES + records


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


def test_last_record_is_written_and_synced_again_when_the_log_is_opened(tmp_path: Path) -> None:
    fill(tmp_path, b"a", b"b")
    disk = FailingDisk()
    FileLog(tmp_path, disk=disk).close()
    assert disk.calls == ["read", "write", "sync", "sync_folder"]


def test_log_that_cannot_sync_its_last_record_does_not_open(tmp_path: Path) -> None:
    fill(tmp_path, b"a")
    disk = FailingDisk()
    with disk.fail("sync"), pytest.raises(LogError, match="cannot be opened"):
        FileLog(tmp_path, disk=disk)
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
    newest = store.newest()
    assert newest.snapshot is not None
    assert [record.payload for record in read(tmp_path, newest.snapshot.index)] == [b"c"]

    flip(newest.snapshot.path, 30)
    newest = store.newest()
    assert newest.snapshot is None
    assert len(newest.damaged) == 1
    with pytest.raises(LogCorruptError, match="begins with record 3, but there is no whole snap"):
        read(tmp_path)

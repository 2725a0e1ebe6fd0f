"""The files in which a server that shares its log keeps what it has applied."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.log.file.segment import decode_record, new_marker
from paddock.log.file.segments import segment_files, segment_name
from paddock.log.interface import LogError, Record, Torn
from paddock.storage.cluster.history import (
    EncodedRecord,
    HistoryFiles,
    check_service,
    decode_shared,
    read_history,
)
from paddock.storage.scan import Gap
from tests.unit.log.helpers import FailingDisk, fill, flip

SERVICE = b"the service's id"
PLENTY = 1 << 30


def record(index: int, payload: bytes = b"", revision: int = 0) -> Record:
    return Record(
        index, payload or b"batch %d" % index, b"a boot", index % 7, revision or 3 * index
    )


def records(first: int, last: int) -> list[Record]:
    return [record(index) for index in range(first, last + 1)]


def append(files: HistoryFiles, found: Sequence[Record]) -> None:
    files.append([EncodedRecord(one) for one in found])


def history(folder: Path, disk: FailingDisk | None = None, bytes_max: int = PLENTY) -> HistoryFiles:
    files = HistoryFiles(folder / "history", bytes_max, disk=disk)
    files.service = SERVICE
    return files


def written(folder: Path, *runs: tuple[int, int]) -> None:
    """Write the records of some runs of a server, which was away between them."""
    for first, last in runs:
        files = history(folder)
        append(files, records(first, last))
        files.close()


def read(folder: Path, name: str = "history") -> list[Record]:
    return [one for one in read_history(folder / name) if isinstance(one, Record)]


def gaps(folder: Path) -> list[tuple[int, int | None, bool]]:
    found = [one for one in read_history(folder / "history") if isinstance(one, Gap)]
    return [(one.first, one.last, one.is_left_out) for one in found]


def segments(folder: Path) -> list[int]:
    return [first_index for first_index, _ in segment_files(folder / "history")]


@given(
    st.binary(max_size=20), st.integers(0, 1 << 60), st.integers(0, 1 << 60), st.binary(max_size=9)
)
def test_a_record_comes_back_as_the_shared_log_had_it(
    server: bytes, number: int, revision: int, payload: bytes
) -> None:
    one = Record(7, payload, server, number, revision)
    marker = new_marker()
    stored = decode_record(marker, marker + b"".join(EncodedRecord(one).parts))
    assert stored is not None
    assert decode_shared(stored) == one


@pytest.mark.parametrize("stored", [b"", bytes(16), b"\x05" + bytes(16) + b"four"])
def test_what_is_no_such_record_is_refused(stored: bytes) -> None:
    with pytest.raises(ValueError, match="record 7"):
        decode_shared(Record(7, stored))


def test_what_is_written_is_read_before_the_segment_ends(tmp_path: Path) -> None:
    files = history(tmp_path)
    append(files, records(5, 8))
    assert read(tmp_path) == records(5, 8)
    append(files, records(9, 9))
    assert read(tmp_path) == records(5, 9)
    files.close()
    assert (segments(tmp_path), gaps(tmp_path)) == ([5], [])


def test_the_next_run_goes_on_where_the_last_one_has_ended(tmp_path: Path) -> None:
    # It applies some records again.
    written(tmp_path, (1, 4), (3, 9), (10, 11))
    assert read(tmp_path) == records(1, 11)
    assert (segments(tmp_path), gaps(tmp_path)) == ([1, 5, 10], [])


def test_what_was_left_out_is_a_gap(tmp_path: Path) -> None:
    written(tmp_path, (1, 4), (8, 9))
    files = history(tmp_path)
    append(files, [record(10), record(13), record(14)])
    files.close()
    assert [one.index for one in read(tmp_path)] == [1, 2, 3, 4, 8, 9, 10, 13, 14]
    assert gaps(tmp_path) == [(5, 7, True), (11, 12, True)]


def test_a_segment_is_not_longer_than_it_may_be(tmp_path: Path) -> None:
    files = HistoryFiles(tmp_path / "history", PLENTY, segment_bytes=300)
    append(files, records(1, 20))
    append(files, records(21, 40))
    files.close()
    assert read(tmp_path) == records(1, 40)
    sizes = [path.stat().st_size for _, path in segment_files(tmp_path / "history")]
    assert len(sizes) > 5
    assert max(sizes) < 400


@pytest.mark.parametrize("left", ["half a record", "zeros", "anything", "no zero", "the header"])
def test_what_a_crash_has_left_at_the_end_is_cut(tmp_path: Path, left: str) -> None:
    written(tmp_path, (1, 4), (5, 8))
    path = tmp_path / "history" / segment_name(5)
    size = path.stat().st_size
    match left:
        case "half a record":
            os.truncate(path, size - 12)
        case "zeros":
            os.truncate(path, size + 1000)
        case "anything":
            path.write_bytes(path.read_bytes()[:-1] + os.urandom(100))
        case "no zero":
            os.truncate(path, size - 1)
        case "the header":
            os.truncate(path, 10)
    last = {"half a record": 7, "the header": 4}.get(left, 8)
    written(tmp_path, (9, 9))
    assert read(tmp_path) == [*records(1, last), record(9)]
    # What was cut is a gap, and no damage.
    assert gaps(tmp_path) == ([] if last == 8 else [(last + 1, 8, True)])


def test_damage_is_told_from_what_was_left_out(tmp_path: Path) -> None:
    written(tmp_path, (1, 4), (5, 8))
    flip(tmp_path / "history" / segment_name(1), 100)
    assert [one[2] for one in gaps(tmp_path)] == [False]


def test_a_record_that_is_not_of_a_shared_log_is_damage(tmp_path: Path) -> None:
    (tmp_path / "history").mkdir()
    fill(tmp_path / "history", b"short")
    assert gaps(tmp_path) == [(1, 1, False)]


def test_the_oldest_segments_go_when_there_are_too_many_bytes(tmp_path: Path) -> None:
    files = HistoryFiles(tmp_path / "history", 200_000)
    for index in range(1, 100):
        append(files, [record(index, bytes(10_000))])
    files.close()
    sizes = [path.stat().st_size for _, path in segment_files(tmp_path / "history")]
    assert 100_000 < sum(sizes) < 300_000
    assert [one.index for one in read(tmp_path)][-1] == 99
    assert gaps(tmp_path) == []


def test_a_purge_leaves_what_follows_the_oldest_snapshot(tmp_path: Path) -> None:
    written(tmp_path, (1, 4), (5, 8), (9, 12))
    files = history(tmp_path)
    append(files, records(13, 14))
    files.purge(7)
    assert segments(tmp_path) == [5, 9, 13]
    files.purge(8)
    assert segments(tmp_path) == [9, 13]
    files.purge(99)
    append(files, records(15, 15))
    assert read(tmp_path) == records(13, 15)


def test_a_purge_that_the_disk_refuses_is_reported(tmp_path: Path) -> None:
    disk = FailingDisk()
    written(tmp_path, (1, 4))
    files = history(tmp_path, disk)
    append(files, records(5, 8))
    with disk.fail("rename"), pytest.raises(LogError, match="cannot be removed"):
        files.purge(8)
    files.purge(8)
    assert segments(tmp_path) == [5]


@pytest.mark.parametrize("operation", ["write", "rename", "sync"])
def test_after_an_error_it_goes_on_with_a_gap_and_leaves_no_damage(
    tmp_path: Path, operation: str
) -> None:
    disk = FailingDisk()
    files = HistoryFiles(tmp_path / "history", PLENTY, disk=disk, segment_bytes=150)
    append(files, records(1, 2))
    with disk.fail(operation, errno.ENOSPC), pytest.raises(OSError, match=r".*"):
        append(files, records(3, 12))
    # At once: it may be long until it goes on.
    assert not [one for one in read_history(tmp_path / "history") if isinstance(one, Gap | Torn)]
    append(files, records(13, 14))
    files.close()
    found = [one.index for one in read(tmp_path)]
    assert found[:2] == [1, 2]
    assert found[-2:] == [13, 14]
    assert all(is_left_out for _, _, is_left_out in gaps(tmp_path))
    assert list((tmp_path / "history").glob("*.tmp")) == []
    written(tmp_path, (15, 15))


@pytest.mark.parametrize(
    "other",
    [
        record(8, revision=1000),
        Record(8, b"batch 8", b"another", 1, 24),
        record(5, revision=1000),
        record(9, revision=2),
    ],
)
def test_what_is_of_another_log_is_set_aside(tmp_path: Path, other: Record) -> None:
    written(tmp_path, (1, 8))
    files = history(tmp_path)
    append(files, [other])
    files.close()
    assert read(tmp_path) == [other]
    assert read(tmp_path, "history.aside") == records(1, 8)


def other(index: int) -> Record:
    """Return a record that another server has written with the same index and revision."""
    return Record(index, b"other %d" % index, b"b boot", index, 3 * index)


@pytest.mark.parametrize("begin", [4, 6])
def test_a_log_that_was_restored_before_the_last_record_is_noticed(
    tmp_path: Path, begin: int
) -> None:
    written(tmp_path, (1, 8))
    files = history(tmp_path)
    # Those up to 5 were in the backup. It ends before it comes to the last one that is there.
    for one in [*records(begin, 5), other(6), other(7)]:
        append(files, [one])
    files.close()
    assert read(tmp_path) == [other(6), other(7)]
    assert read(tmp_path, "history.aside") == records(1, 8)


def test_records_that_come_again_are_compared_also_over_a_gap(tmp_path: Path) -> None:
    written(tmp_path, (1, 2), (5, 8))
    files = history(tmp_path)
    append(files, records(2, 9))
    files.close()
    assert read(tmp_path) == [*records(1, 2), *records(5, 9)]
    written(tmp_path, (20, 21))
    files = history(tmp_path)
    append(files, [*records(9, 10), other(20)])
    files.close()
    assert read(tmp_path) == [other(20)]


def test_what_is_of_another_service_is_set_aside(tmp_path: Path) -> None:
    written(tmp_path, (1, 8))
    for service in (b"another", b"a third one"):
        files = history(tmp_path)
        files.service = service
        append(files, records(20, 21))
        files.close()
        assert read(tmp_path) == records(20, 21)
    assert read(tmp_path, "history.aside") == records(20, 21)


def test_the_service_of_a_history_is_known(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="holds no history"):
        check_service(tmp_path, SERVICE)
    (tmp_path / "cluster").mkdir()
    written(tmp_path / "cluster", (1, 2))
    check_service(tmp_path, SERVICE)
    with pytest.raises(LogError, match="of another service"):
        check_service(tmp_path, b"another")


def test_an_epoch_begins_anew(tmp_path: Path) -> None:
    written(tmp_path, (1, 8))
    files = history(tmp_path)
    files.set_aside()
    append(files, records(4, 5))
    assert read(tmp_path) == records(4, 5)

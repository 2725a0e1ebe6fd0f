"""The log on a disk that works: append, read, open again, roll, purge."""

import contextlib
import threading
from pathlib import Path

import pytest

from paddock.log.file.file_log import FileLog
from paddock.log.file.segment import RECORD_BYTES, SEGMENT_HEADER_BYTES, SPARE_BYTES
from paddock.log.interface import Log, LogCorruptError, LogError, Record
from tests.support.logs import Durability, Reports
from tests.unit.log.helpers import FailingDisk, Proposer, fill, payloads, read, segments


def test_file_log_is_a_log(tmp_path: Path) -> None:
    log: Log = FileLog(tmp_path)
    log.close()


def test_empty_log_has_no_records(tmp_path: Path) -> None:
    with contextlib.closing(FileLog(tmp_path)) as log:
        assert log.last_index == 0
        assert list(log.records(0)) == []
    assert segments(tmp_path) == []


def test_indices_are_contiguous_and_begin_with_one(tmp_path: Path) -> None:
    with contextlib.closing(FileLog(tmp_path)) as log:
        proposer = Proposer(log)
        assert proposer.propose(b"a") == (1, Durability.DURABLE, "")
        assert proposer.propose(b"b") == (2, Durability.DURABLE, "")
        assert log.last_index == 2


def test_records_are_there_when_the_log_is_opened_again(tmp_path: Path) -> None:
    fill(tmp_path, b"a", b"", b"c" * 1000)
    assert read(tmp_path) == [Record(1, b"a"), Record(2, b""), Record(3, b"c" * 1000)]
    with contextlib.closing(FileLog(tmp_path)) as log:
        assert log.last_index == 3
        Proposer(log).write(b"d")
    assert payloads(tmp_path) == [b"a", b"", b"c" * 1000, b"d"]


def test_records_are_read_after_an_index(tmp_path: Path) -> None:
    fill(tmp_path, b"a", b"b", b"c", segment_bytes=1)
    for after in range(4):
        assert [record.index for record in read(tmp_path, after)] == [1, 2, 3][after:]
    assert read(tmp_path, 100) == []


def test_records_can_be_read_while_the_log_runs(tmp_path: Path) -> None:
    with contextlib.closing(FileLog(tmp_path)) as log:
        proposer = Proposer(log)
        proposer.write(b"a", b"b")
        assert [record.payload for record in log.records(0)] == [b"a", b"b"]


def test_full_segment_is_followed_by_another(tmp_path: Path) -> None:
    room_for_two = SEGMENT_HEADER_BYTES + 2 * (RECORD_BYTES + 10) + SPARE_BYTES
    expected = [bytes([i]) * 10 for i in range(5)]
    fill(tmp_path, *expected, segment_bytes=room_for_two)
    assert [path.name for path in segments(tmp_path)] == [
        "00000000000000000001.log",
        "00000000000000000003.log",
        "00000000000000000005.log",
    ]
    assert all(path.stat().st_size == room_for_two for path in segments(tmp_path))
    assert payloads(tmp_path) == expected


def test_payload_larger_than_a_segment_gets_one_that_fits(tmp_path: Path) -> None:
    expected = [b"small", b"L" * 10_000, b"small"]
    fill(tmp_path, *expected, segment_bytes=100)
    assert payloads(tmp_path) == expected
    assert len(segments(tmp_path)) == 3


def test_segment_grows_in_steps_up_to_its_limit(tmp_path: Path) -> None:
    with contextlib.closing(FileLog(tmp_path, segment_bytes=1000, step_bytes=300)) as log:
        proposer = Proposer(log)
        sizes = []
        for _ in range(10):
            proposer.write(b"x" * 74)
            sizes.append(segments(tmp_path)[-1].stat().st_size)
    begin = SEGMENT_HEADER_BYTES + SPARE_BYTES
    assert sizes == [*[begin + 300] * 3, *[begin + 600] * 3, *[begin + 900] * 3, begin + 300]
    assert payloads(tmp_path) == [b"x" * 74] * 10


def test_last_step_of_a_segment_ends_at_its_limit(tmp_path: Path) -> None:
    with contextlib.closing(FileLog(tmp_path, segment_bytes=500, step_bytes=300)) as log:
        Proposer(log).write(*[b"x" * 76] * 4)
    assert [path.stat().st_size for path in segments(tmp_path)] == [500]


def test_record_larger_than_a_step_gets_its_space_at_once(tmp_path: Path) -> None:
    expected = [b"small", b"L" * 700, b"small"]
    with contextlib.closing(FileLog(tmp_path, segment_bytes=1000, step_bytes=100)) as log:
        Proposer(log).write(*expected)
    assert len(segments(tmp_path)) == 1
    assert payloads(tmp_path) == expected


def test_segment_that_is_opened_again_goes_on_growing(tmp_path: Path) -> None:
    for number in range(5):
        with contextlib.closing(FileLog(tmp_path, segment_bytes=1000, step_bytes=100)) as log:
            Proposer(log).write(bytes([number]) * 76)
    assert len(segments(tmp_path)) == 1
    assert payloads(tmp_path) == [bytes([number]) * 76 for number in range(5)]


def test_record_is_written_and_synced_before_it_is_reported(tmp_path: Path) -> None:
    disk = FailingDisk()
    with contextlib.closing(FileLog(tmp_path, disk=disk)) as log:
        proposer = Proposer(log)
        proposer.write(b"a")
        disk.calls.clear()
        proposer.write(b"b")
        assert disk.calls == ["write", "sync"]


def test_segment_is_synced_before_it_has_its_name_and_its_name_before_it_is_used(
    tmp_path: Path,
) -> None:
    disk = FailingDisk()
    with contextlib.closing(FileLog(tmp_path, disk=disk)) as log:
        disk.calls.clear()
        Proposer(log).write(b"a")
    made = [call for call in disk.calls if call != "write"]
    assert made == ["sync", "rename", "sync_folder", "preallocate", "sync", "sync"]


def test_purge_removes_what_only_holds_old_records(tmp_path: Path) -> None:
    with contextlib.closing(FileLog(tmp_path, segment_bytes=1)) as log:
        Proposer(log).write(b"a", b"b", b"c", b"d")
        log.purge(2)
        assert [path.stem.lstrip("0") for path in segments(tmp_path)] == ["3", "4"]
        assert [record.index for record in log.records(2)] == [3, 4]
        log.purge(100)
        assert [path.stem.lstrip("0") for path in segments(tmp_path)] == ["4"]
    assert read(tmp_path, 3) == [Record(4, b"d")]


def test_purge_keeps_a_segment_with_one_record_that_is_needed(tmp_path: Path) -> None:
    with contextlib.closing(FileLog(tmp_path, segment_bytes=200)) as log:
        Proposer(log).write(*[b"x" * 20] * 10)
        before = segments(tmp_path)
        log.purge(2)
        assert segments(tmp_path) == before


def test_purged_segment_has_lost_its_name_for_good_before_its_bytes_go(tmp_path: Path) -> None:
    disk = FailingDisk()
    with contextlib.closing(FileLog(tmp_path, segment_bytes=1, disk=disk)) as log:
        Proposer(log).write(b"a", b"b")
        disk.calls.clear()
        log.purge(1)
        assert disk.calls == ["rename", "sync_folder", "remove"]


def test_purge_that_the_disk_refuses_can_be_repeated(tmp_path: Path) -> None:
    disk = FailingDisk()
    with contextlib.closing(FileLog(tmp_path, segment_bytes=1, disk=disk)) as log:
        Proposer(log).write(b"a", b"b")
        with disk.fail("remove"), pytest.raises(LogError, match="cannot be removed"):
            log.purge(1)
        log.purge(1)
        assert len(segments(tmp_path)) == 1
        assert not list(tmp_path.glob("*.tmp"))


def test_purged_records_are_reported_missing(tmp_path: Path) -> None:
    with contextlib.closing(FileLog(tmp_path, segment_bytes=1)) as log:
        Proposer(log).write(b"a", b"b", b"c")
        log.purge(2)
    with pytest.raises(LogCorruptError, match=r"begins with record 3.*no whole snapshot"):
        read(tmp_path)
    with pytest.raises(LogCorruptError, match=r"the snapshot at 1.*record 2 is missing"):
        read(tmp_path, 1)


def test_log_goes_on_behind_a_snapshot_that_is_ahead_of_it(tmp_path: Path) -> None:
    fill(tmp_path, b"a", b"b")
    with contextlib.closing(FileLog(tmp_path)) as log:
        proposer = Proposer(log, after=10)
        assert log.last_index == 10
        assert proposer.propose(b"k")[0] == 11
    assert read(tmp_path, 10) == [Record(11, b"k")]
    with pytest.raises(LogCorruptError, match="record 3 is damaged or missing"):
        read(tmp_path)


def test_log_goes_on_behind_a_snapshot_when_its_files_are_gone(tmp_path: Path) -> None:
    with contextlib.closing(FileLog(tmp_path)) as log:
        Proposer(log, after=10)
        with pytest.raises(LogCorruptError, match="all files of the log are missing"):
            list(log.records(5))


def test_snapshot_behind_the_log_changes_nothing(tmp_path: Path) -> None:
    fill(tmp_path, b"a", b"b")
    with contextlib.closing(FileLog(tmp_path)) as log:
        assert Proposer(log, after=1).propose(b"c")[0] == 3
    assert payloads(tmp_path) == [b"a", b"b", b"c"]
    assert len(segments(tmp_path)) == 1


def test_start_tells_the_records_behind_the_snapshot_in_order(tmp_path: Path) -> None:
    fill(tmp_path, b"a", b"b", b"c", segment_bytes=1)
    for after in range(4):
        with contextlib.closing(FileLog(tmp_path)) as log:
            listener = Reports(log, lambda *_: None)
            log.start(listener, after)
            told = [Record(1, b"a"), Record(2, b"b"), Record(3, b"c")]
            assert listener.records == told[after:]


def test_a_listener_that_cannot_take_a_record_leaves_the_files_as_they_were(
    tmp_path: Path,
) -> None:
    class Refusing(Reports):
        def committed(self, record: Record) -> None:
            raise MemoryError

    fill(tmp_path, b"a", b"b")
    (path,) = segments(tmp_path)
    # A torn tail, which `start` would cut.
    path.write_bytes(path.read_bytes().rstrip(b"\0") + b"\0\0\0\5")
    before = path.read_bytes()
    with contextlib.closing(FileLog(tmp_path)) as log:
        with pytest.raises(MemoryError):
            log.start(Refusing(log, lambda *_: None))
    assert path.read_bytes() == before


def test_close_waits_for_the_proposal_under_way(tmp_path: Path) -> None:
    reported: list[int] = []
    log = FileLog(tmp_path)
    log.start(Reports(log, lambda index, _outcome, _reason: reported.append(index)))
    log.propose(0, b"a")
    log.close()
    log.close()
    assert reported == [1]
    assert payloads(tmp_path) == [b"a"]


def test_second_proposal_under_way_is_our_bug(tmp_path: Path) -> None:
    entered = threading.Event()
    go_on = threading.Event()

    class SlowDisk(FailingDisk):
        def sync(self, file: int) -> None:
            entered.set()
            go_on.wait()
            super().sync(file)

    with contextlib.closing(FileLog(tmp_path, disk=SlowDisk())) as log:
        log.start(Reports(log, lambda *_: None))
        log.propose(0, b"a")
        entered.wait()
        with pytest.raises(AssertionError, match="under way"):
            log.propose(1, b"b")
        go_on.set()


def test_foreign_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "1.log").write_text("mine too")
    fill(tmp_path, b"a")
    assert payloads(tmp_path) == [b"a"]
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_leftover_of_a_segment_in_the_making_is_removed(tmp_path: Path) -> None:
    fill(tmp_path, b"a")
    leftover = tmp_path / "00000000000000000002.tmp"
    leftover.write_bytes(b"half")
    with contextlib.closing(FileLog(tmp_path)) as log:
        assert leftover.exists(), "what opening finds may be damage: it changes nothing"
        Proposer(log)
        assert not leftover.exists()
    assert payloads(tmp_path) == [b"a"]


def test_folder_that_is_missing_is_reported(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="cannot be opened"):
        FileLog(tmp_path / "missing")

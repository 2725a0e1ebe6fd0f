"""A disk that refuses: full, then with room again; a failed write or sync, then recovered."""

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.log.file.file_log import FileLog
from paddock.log.interface import LogError, Record
from tests.support import disks
from tests.support.logs import Durability
from tests.unit.log.helpers import FailingDisk, Proposer, payloads, read, segments

TWO_RECORDS = 28 + 2 * (25 + 10) + 1
TEN = b"x" * 10


@pytest.fixture
def disk() -> FailingDisk:
    return FailingDisk()


@pytest.fixture
def log(tmp_path: Path, disk: FailingDisk) -> Iterator[FileLog]:
    with contextlib.closing(FileLog(tmp_path, segment_bytes=TWO_RECORDS, disk=disk)) as log:
        yield log


@pytest.fixture
def proposer(log: FileLog) -> Proposer:
    return Proposer(log)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("operation", ["preallocate", "write", "sync", "rename", "sync_folder"])
def test_full_disk_refuses_the_batch_and_takes_the_next_one_when_there_is_room(
    tmp_path: Path, disk: FailingDisk, proposer: Proposer, operation: str, number: int
) -> None:
    proposer.write(TEN, TEN)
    with disk.fail(operation, number):
        for _ in range(3):
            index, outcome, reason = proposer.propose(b"refused")
            assert (index, outcome) == (3, Durability.NOT_WRITTEN)
            assert reason.startswith("no room for the log: ")
    assert not list(tmp_path.glob("*.tmp"))
    proposer.write(b"third")
    proposer.log.close()
    assert payloads(tmp_path) == [TEN, TEN, b"third"]


def test_full_disk_does_not_stop_what_fits_into_the_current_segment(
    disk: FailingDisk, proposer: Proposer
) -> None:
    proposer.write(TEN)
    with disk.fail("preallocate", errno.ENOSPC):
        proposer.write(TEN)
        assert proposer.propose(TEN)[1] is Durability.NOT_WRITTEN


def test_segment_that_could_not_grow_takes_nothing_before_it_can(
    tmp_path: Path, disk: FailingDisk
) -> None:
    with contextlib.closing(FileLog(tmp_path, step_bytes=100, disk=disk)) as log:
        proposer = Proposer(log)
        proposer.write(TEN)
        for operation in ("preallocate", "write", "sync"):
            with disk.fail(operation, errno.ENOSPC):
                assert proposer.propose(b"large" * 20)[1] is Durability.NOT_WRITTEN
                # Nor what would fit into the space that there is.
                assert proposer.propose(TEN)[1] is Durability.NOT_WRITTEN
        proposer.write(TEN, b"large" * 20)
    assert len(segments(tmp_path)) == 1
    assert payloads(tmp_path) == [TEN, TEN, b"large" * 20]


def test_small_batch_after_a_refused_large_one_is_not_superseded(
    tmp_path: Path, disk: FailingDisk, proposer: Proposer
) -> None:
    proposer.write(TEN)
    # The new segment has its name already when its making fails.
    with disk.fail("sync_folder", errno.ENOSPC):
        assert proposer.propose(b"large" * 10)[1] is Durability.NOT_WRITTEN
    proposer.write(b"small")
    proposer.log.close()
    assert payloads(tmp_path) == [TEN, b"small"]


def test_failed_sync_has_an_unknown_outcome_and_stops_the_log(
    disk: FailingDisk, proposer: Proposer
) -> None:
    proposer.write(b"a")
    with disk.fail("sync"):
        index, outcome, reason = proposer.propose(b"b")
    assert (index, outcome) == (2, Durability.UNKNOWN)
    assert "Input/output error" in reason
    assert proposer.log.last_index == 1
    assert list(proposer.log.records(0)) == [Record(1, b"a")]
    with pytest.raises(AssertionError, match="recover first"):
        proposer.log.propose(9, b"c")


def test_record_that_survived_a_failed_sync_is_written_again_to_a_new_segment(
    tmp_path: Path, disk: FailingDisk, proposer: Proposer
) -> None:
    proposer.write(b"a")
    with disk.fail("sync"):
        proposer.propose(b"b")
    assert proposer.recover() == [Record(2, b"b")]
    assert [path.stem.lstrip("0") for path in segments(tmp_path)] == ["1", "2"]
    proposer.write(b"c")
    proposer.log.close()
    assert payloads(tmp_path) == [b"a", b"b", b"c"]


def test_record_that_did_not_survive_never_comes_back(
    tmp_path: Path, disk: FailingDisk, proposer: Proposer
) -> None:
    proposer.write(b"a")
    with disk.fail("write"):
        assert proposer.propose(b"b")[1] is Durability.UNKNOWN
    old = segments(tmp_path)[0]
    half_written = old.read_bytes()
    assert proposer.recover() == []
    proposer.write(b"c")
    proposer.log.close()
    assert old.read_bytes() == half_written
    assert payloads(tmp_path) == [b"a", b"c"]


def test_record_that_the_kernel_hid_and_the_disk_has_is_superseded(
    tmp_path: Path, disk: FailingDisk, proposer: Proposer
) -> None:
    proposer.write(b"a")
    path = segments(tmp_path)[0]
    before = path.read_bytes()
    with disk.fail("sync"):
        proposer.propose(b"b")
    on_the_disk = path.read_bytes()
    path.write_bytes(before)
    assert proposer.recover() == []
    proposer.log.close()
    path.write_bytes(on_the_disk)
    assert payloads(tmp_path) == [b"a"]


@pytest.mark.parametrize("survives", [True, False])
def test_first_record_of_a_segment_is_recovered_under_the_same_name(
    tmp_path: Path, disk: FailingDisk, proposer: Proposer, survives: bool
) -> None:
    class Armed(FailingDisk):
        """Fails from the first record of a new segment on, when there is space for it."""

        def sync(self, file: int) -> None:
            super().sync(file)
            if "preallocate" in self.calls:
                self.failing["sync" if survives else "write"] = errno.EIO

    proposer.log.close()
    armed = Armed()
    with contextlib.closing(FileLog(tmp_path, disk=armed)) as log:
        proposer = Proposer(log)
        assert proposer.propose(b"a")[1] is Durability.UNKNOWN
        with pytest.raises(LogError, match="cannot be written"):
            log.recover()
        armed.failing.clear()
        expected = [Record(1, b"a")] if survives else []
        assert proposer.recover() == expected
        armed.failing.clear()
        assert len(segments(tmp_path)) == 1
    assert read(tmp_path) == expected


@pytest.mark.parametrize("operation", ["read", "write", "sync", "rename", "sync_folder"])
def test_recovery_is_refused_while_the_disk_is_broken_and_then_succeeds(
    tmp_path: Path, disk: FailingDisk, proposer: Proposer, operation: str
) -> None:
    proposer.write(b"a")
    with disk.fail("sync"):
        proposer.propose(b"b")
    with disk.fail(operation):
        for _ in range(2):
            with pytest.raises(LogError, match="cannot be written"):
                proposer.recover()
    assert proposer.recover() == [Record(2, b"b")]
    proposer.log.close()
    assert payloads(tmp_path) == [b"a", b"b"]


def test_segment_that_cannot_be_made_leaves_nothing_to_recover(
    tmp_path: Path, disk: FailingDisk, proposer: Proposer
) -> None:
    proposer.write(TEN, TEN)
    with disk.fail("preallocate", errno.EIO):
        assert proposer.propose(b"c")[1] is Durability.UNKNOWN
    assert proposer.recover() == []
    proposer.write(b"d")
    proposer.log.close()
    assert payloads(tmp_path) == [TEN, TEN, b"d"]


@pytest.mark.parametrize("operation", ["preallocate", "write", "sync"])
def test_segment_that_fails_to_grow_is_followed_by_another(
    tmp_path: Path, disk: FailingDisk, operation: str
) -> None:
    with contextlib.closing(FileLog(tmp_path, step_bytes=100, disk=disk)) as log:
        proposer = Proposer(log)
        proposer.write(TEN)
        with disk.fail(operation, errno.EIO):
            assert proposer.propose(b"large" * 20)[1] is Durability.UNKNOWN
        assert proposer.recover() == []
        proposer.write(b"d")
    assert payloads(tmp_path) == [TEN, b"d"]


def test_log_that_failed_can_be_closed_and_opened_without_recovery(
    tmp_path: Path, disk: FailingDisk, proposer: Proposer
) -> None:
    proposer.write(b"a")
    with disk.fail("sync"):
        proposer.propose(b"b")
        proposer.log.close()
    assert payloads(tmp_path) == [b"a", b"b"]


def test_name_of_a_segment_is_synced_again_when_the_log_is_opened(
    tmp_path: Path, disk: FailingDisk, proposer: Proposer
) -> None:
    # Found by the power cuts: a segment whose name had not arrived got durable records.
    with disk.fail("sync_folder"):
        assert proposer.propose(b"a")[1] is Durability.UNKNOWN
    proposer.log.close()
    with contextlib.closing(FileLog(tmp_path, disk=disk)) as log:
        with disk.fail("sync_folder"), pytest.raises(LogError, match="cannot be opened"):
            Proposer(log)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with disks.small_disk(tmp_path / "small", 256 << 10) as folder:
        yield folder


def test_really_full_disk_refuses_and_resumes_when_there_is_room(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(120 * 1024))
    written = []
    with contextlib.closing(FileLog(small_disk, segment_bytes=32 * 1024)) as log:
        proposer = Proposer(log)
        for number in range(100):
            payload = bytes([number]) * 5000
            _, outcome, reason = proposer.propose(payload)
            if outcome is not Durability.DURABLE:
                break
            written.append(payload)
        assert outcome is Durability.NOT_WRITTEN
        assert reason == "no room for the log: No space left on device"
        assert len(written) > 10
        ballast.unlink()
        proposer.write(b"room again")
    assert payloads(small_disk) == [*written, b"room again"]

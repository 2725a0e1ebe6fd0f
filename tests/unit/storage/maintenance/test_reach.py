"""Which states can be rebuilt from snapshots and records."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from paddock.state.entry import SYNC, Batch, Entry
from paddock.storage.maintenance.reach import Moment, Reach, Reached, Unreached, first_time_ms


def at(index: int) -> Moment:
    return Moment(index, 10 * index, 1000 * index)


def found(begins: list[int], records: set[int], end: int) -> Reach | None:
    reached = Reached()
    for index in sorted(records):
        reached.take(index)
    return reached.reach([at(index) for index in begins], at(end))


def test_with_all_records_everything_behind_the_first_snapshot_is_reached() -> None:
    assert found([5, 9], set(range(6, 13)), 12) == Reach(at(5), at(12))
    assert found([0, 5], set(range(1, 13)), 12) == Reach(at(0), at(12))


def test_without_a_snapshot_nothing_is_reached() -> None:
    assert found([], {6, 7}, 7) is None


def test_behind_a_missing_record_it_goes_on_with_the_next_snapshot() -> None:
    records = set(range(1, 13)) - {7}
    assert found([5, 9], records, 12) == Reach(at(5), at(12), (Unreached(6, at(9)),))
    # A snapshot in the middle of what is missing spans nothing.
    records = set(range(1, 13)) - {7, 8, 10, 11}
    assert found([5, 9, 12], records, 12) == Reach(
        at(5), at(12), (Unreached(6, at(9)), Unreached(9, at(12)))
    )


def test_a_log_that_begins_behind_the_first_snapshot_is_a_gap() -> None:
    assert found([5, 9], {8, 9, 10}, 10) == Reach(at(5), at(10), (Unreached(5, at(9)),))


@given(st.sets(st.integers(0, 20), min_size=1), st.sets(st.integers(1, 20)))
def test_a_state_is_in_a_gap_if_and_only_if_it_cannot_be_rebuilt(
    begins: set[int], records: set[int]
) -> None:
    last = max(begins)
    end = next(index for index in range(last, 22) if index + 1 not in records)
    reach = found(sorted(begins), records, end)
    assert reach is not None
    for index in range(min(begins), end + 1):
        base = max(one for one in begins if one <= index)
        is_rebuilt = any(set(range(one + 1, index + 1)) <= records for one in begins if one <= base)
        in_gap = any(gap.after < index < gap.resumes.index for gap in reach.gaps)
        assert is_rebuilt != in_gap


def test_the_time_of_a_batch_is_that_of_its_first_entry() -> None:
    entries = [Entry(SYNC, b"", time_ms=7), Entry(SYNC, b"", time_ms=9)]
    assert first_time_ms(Batch(entries, 0, 0).encode()) == 7
    assert first_time_ms(Batch([], 0, 0).encode()) == 0
    assert first_time_ms(b"no batch") == 0

"""What a purge keeps for history."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from paddock.log.file.segments import segment_name
from paddock.storage.retention import Retention, StoredSegment, StoredSnapshot, oldest_kept
from paddock.storage.snapshots import snapshot_name

# Snapshots at 10, 20, 30, 40, one each hour, of 100 bytes; a segment for every five records.
HOUR = 3600.0
SNAPSHOTS = [StoredSnapshot(10 * n, n * HOUR, 100) for n in range(1, 5)]
SEGMENTS = [StoredSegment(first, 1000) for first in range(1, 45, 5)]
NEEDED = 40
PLENTY = 1 << 40


def test_history_begins_with_the_newest_snapshot_that_is_old_enough() -> None:
    # At 2:30 the newest snapshot was the one at 20.
    assert oldest_kept(SNAPSHOTS, SEGMENTS, NEEDED, 2.5 * HOUR, PLENTY) == 20
    assert oldest_kept(SNAPSHOTS, SEGMENTS, NEEDED, 3 * HOUR, PLENTY) == 20
    assert oldest_kept(SNAPSHOTS, SEGMENTS, NEEDED, 3.1 * HOUR, PLENTY) == 30


def test_what_a_start_needs_is_kept_however_old_and_large_it_is() -> None:
    assert oldest_kept(SNAPSHOTS, SEGMENTS, NEEDED, 9 * HOUR, PLENTY) == NEEDED
    assert oldest_kept(SNAPSHOTS, SEGMENTS, NEEDED, 0, 0) == NEEDED
    assert oldest_kept(SNAPSHOTS, SEGMENTS, 20, 9 * HOUR, 0) == 20


def test_a_log_from_its_first_record_needs_no_snapshot_before_it() -> None:
    assert oldest_kept(SNAPSHOTS, SEGMENTS, NEEDED, 0.5 * HOUR, PLENTY) == 0
    # Without those records, nothing can be built of the ones up to the first snapshot.
    assert oldest_kept(SNAPSHOTS, SEGMENTS[1:], NEEDED, 0.5 * HOUR, PLENTY) == 10


def test_what_is_kept_for_history_alone_is_bounded_and_the_oldest_goes_first() -> None:
    # From 30 on: one snapshot, and the records 31 to 40, in two segments.
    assert oldest_kept(SNAPSHOTS, SEGMENTS, NEEDED, 0, 2100) == 30
    assert oldest_kept(SNAPSHOTS, SEGMENTS, NEEDED, 0, 2099) == NEEDED
    assert oldest_kept(SNAPSHOTS, SEGMENTS, NEEDED, 0, 4200) == 20


def test_where_no_start_needs_the_log_all_of_it_counts() -> None:
    # The records 41 to 45 as well.
    for bytes_max, begin in ((3100, 30), (3099, NEEDED)):
        assert oldest_kept(SNAPSHOTS, SEGMENTS, NEEDED, 0, bytes_max, is_log_needed=False) == begin


@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(0, 50), st.integers(0, 9)), max_size=12),
    st.lists(st.tuples(st.integers(1, 60), st.integers(0, 9)), max_size=12),
    st.data(),
)
def test_a_snapshot_goes_if_the_next_one_is_too_old_or_there_is_too_much(
    given_snapshots: list[tuple[int, int, int]],
    given_segments: list[tuple[int, int]],
    data: st.DataObject,
) -> None:
    by_index = {index: (time, size) for index, time, size in given_snapshots} or {1: (0, 0)}
    # Clocks do not go back here.
    times = sorted(time for time, _ in by_index.values())
    snapshots = [
        StoredSnapshot(index, time, by_index[index][1])
        for index, time in zip(sorted(by_index), times, strict=True)
    ]
    segments = [StoredSegment(*one) for one in sorted(dict(given_segments).items())]
    needed = data.draw(st.sampled_from([one.index for one in snapshots]))
    since, bytes_max = data.draw(st.integers(0, 50)), data.draw(st.integers(0, 60))
    is_log_needed = data.draw(st.booleans())
    begin = oldest_kept(snapshots, segments, needed, since, bytes_max, is_log_needed=is_log_needed)

    def purged(below: int) -> set[int]:
        firsts = [one.first_index for one in segments]
        return {first for first, end in itertools.pairwise(firsts) if end <= below + 1}

    def history_bytes(start: int) -> int:
        log = purged(needed) if is_log_needed else {one.first_index for one in segments}
        kept = log - purged(start)
        return sum(one.size_bytes for one in segments if one.first_index in kept) + sum(
            one.size_bytes for one in snapshots if start <= one.index < needed
        )

    begins = [one for one in snapshots if one.index <= needed]
    if is_log_needed and segments and segments[0].first_index == 1:
        begins.insert(0, StoredSnapshot(0, 0, 0))
    assert begin in [one.index for one in begins]
    for one, following in itertools.pairwise(begins):
        goes = following.time < since or history_bytes(one.index) > bytes_max
        assert goes == (one.index < begin)


def test_the_times_and_sizes_are_those_of_the_files(tmp_path: Path) -> None:
    for segment in SEGMENTS:
        (tmp_path / segment_name(segment.first_index)).write_bytes(bytes(segment.size_bytes))
    (tmp_path / snapshot_name(10)).touch()
    for seconds, begin in ((1.5 * HOUR, 20), (2.5 * HOUR, 10), (99 * HOUR, 0)):
        retention = Retention(seconds, PLENTY, tmp_path, now=lambda: 4 * HOUR)
        assert retention.oldest_kept(SNAPSHOTS, NEEDED) == begin
    tight = Retention(99 * HOUR, 2100, tmp_path, now=lambda: 4 * HOUR)
    assert tight.oldest_kept(SNAPSHOTS, NEEDED) == 30
    os.truncate(tmp_path / segment_name(31), 0)
    assert tight.oldest_kept(SNAPSHOTS, NEEDED) == 30
    os.truncate(tmp_path / segment_name(36), 1001)
    assert tight.oldest_kept(SNAPSHOTS, NEEDED) == 30


def test_a_log_that_has_not_begun_is_kept_from_its_snapshot_on(tmp_path: Path) -> None:
    retention = Retention(60, 1 << 30, tmp_path / "none", is_log_needed=False)
    assert retention.oldest_kept([StoredSnapshot(3, 0.0, 10)], 3) == 3

"""Servers that share a log have the same state, whatever order their batches are committed in."""

from __future__ import annotations

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from paddock.state.roster import DEPOSED, JOINED, LEFT
from paddock.state.snapshot import Snapshot, restore
from tests.property.bounds import examples
from tests.property.dump import dump
from tests.property.shared_log import Follower, Move, moves, write_log


@examples(150)
@given(moves)
def test_each_batch_counts_at_most_once_in_order_and_only_while_its_boot_is_a_member(
    drawn: list[Move],
) -> None:
    log = write_log(drawn)
    follower = Follower()
    alive: set[bytes] = set()
    over: set[bytes] = set()
    # How many batches of a boot count.
    counts: dict[bytes, int] = {}
    for record in log:
        seen = len(follower.events)
        follower.follow(record)
        for boot, kind, number in follower.events[seen:]:
            if kind == JOINED:
                assert boot not in alive | over
                alive.add(boot)
            elif kind in (LEFT, DEPOSED):
                alive.remove(boot)
                over.add(boot)
            elif kind == 0:
                assert boot in alive
                assert number == counts.get(boot, 0)
                counts[boot] = number + 1
        assert alive == follower.roster.members.keys()
    for boot, member in follower.roster.members.items():
        assert member.next == counts[boot]


@examples(100)
@given(moves, st.lists(st.integers(1, 12), min_size=1, max_size=6))
def test_a_server_that_starts_from_snapshots_has_the_same_state_after_each_record(
    drawn: list[Move], paces: list[int]
) -> None:
    log = write_log(drawn)
    one, other = Follower(), Follower()
    since = starts = 0
    for record in log:
        one.follow(record)
        other.follow(record)
        since += 1
        if since >= paces[starts % len(paces)] and not other.roster.held_count:
            other = Follower(restore(Snapshot(other.machine).chunks(2)))
            since = 0
            starts += 1
        assert one.machine.shared_digest() == other.machine.shared_digest()
    assert dump(one.machine) == dump(other.machine)


@examples(60)
@given(moves, st.floats(0, 1), st.integers(0, 3))
def test_a_snapshot_is_its_point_also_when_the_roster_changes_before_it_is_written(
    drawn: list[Move], point: float, pace: int
) -> None:
    log = write_log(drawn)
    follower = Follower()
    later = iter(log)
    for record in islice(later, int(point * len(log))):
        follower.follow(record)
    for record in later:
        follower.follow(record)
        if not follower.roster.held_count:
            break
    if follower.roster.held_count:
        return
    then = dump(follower.machine)
    written = []
    for chunk in Snapshot(follower.machine).chunks(1):
        written.append(chunk)
        for record in islice(later, pace):
            follower.follow(record)
    assert dump(restore(written)) == then

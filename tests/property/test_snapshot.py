"""A snapshot is the state at one point of the log, also when the log goes on meanwhile."""

from __future__ import annotations

from itertools import islice, pairwise

from hypothesis import given
from hypothesis import strategies as st

from paddock.state.machine import StateMachine
from paddock.state.snapshot import Snapshot, restore
from tests.property.actions import Action, changes, crowded
from tests.property.bounds import examples
from tests.property.dump import dump
from tests.property.pair import log_of, replay


@examples(60)
@given(changes, st.integers(1, 5))
def test_a_restored_snapshot_equals_the_replayed_log(
    history: list[Action], nodes_a_chunk: int
) -> None:
    machine = replay(log_of(history))
    restored = restore(Snapshot(machine).chunks(nodes_a_chunk))
    assert dump(restored) == dump(machine) == dump(replay(log_of(history)))


@examples(100)
@given(
    history=st.one_of(changes, crowded),
    point=st.floats(0, 1),
    nodes_a_chunk=st.integers(1, 4),
    # How many entries are applied before each chunk, and how often the backlog is taken.
    pace=st.lists(st.integers(0, 4), min_size=3, max_size=20),
    take_every=st.integers(1, 4),
)
def test_a_snapshot_is_its_point_whatever_is_applied_between_its_chunks(
    history: list[Action],
    point: float,
    nodes_a_chunk: int,
    pace: list[int],
    take_every: int,
) -> None:
    log = log_of(history)
    cut = int(point * len(log))
    machine = replay(log[:cut])
    then = dump(machine)
    later = iter(log[cut:])
    written: list[bytes] = []
    snapshot = Snapshot(machine)
    chunks = snapshot.chunks(nodes_a_chunk)
    applied = 0
    done = False
    while not done:
        for entry in islice(later, pace[len(written) % len(pace)]):
            machine.apply(entry)
            applied += 1
            if applied % take_every == 0:
                written.append(snapshot.take())
        chunk = next(chunks, None)
        done = chunk is None
        written.append(chunk or b"")
    restored = restore(written)
    assert dump(restored) == then
    # The one goes on as if no snapshot had been taken, and the other as if nothing else had been.
    for entry in later:
        machine.apply(entry)
    for entry in log[cut:]:
        restored.apply(entry)
    assert dump(machine) == dump(restored) == dump(replay(log))


@examples(30)
@given(changes, st.floats(0, 1))
def test_a_snapshot_that_is_abandoned_does_not_harm_the_next(
    history: list[Action], point: float
) -> None:
    log = log_of(history)
    cut = int(point * len(log))
    machine = replay(log[:cut])
    given_up = Snapshot(machine)
    chunks = given_up.chunks(2)
    next(chunks)
    for entry in log[cut : cut + 3]:
        machine.apply(entry)
    given_up.abandon()
    for entry in log[cut + 3 :]:
        machine.apply(entry)
    assert dump(restore(Snapshot(machine).chunks(2))) == dump(machine) == dump(replay(log))


@examples(30)
@given(changes, st.lists(st.integers(0, 3000), max_size=10))
def test_the_cuts_of_a_snapshot_do_not_matter(history: list[Action], cuts: list[int]) -> None:
    machine = replay(log_of(history))
    whole = b"".join(Snapshot(machine).chunks())
    edges = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    pieces = [whole[a:b] for a, b in pairwise(edges)]
    assert dump(restore(pieces)) == dump(machine)


def test_a_snapshot_of_nothing_restores_a_fresh_machine() -> None:
    assert dump(restore(Snapshot(StateMachine()).chunks())) == dump(StateMachine())

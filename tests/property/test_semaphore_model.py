"""The semaphore's protocol, every order of every step: never more holders than leases, no deadlock.

A state is what the service has (the line, the leases) and how far each contender is. From each
state every contender may take its next step, which is one request that the service answers; may be
cancelled; or may die, with its nodes. Contenders of ours go by the leases before their own; those
of Curator by how many there are. All states that can be reached are looked at.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Final, NamedTuple

import pytest

OURS: Final = "ours"
CURATORS: Final = "Curator's"


class Step(enum.Enum):
    """How far a contender is."""

    OUT = enum.auto()
    IN_LINE = enum.auto()
    # It saw so, whatever has happened since.
    FIRST = enum.auto()
    AMONG_LEASES = enum.auto()
    HOLDING = enum.auto()
    LEAVING = enum.auto()
    GONE = enum.auto()


class State(NamedTuple):
    line: tuple[int, ...]
    leases: tuple[int, ...]
    steps: tuple[Step, ...]
    # How many places in the line may still be deleted from outside.
    deletes: int

    def at(self, who: int, step: Step) -> State:
        return self._replace(steps=(*self.steps[:who], step, *self.steps[who + 1 :]))

    def without_turn(self, who: int) -> State:
        return self._replace(line=tuple(one for one in self.line if one != who))

    def without_lease(self, who: int) -> State:
        return self._replace(leases=tuple(one for one in self.leases if one != who))

    @property
    def holders(self) -> int:
        return self.steps.count(Step.HOLDING)


def has_lease(state: State, who: int, kind: str, count: int) -> bool:
    if kind == CURATORS:
        return len(state.leases) <= count
    return state.leases.index(who) < count


def own_steps(state: State, who: int, kind: str, count: int) -> Iterator[State]:
    """Yield the states that a contender can reach by its own next step."""
    match state.steps[who]:
        case Step.OUT:
            yield state.at(who, Step.IN_LINE)._replace(line=(*state.line, who))
        case Step.IN_LINE:
            if who not in state.line:
                yield state.at(who, Step.LEAVING)
            elif state.line[0] == who:
                yield state.at(who, Step.FIRST)
        case Step.FIRST:
            yield state.at(who, Step.AMONG_LEASES)._replace(leases=(*state.leases, who))
        case Step.AMONG_LEASES:
            if has_lease(state, who, kind, count):
                yield state.at(who, Step.HOLDING)
        case Step.HOLDING:
            # Its place in the line goes before its lease, or behind it.
            if who in state.line:
                yield state.without_turn(who)
            if who in state.leases:
                yield state.without_lease(who).at(who, Step.LEAVING)
        case Step.LEAVING:
            if who in state.leases:
                yield state.without_lease(who)
            elif who in state.line:
                yield state.without_turn(who)
            else:
                yield state.at(who, Step.GONE)


def misfortunes(state: State, who: int) -> Iterator[State]:
    """Yield the states that others can bring a contender to."""
    if state.steps[who] not in (Step.OUT, Step.LEAVING, Step.GONE):
        yield state.without_turn(who).without_lease(who).at(who, Step.GONE)
        yield state.at(who, Step.LEAVING)
    if state.deletes and who in state.line:
        yield state.without_turn(who)._replace(deletes=state.deletes - 1)


def all_states(kinds: tuple[str, ...], count: int, deletes: int) -> Iterator[tuple[State, bool]]:
    """Yield every reachable state, and whether any contender can go on from it."""
    first = State((), (), (Step.OUT,) * len(kinds), deletes)
    seen, left = {first}, [first]
    while left:
        state = left.pop()
        own = [
            after for who, kind in enumerate(kinds) for after in own_steps(state, who, kind, count)
        ]
        yield state, bool(own)
        others = [after for who in range(len(kinds)) for after in misfortunes(state, who)]
        for after in {*own, *others} - seen:
            seen.add(after)
            left.append(after)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(
    ("kinds", "deletes"),
    [
        ((OURS,) * 4, 0),
        ((OURS,) * 3, 2),
        ((OURS, OURS, CURATORS, CURATORS), 0),
        ((OURS, CURATORS, CURATORS), 1),
    ],
)
def test_there_are_never_more_holders_than_leases(
    kinds: tuple[str, ...], deletes: int, count: int
) -> None:
    most = max(state.holders for state, _ in all_states(kinds, count, deletes))
    assert most == min(count, len(kinds))


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(
    ("kinds", "deletes"), [((OURS,) * 4, 0), ((OURS,) * 3, 2), ((OURS, OURS, CURATORS), 0)]
)
def test_somebody_can_always_go_on(kinds: tuple[str, ...], deletes: int, count: int) -> None:
    for state, goes_on in all_states(kinds, count, deletes):
        assert goes_on or all(step == Step.GONE for step in state.steps), state


def test_by_curators_rule_two_wait_for_each_other_if_a_place_is_deleted() -> None:
    """Why we go by the leases before our own."""
    stuck = [state for state, goes_on in all_states((CURATORS,) * 3, 1, 1) if not goes_on]
    assert any(Step.AMONG_LEASES in state.steps for state in stuck)

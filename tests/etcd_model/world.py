"""One possibility of what could have happened: the records that `worlds.py` works on."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from paddock.log.etcd.etcd_store import RESEND_S_MIN, SLOW_BYTES_PER_S
from paddock.testing.simulation.key_space import KeySpace
from tests.etcd_model.calls import Answer, Append, Batch, Call


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a call is in a world."""

    # What it may answer.
    answers: frozenset[Answer] = frozenset()
    # How often it has changed something.
    done: int = 0


@dataclass(frozen=True, slots=True)
class Watched:
    """A tail in a world."""

    after: int
    # What it shows next. None: it was refused.
    coming: tuple[Batch, ...] | None
    # What it may be refused with.
    refusals: frozenset[Answer] = frozenset()
    # Whether it has shown something, so that it is open for sure.
    is_open: bool = False
    # Whether it belongs to a cluster that is gone.
    is_broken: bool = False


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call that is not over, or one that may still be carried out though its caller has gone."""

    call: Call
    called_at: float
    # Whether the cluster was in trouble meanwhile.
    is_troubled: bool
    is_abandoned: bool = False

    def attempts(self, at: float) -> int:
        """Return how often it may have been carried out by now."""
        if self.is_troubled:
            return self.call.attempts_in_trouble
        if not isinstance(self.call, Append):
            return 1
        resend_s = RESEND_S_MIN + len(self.call.payload) / SLOW_BYTES_PER_S
        return min(self.call.attempts_in_trouble, 1 + int((at - self.called_at) / resend_s))


class State:
    """A key space that is never changed, and what each call does to it."""

    __slots__ = ("content", "outcomes", "space")

    def __init__(self, space: KeySpace, content: Hashable) -> None:
        self.space = space
        self.content = content
        self.outcomes: dict[Hashable, list[Outcome]] = {}


# The state behind a call, or None if nothing has changed; and its answer.
Outcome = tuple[State | None, Answer]


class World:
    """One possibility."""

    __slots__ = ("backup", "calls", "identity", "state", "tails")

    def __init__(
        self,
        state: State,
        backup: State | None,
        calls: dict[int, Progress],
        tails: dict[int, Watched],
    ) -> None:
        self.state = state
        self.backup = backup
        self.calls = calls
        self.tails = tails
        # Equal for two worlds from which the same can follow. There is one state of each content.
        self.identity = id(state), id(backup), frozenset(calls.items()), frozenset(tails.items())

    def with_calls(self, calls: dict[int, Progress]) -> World:
        return World(self.state, self.backup, calls, self.tails)

    def with_tails(self, tails: dict[int, Watched]) -> World:
        return World(self.state, self.backup, self.calls, tails)

"""A state of the past, and the steps by which it goes on.

* A step is what came of one entry of the log: one zxid, with all nodes that it touched. It is told
  right after it was applied, so the state is the one after it.
* A gap is told between two steps: what came there is not in this history, and the state has jumped.
  If there is nothing to go on with, or only behind the moment, a gap is the last that is told, and
  the state stays before it.
* A state stops before the entry that would take it beyond a moment. So at a zxid it has that write,
  and at a time all writes up to it.
* The time of a state may not be known exactly, only that it is not before one time and not behind
  another. Then it is the state at a time only from the latter on; before that, nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from paddock.errors import PaddockError
from paddock.history.moment import Moment, shown_span, shown_time
from paddock.state.machine import StateMachine
from paddock.state.node import Node

# What became of a session.
OPENED = "opened"
ATTACHED = "attached"
ENDED = "ended"


class HistoryError(PaddockError):
    """What was asked for is not in the history. Its text says what there is instead."""


class PurgedError(HistoryError):
    """A server has purged what was being read. The second time it is told what is left."""


class MissingPastError(HistoryError):
    """It is not there any more, or never was; from the zxid `oldest` on everything is.

    That is None if nothing is.
    """

    def __init__(self, text: str, oldest: int | None) -> None:
        super().__init__(text)
        self.oldest = oldest


class NotYetError(HistoryError):
    """The history ends before it."""


@dataclass(frozen=True, slots=True)
class Step:
    """What came of one entry of the log."""

    time_ms: int
    zxid: int
    # Who asked: the session, 0 if it was the service itself; and its identities, as scheme:id, the
    # address of the client among them. A source may not know them.
    session: int
    identities: tuple[str, ...]
    # The name of the operation, and its result code.
    operation: str
    error: int
    # The nodes that it created, changed or deleted, each once.
    paths: tuple[bytes, ...]
    # What became of a session: which one, what, and its timeout; None if nothing did.
    session_change: tuple[int, str, int] | None = None
    # The number of the server that has opened or attached it; 0 for a server of its own.
    server: int = 0


@dataclass(frozen=True, slots=True)
class Gap:
    """What is missing: after this zxid and time, up to that of the state that follows.

    If none follows, that is None.
    """

    zxid: int
    time_ms: int
    next_zxid: int | None
    # The state that follows is not older than this, and not younger than that. The two are the same
    # if its time is known; the latter is None if nothing says how young it is at most.
    next_time_ms: int | None
    next_time_ms_max: int | None
    reason: str

    def __str__(self) -> str:
        if self.next_zxid is None or self.next_time_ms is None:
            return (
                f"nothing is known behind {shown_time(self.time_ms)} (zxid 0x{self.zxid:x}):"
                f" {self.reason}"
            )
        return (
            f"there is a gap from {shown_time(self.time_ms)} (zxid 0x{self.zxid:x}) to"
            f" {shown_span(self.next_time_ms, self.next_time_ms_max)} (zxid 0x{self.next_zxid:x}):"
            f" {self.reason}"
        )


class Nodes(Protocol):
    """Nodes by their paths."""

    def get(self, path: bytes, /) -> Node | None: ...

    def items(self) -> Iterable[tuple[bytes, Node]]: ...


class Past(Protocol):
    """A state on its way."""

    @property
    def zxid(self) -> int:
        """The last zxid in it."""

    @property
    def time_ms(self) -> int:
        """The time of the last entry in it, which may be later; 0 if there was none."""

    @property
    def time_ms_max(self) -> int | None:
        """How late that may be; None if nothing says so."""

    @property
    def nodes(self) -> Nodes:
        """All nodes, by their paths; the root also by the empty one."""

    def steps(self, until: Moment) -> Iterator[Step | Gap]:
        """Go on to a moment, and tell each step. Raises LogError."""

    def machine(self) -> StateMachine:
        """Return the state as a server has it. The past goes on no more."""


class Source(Protocol):
    """Where a history is kept."""

    @property
    def unknown(self) -> str:
        """What no history of this kind can tell of sessions and clients; empty if it may all."""

    def begin(self, moment: Moment) -> Past:
        """Return the state that is at or before a moment and nearest to it.

        Raises HistoryError if the history begins later, unless the moment is BEGINNING.
        """


def state_at(source: Source, moment: Moment) -> Past:
    """Return the state at a moment. Raises HistoryError, LogError."""
    past = source.begin(moment)
    for step in past.steps(moment):
        if not isinstance(step, Gap):
            continue
        following = step.next_zxid
        if following is None or not moment.has(following, step.next_time_ms_max):
            raise MissingPastError(f"{moment} is not in the history: {step}", step.next_zxid)
    if moment.zxid is not None and past.zxid < moment.zxid:
        raise NotYetError(
            f"{moment} is not in the history, which ends with zxid 0x{past.zxid:x} at"
            f" {shown_span(past.time_ms, past.time_ms_max)}"
        )
    return past

"""What was called and answered while a script was played, in the order in which a client saw it.

A history holds no opinion: the judge reads it as often as it likes, by whatever model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from paddock.log.etcd.keys import Keys
from tests.etcd_model.calls import Answer, Batch, Call


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a client saw; when, in seconds."""

    at: float


@dataclass(frozen=True, slots=True)
class Called(Event):
    """A call is sent. Its number is that of its answer."""

    number: int
    store: str
    call: Call


@dataclass(frozen=True, slots=True)
class Answered(Event):
    """A call has ended."""

    number: int
    answer: Answer


@dataclass(frozen=True, slots=True)
class Opened(Event):
    """A tail is asked for, behind a revision."""

    number: int
    store: str
    after: int


@dataclass(frozen=True, slots=True)
class Shown(Event):
    """A tail shows a record."""

    number: int
    record: Batch


@dataclass(frozen=True, slots=True)
class Ended(Event):
    """A tail ends by itself; or shows nothing for so long that it is given up."""

    number: int
    answer: Answer


@dataclass(frozen=True, slots=True)
class Closed(Event):
    """A tail is closed by its reader."""

    number: int


@dataclass(frozen=True, slots=True)
class Trouble(Event):
    """From now on a member is in trouble, or none is any more."""

    is_on: bool


@dataclass(frozen=True, slots=True)
class Filling(Event):
    """From now on the quota may be crossed by any put, or by none."""

    is_on: bool


class History:
    """The events of one script."""

    def __init__(self, scene: str, seed: int, keys: Keys, clock: Callable[[], float]) -> None:
        self.scene = scene
        self.seed = seed
        self.keys = keys
        # The revision that all before it was compacted to.
        self.base = 0
        # Whether etcd failed though nobody had made trouble: then nothing can be said of it.
        self.is_disturbed = False
        self.events: list[Event] = []
        self._clock = clock
        self._began = clock()
        self._numbers = 0

    @property
    def name(self) -> str:
        return f"{self.scene}, seed {self.seed}"

    def called(self, store: str, call: Call) -> int:
        """Return the number of the call."""
        self._numbers += 1
        self.events.append(Called(self._now(), self._numbers, store, call))
        return self._numbers

    def answered(self, number: int, answer: Answer) -> None:
        self.events.append(Answered(self._now(), number, answer))

    def opened(self, store: str, after: int) -> int:
        """Return the number of the tail."""
        self._numbers += 1
        self.events.append(Opened(self._now(), self._numbers, store, after))
        return self._numbers

    def shown(self, number: int, record: Batch) -> None:
        self.events.append(Shown(self._now(), number, record))

    def ended(self, number: int, answer: Answer) -> None:
        self.events.append(Ended(self._now(), number, answer))

    def closed(self, number: int) -> None:
        self.events.append(Closed(self._now(), number))

    def trouble(self, is_on: bool) -> None:
        self.events.append(Trouble(self._now(), is_on))

    def filling(self, is_on: bool) -> None:
        self.events.append(Filling(self._now(), is_on))

    def story(self, upto: int | None = None) -> str:
        """Return the events as text, one to a line."""
        return "\n".join(_line(event) for event in self.events[:upto])

    def _now(self) -> float:
        return self._clock() - self._began


def _line(event: Event) -> str:
    text = f"{event.at:8.3f} "
    match event:
        case Called(_, number, store, call):
            return text + f"{number}: {store}: {_short(call)}"
        case Opened(_, number, store, after):
            return text + f"{number}: {store}: tail after {after}"
        case Answered(_, number, answer) | Ended(_, number, answer):
            return text + f"{number}  -> {_short(answer)}"
        case Shown(_, number, record):
            return text + f"{number}  -> {_short(record)}"
    return text + repr(event)


def _short(what: object) -> str:
    text = repr(what)
    return text if len(text) < 300 else text[:180] + " ... " + text[-90:]

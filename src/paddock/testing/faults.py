"""Faults of a connection, and the requests at which they happen.

A `Trigger` chooses requests, a `Fault` happens to them. Both are made through a proxy:

    fault = proxy.when(operation="create", path="/app", nth=2).cut_after()
"""

from __future__ import annotations

import asyncio
import enum
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from paddock.protocol import opcodes, operations
from paddock.testing.conversation import SeenRequest

_NUMBERS: Final = {name: number for number, name in operations.NAMES.items()}


class Direction(enum.Enum):
    """One way of a connection."""

    TO_SERVER = "to the server"
    TO_CLIENT = "to the client"


BOTH: Final = frozenset(Direction)


class FaultKind(enum.Enum):
    """The kinds of faults."""

    CUT_BEFORE = "cut before the server has the request"
    CUT_AFTER = "cut before the client has the reply"
    TRUNCATE = "cut within the reply"
    DROP_REPLY = "drop the reply"
    DELAY = "delay the request"
    DELAY_REPLY = "delay the reply"
    BLACKHOLE = "say nothing more"


CUTS: Final = frozenset({FaultKind.CUT_BEFORE, FaultKind.CUT_AFTER, FaultKind.TRUNCATE})
"""Faults that end the connection."""


@dataclass(frozen=True, slots=True)
class Effect:
    """A kind of fault with what it needs to know."""

    kind: FaultKind
    seconds: float = 0.0
    length: int = 0
    reset: bool = False
    stay_away: bool = False
    directions: frozenset[Direction] = BOTH


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice of requests: all fields that are given must fit."""

    operation: int | None
    path: str | None
    predicate: Callable[[SeenRequest], bool] | None

    def fits(self, request: SeenRequest) -> bool:
        if self.operation is None:
            # A ping has to be named: when one comes is a matter of time.
            if request.operation == opcodes.PING:
                return False
        elif request.operation != self.operation:
            return False
        if self.path is not None and self.path not in request.paths:
            return False
        return self.predicate is None or self.predicate(request)


class Fault:
    """A fault that waits for its request, and records it."""

    def __init__(self, choice: Choice, effect: Effect, nth: int, times: int | None) -> None:
        self.effect = effect
        self._choice = choice
        # How many that fit are let through, and how many it takes then; None is all of them.
        self._to_pass = nth - 1
        self._to_take = times
        self._changed = threading.Condition()
        self._hits: list[SeenRequest] = []
        self._waiting: list[Callable[[], None]] = []

    @property
    def hits(self) -> tuple[SeenRequest, ...]:
        """The requests that it really happened to, so far."""
        with self._changed:
            return tuple(self._hits)

    def wait(self, deadline: float = 30.0) -> SeenRequest:
        """Block until it has happened; return the request. Raises TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._hits, deadline):
                raise TimeoutError(f"it did not come to this: {self.effect.kind.value}")
            return self._hits[0]

    async def happened(self) -> SeenRequest:
        """Wait until it has happened, in asyncio; return the request."""
        loop = asyncio.get_running_loop()
        event = asyncio.Event()

        def tell() -> None:
            loop.call_soon_threadsafe(event.set)

        with self._changed:
            if not self._hits:
                self._waiting.append(tell)
            else:
                event.set()
        await event.wait()
        return self.hits[0]

    def takes(self, request: SeenRequest, *, is_free: bool) -> bool:
        """Return whether this request is the one; each request is asked about once.

        One that is not free is another fault's: it is counted, but not taken.
        """
        if self._to_take == 0 or not self._choice.fits(request):
            return False
        if self._to_pass > 0:
            self._to_pass -= 1
            return False
        if not is_free:
            return False
        if self._to_take is not None:
            self._to_take -= 1
        return True

    def hit(self, request: SeenRequest) -> None:
        """Record that it has happened."""
        with self._changed:
            self._hits.append(request)
            waiting, self._waiting = self._waiting, []
            self._changed.notify_all()
        for tell in waiting:
            tell()


class Trigger:
    """Chosen requests. Each method arms one fault for them."""

    def __init__(
        self, arm: Callable[[Fault], None], choice: Choice, nth: int, times: int | None
    ) -> None:
        self._arm = arm
        self._choice = choice
        self._nth = nth
        self._times = times

    def cut_before(self, *, reset: bool = False, stay_away: bool = False) -> Fault:
        """Cut the connection before the server has the request: it is surely not carried out.

        What was sent before it is answered first; what was sent behind it is not carried out.
        With `reset` the client gets an RST instead of an end. With `stay_away` connections are
        refused from then on, until `heal`.
        """
        return self._fault(Effect(FaultKind.CUT_BEFORE, reset=reset, stay_away=stay_away))

    def cut_after(self, *, reset: bool = False, stay_away: bool = False) -> Fault:
        """Cut the connection when the reply comes: the request was carried out, the reply is lost.

        What was sent before it is answered; what was sent behind it is not carried out.
        """
        return self._fault(Effect(FaultKind.CUT_AFTER, reset=reset, stay_away=stay_away))

    def truncate(self, length: int, *, stay_away: bool = False) -> Fault:
        """Pass on that many bytes of the reply, counted from those of its length, and cut."""
        if length < 0:
            raise ValueError(f"length: {length} is negative")
        return self._fault(Effect(FaultKind.TRUNCATE, length=length, stay_away=stay_away))

    def drop_reply(self) -> Fault:
        """Drop the reply alone; everything after it is passed on."""
        return self._fault(Effect(FaultKind.DROP_REPLY))

    def delay(self, seconds: float) -> Fault:
        """Hold the request, and everything that the client sends after it."""
        return self._fault(Effect(FaultKind.DELAY, seconds=seconds))

    def delay_reply(self, seconds: float) -> Fault:
        """Hold the reply, and everything that the server sends after it."""
        return self._fault(Effect(FaultKind.DELAY_REPLY, seconds=seconds))

    def blackhole(self, *directions: Direction) -> Fault:
        """Pass on nothing more on this connection, from the request on, until `heal`.

        Given one direction, the other goes on: with `Direction.TO_CLIENT` the server gets the
        request. Other connections are not concerned; see `FaultProxy.blackhole` for all of them.
        """
        chosen = frozenset(directions) or BOTH
        return self._fault(Effect(FaultKind.BLACKHOLE, directions=chosen))

    def _fault(self, effect: Effect) -> Fault:
        fault = Fault(self._choice, effect, self._nth, self._times)
        self._arm(fault)
        return fault


def choose(
    operation: str | int | None,
    path: str | None,
    predicate: Callable[[SeenRequest], bool] | None,
) -> Choice:
    """Return a choice; raises ValueError for an unknown operation."""
    if isinstance(operation, str):
        if operation not in _NUMBERS:
            raise ValueError(f"operation: there is no {operation!r}; there are {list(_NUMBERS)}")
        operation = _NUMBERS[operation]
    return Choice(operation, path, predicate)

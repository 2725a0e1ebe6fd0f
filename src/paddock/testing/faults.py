"""Faults of a connection, and the requests at which they happen.

A `Trigger` chooses requests, a `Fault` happens to them. Both are made through a proxy:

    fault = proxy.when(operation="create", path="/app", nth=2).cut_after()
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
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

AT_REPLY: Final = frozenset(FaultKind) - {
    FaultKind.CUT_BEFORE,
    FaultKind.DELAY,
    FaultKind.BLACKHOLE,
}
"""Faults that happen at the reply to a request."""


@dataclass(frozen=True, slots=True)
class Effect:
    """A kind of fault with what it needs to know."""

    kind: FaultKind
    seconds: float = 0.0
    length: int = 0
    reset: bool = False
    stay_away: bool = False
    directions: frozenset[Direction] = BOTH


class Fault:
    """A fault that waits for its request, and records it."""

    def __init__(
        self, fits: Callable[[SeenRequest], bool], effect: Effect, nth: int, times: int | None
    ) -> None:
        self.effect = effect
        self._fits = fits
        # How many that fit are let through, and how many it takes then; None is all of them.
        self._to_pass = nth - 1
        self._to_take = times
        self._hits: list[SeenRequest] = []
        self._first_hit: Future[SeenRequest] = Future()

    @property
    def hits(self) -> tuple[SeenRequest, ...]:
        """The requests that it really happened to, so far."""
        return tuple(self._hits)

    def wait(self, deadline: float = 30.0) -> SeenRequest:
        """Block until it has happened; return the request. Raises TimeoutError."""
        try:
            return self._first_hit.result(deadline)
        except TimeoutError:
            raise TimeoutError(f"it did not come to this: {self.effect.kind.value}") from None

    async def happened(self) -> SeenRequest:
        """Wait until it has happened, in asyncio; return the request."""
        return await asyncio.shield(asyncio.wrap_future(self._first_hit))

    def takes(self, request: SeenRequest, *, is_free: bool) -> bool:
        """Return whether this request is the one; each request is asked about once.

        One that is not free is another fault's: it is counted, but not taken.
        """
        if self._to_take == 0 or not self._fits(request):
            return False
        if self._to_pass > 0:
            self._to_pass -= 1
            return False
        if is_free and self._to_take is not None:
            self._to_take -= 1
        return is_free

    def hit(self, request: SeenRequest) -> None:
        """Record that it has happened."""
        self._hits.append(request)
        if len(self._hits) == 1:
            self._first_hit.set_result(request)


class Partition(AbstractContextManager["Partition"]):
    """Keeps a client from its server until it is healed, or until the end of its `with`."""

    def __init__(self, heal: Callable[[], None]) -> None:
        self._heal = heal

    def heal(self) -> None:
        """Let the client reach the server again; twice is fine."""
        self._heal()

    def __exit__(self, *details: object) -> None:
        self.heal()


class Trigger:
    """Chosen requests. Each method arms one fault for them."""

    def __init__(self, arm: Callable[[Effect], Fault]) -> None:
        self._arm = arm

    def cut_before(self, *, reset: bool = False, stay_away: bool = False) -> Fault:
        """Cut the connection before the server has the request: it is surely not carried out.

        What was sent before it is answered first; what was sent behind it is not carried out.
        With `reset` the client gets an RST instead of an end. With `stay_away` connections are
        refused from then on, until `heal`.
        """
        return self._arm(Effect(FaultKind.CUT_BEFORE, reset=reset, stay_away=stay_away))

    def cut_after(self, *, reset: bool = False, stay_away: bool = False) -> Fault:
        """Cut the connection when the reply comes: the request was carried out, the reply is lost.

        What was sent before it is answered; what was sent behind it is not carried out.
        """
        return self._arm(Effect(FaultKind.CUT_AFTER, reset=reset, stay_away=stay_away))

    def truncate(self, length: int, *, stay_away: bool = False) -> Fault:
        """Pass on that many bytes of the reply, counted from those of its length, and cut."""
        if length < 0:
            raise ValueError(f"length: {length} is negative")
        return self._arm(Effect(FaultKind.TRUNCATE, length=length, stay_away=stay_away))

    def drop_reply(self) -> Fault:
        """Drop the reply alone; everything after it is passed on."""
        return self._arm(Effect(FaultKind.DROP_REPLY))

    def delay(self, seconds: float) -> Fault:
        """Hold the request, and everything that the client sends after it."""
        return self._arm(Effect(FaultKind.DELAY, seconds=seconds))

    def delay_reply(self, seconds: float) -> Fault:
        """Hold the reply, and everything that the server sends after it."""
        return self._arm(Effect(FaultKind.DELAY_REPLY, seconds=seconds))

    def blackhole(self, *directions: Direction) -> Fault:
        """Pass on nothing more on this connection, from the request on, until `heal`.

        Given one direction, the other goes on: with `Direction.TO_CLIENT` the server gets the
        request. Other connections are not concerned; see `FaultProxy.blackhole` for all of them.
        """
        return self._arm(Effect(FaultKind.BLACKHOLE, directions=frozenset(directions) or BOTH))


def chosen(
    operation: str | int | None,
    path: str | None,
    predicate: Callable[[SeenRequest], bool] | None,
) -> Callable[[SeenRequest], bool]:
    """Return whether a request fits all that is given; raises ValueError for no such operation."""
    if isinstance(operation, str) and operation not in _NUMBERS:
        raise ValueError(f"operation: there is no {operation!r}; there are {list(_NUMBERS)}")
    number = _NUMBERS[operation] if isinstance(operation, str) else operation

    def fits(request: SeenRequest) -> bool:
        # A ping has to be named: when one comes is a matter of time.
        return (
            (request.operation == number or (number is None and request.operation != opcodes.PING))
            and (path is None or path in request.paths)
            and (predicate is None or predicate(request))
        )

    return fits

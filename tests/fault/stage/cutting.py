"""Stories of a client that are played once for every fault at every one of its requests.

A story is an async function of a client behind a fault proxy, and of a bystander, who has a
connection of its own to the same server and sees what is really there. All of it runs in virtual
time, on a server in memory and of its own: nothing is waited for, and a play takes milliseconds.

What a story may see is the same wherever the fault is: `attempt` gives the answer of a call, or
LOST if the client says that the outcome is unknown. Any other error fails the story, with a note of
the faults that were played. In an exact session no outcome may be unknown.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import signal
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from types import FrameType
from typing import Final, Literal, TypeAlias, TypeVar

from paddock.api import connect
from paddock.client.client import Client
from paddock.errors import ConnectionLostError
from paddock.testing import (
    Direction,
    EmbeddedServer,
    Fault,
    FaultProxy,
    SeenRequest,
    Trigger,
    run_virtually,
)

T = TypeVar("T")

# The client's; the server grants it.
SESSION_TIMEOUT_S: Final = 9.0
# In virtual time: what takes longer, hangs.
_DEADLINE_S: Final = 600.0
# How many requests after a fault are met by another one.
_FOLLOWING: Final = 4
# In real time, for a client that spins instead of waiting.
_REAL_DEADLINE_S: Final = 120


class NeverCameError(AssertionError):
    """A story ended before the fault that was planned for it."""


class _Lost(enum.Enum):
    LOST = "the outcome is unknown"


LOST: Final = _Lost.LOST
Outcome: TypeAlias = T | Literal[_Lost.LOST]


@dataclass(frozen=True, slots=True)
class FaultKind:
    """Something that happens to a request."""

    name: str
    arm: Callable[[Trigger], Fault]


CUT_BEFORE: Final = FaultKind("cut before", lambda at: at.cut_before())
CUT_AFTER: Final = FaultKind("cut after", lambda at: at.cut_after())
CUTS: Final = (CUT_BEFORE, CUT_AFTER)
SILENT_REPLY: Final = FaultKind(
    "silence instead of the reply to", lambda at: at.blackhole(Direction.TO_CLIENT)
)
# Each way to lose a request or its reply.
LOSSES: Final = (*CUTS, SILENT_REPLY)
FAULTS: Final = (
    *CUTS,
    FaultKind("reset after", lambda at: at.cut_after(reset=True)),
    FaultKind("cut within the header of the reply to", lambda at: at.truncate(11)),
    FaultKind("cut within the body of the reply to", lambda at: at.truncate(21)),
    FaultKind("silence from", lambda at: at.blackhole()),
    SILENT_REPLY,
    FaultKind("a second's delay of", lambda at: at.delay(1.0)),
    FaultKind("a second's delay of the reply to", lambda at: at.delay_reply(1.0)),
)


@dataclass(frozen=True, slots=True)
class Planned:
    """A fault, and the request that it happens to, as it was in a play without it."""

    kind: FaultKind
    request: SeenRequest

    def __str__(self) -> str:
        return f"{self.kind.name} {self.request}"


Plan: TypeAlias = tuple[Planned, ...]


@dataclass(slots=True)
class Stage:
    """Where a story is played."""

    # Behind the proxy; it is open when the story begins.
    client: Client
    # On a connection of its own.
    bystander: Client
    proxy: FaultProxy
    # Whether nothing was to go wrong.
    is_undisturbed: bool

    async def attempt(self, call: Awaitable[T]) -> Outcome[T]:
        """Return the result of a call, or LOST if the connection was lost."""
        try:
            return await call
        except ConnectionLostError:
            if self.client.is_exact and not self.client.state.is_final:
                raise
            return LOST


Story: TypeAlias = Callable[[Stage], Awaitable[None]]


def play_with_every_fault(
    story: Story,
    prepare: Callable[[Client], Awaitable[None]],
    kinds: Sequence[FaultKind] = FAULTS,
    *,
    exact: bool = False,
) -> int:
    """Play a story without a fault, then with each fault at each of its requests; count them."""
    requests = _play(story, prepare, (), exact)
    plans = [(Planned(kind, request),) for request in requests for kind in kinds]
    for plan in plans:
        _play(story, prepare, plan, exact)
    return len(plans)


def play_with_every_two_faults(
    story: Story,
    prepare: Callable[[Client], Awaitable[None]],
    kinds: Sequence[FaultKind] = CUTS,
    *,
    exact: bool = False,
) -> int:
    """Play a story with each fault, and then with another one at each request that follows.

    These are the handshake of the reconnect, the credentials and watches that are sent again, and
    the request that is repeated.
    """
    count = 0
    for request in _play(story, prepare, (), exact):
        for kind in kinds:
            first = Planned(kind, request)
            requests = _play(story, prepare, (first,), exact)
            for later in requests[request.number :][:_FOLLOWING]:
                for another in kinds:
                    _play(story, prepare, (first, Planned(another, later)), exact)
                    count += 1
    return count


def _play(
    story: Story, prepare: Callable[[Client], Awaitable[None]], plan: Plan, exact: bool
) -> tuple[SeenRequest, ...]:
    with in_real_time(_REAL_DEADLINE_S):
        try:
            return run_virtually(_perform(story, prepare, plan, exact))
        except BaseException as error:
            for planned in plan:
                error.add_note(str(planned))
            raise


async def _perform(
    story: Story, prepare: Callable[[Client], Awaitable[None]], plan: Plan, exact: bool
) -> tuple[SeenRequest, ...]:
    async with asyncio.timeout(_DEADLINE_S), EmbeddedServer() as server:
        return await perform_on(server.address, "", story, prepare, plan, exact=exact)


async def play_on(
    address: tuple[str, int],
    chroot: str,
    story: Story,
    prepare: Callable[[Client], Awaitable[None]],
    kinds: Sequence[FaultKind],
) -> int:
    """Play a story with every fault on a server that is there, each time in a place of its own.

    Gives how many faults the story came to.
    """
    requests = await perform_on(address, f"{chroot}-0", story, prepare, ())
    plans: list[Plan] = [(Planned(kind, request),) for request in requests for kind in kinds]
    came = 0
    for number, plan in enumerate(plans, 1):
        try:
            async with asyncio.timeout(_REAL_DEADLINE_S):
                await perform_on(address, f"{chroot}-{number}", story, prepare, plan)
        except NeverCameError:
            # In real time a stream may need fewer requests than the last time.
            continue
        except BaseException as error:
            error.add_note(str(plan[0]))
            raise
        came += 1
    return came


async def perform_on(
    address: tuple[str, int],
    chroot: str,
    story: Story,
    prepare: Callable[[Client], Awaitable[None]],
    plan: Plan,
    *,
    exact: bool = False,
) -> tuple[SeenRequest, ...]:
    """Play a story once, below a node that is made for it; give the requests that it took."""
    problems: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: problems.append(f"{context['message']}: {context.get('exception')}")
    )
    hosts = f"{address[0]}:{address[1]}"
    if chroot:
        async with connect(hosts, random=Random(1)) as preparing:
            await preparing.create(chroot)
    async with (
        FaultProxy(address) as proxy,
        connect(hosts + chroot, random=Random(1)) as bystander,
    ):
        await prepare(bystander)
        faults = [one.kind.arm(proxy.when(nth=one.request.number)) for one in plan]
        client = connect(
            proxy.hosts + chroot, session_timeout=SESSION_TIMEOUT_S, random=Random(2), exact=exact
        )
        async with client:
            assert client.is_exact == exact
            await story(Stage(client, bystander, proxy, not plan))
        requests = proxy.requests
        for fault, planned in zip(faults, plan, strict=True):
            assert not problems, problems
            if not fault.hits:
                raise NeverCameError(f"the story never came to this: {planned}")
    assert not problems, problems
    return requests


@contextlib.contextmanager
def in_real_time(seconds: int) -> Iterator[None]:
    """Fail what has not ended after so many seconds, also if it never lets go of the loop."""

    def late(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"not over after {seconds} s of real time")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)

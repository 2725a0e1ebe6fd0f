"""Every point at which a scenario can lose its connection, one after the other.

A scenario is run once to see which requests it makes, and then once for each way to cut each of
them, every time against a server of its own:

    async def scenario(proxy: FaultProxy, cut: CutPoint | None) -> None:
        async with paddock.connect(proxy.hosts) as client:
            await client.create("/a/b", make_parents=True, protected=True)
            names = await client.children("/a")  # what must be true, wherever it was cut
            assert len(names) == 1, names


    points = await at_every_cut(EmbeddedServer, scenario)
    print(points[0])  # cut before request 1: create_session

A scenario without asyncio goes to `at_every_cut_blocking`, as a rule with a `ServerThread`. A
server that outlives the runs is given as `lambda: contextlib.nullcontext(server)`.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from paddock.testing.conversation import SeenRequest
from paddock.testing.faults import Fault
from paddock.testing.proxy import FaultProxy

# Within the length of a frame, and so within every frame that there is.
_WITHIN_BYTES: Final = 3


class Cut(enum.Enum):
    """Where, around a request, a connection ends."""

    BEFORE = "before"
    AFTER = "after"
    WITHIN = "within the reply to"


@dataclass(frozen=True, slots=True)
class CutPoint:
    """One cut: its kind, and the request as it was in the run without any."""

    cut: Cut
    request: SeenRequest

    def arm(self, proxy: FaultProxy) -> Fault:
        """Tell a proxy, through which nothing has gone yet, to cut there."""
        trigger = proxy.when(nth=self.request.number)
        if self.cut is Cut.BEFORE:
            return trigger.cut_before()
        if self.cut is Cut.AFTER:
            return trigger.cut_after()
        return trigger.truncate(_WITHIN_BYTES)

    def __str__(self) -> str:
        return f"cut {self.cut.value} {self.request}"


class Addressed(Protocol):
    """A server of any kind."""

    @property
    def address(self) -> tuple[str, int]: ...


Scenario: TypeAlias = Callable[[FaultProxy, CutPoint | None], Awaitable[None]]
BlockingScenario: TypeAlias = Callable[[FaultProxy, CutPoint | None], None]

BEFORE_AND_AFTER: Final = (Cut.BEFORE, Cut.AFTER)


def cut_points(
    requests: Sequence[SeenRequest], cuts: Sequence[Cut] = BEFORE_AND_AFTER
) -> list[CutPoint]:
    """Return every way to cut these requests, which a proxy has seen, in their order."""
    return [CutPoint(cut, request) for request in requests for cut in cuts]


async def at_every_cut(
    server: Callable[[], AbstractAsyncContextManager[Addressed]],
    scenario: Scenario,
    cuts: Sequence[Cut] = BEFORE_AND_AFTER,
) -> list[CutPoint]:
    """Run a scenario without a cut, then with each one; return the cuts that there were.

    What the scenario raises comes with a note that says where it was cut. AssertionError if it
    never came to that request, since then nothing was shown; unless one like it, with the same
    operation and paths, was cut the same way before. What a scenario asks may depend a little on
    the time: a lock watches its node only if it is held for a while.
    """
    shown: set[_Kind] = set()

    async def run(point: CutPoint | None) -> tuple[SeenRequest, ...]:
        async with server() as one, FaultProxy(one.address) as proxy:
            with _cutting(proxy, point, shown):
                await scenario(proxy, point)
            return proxy.requests

    points = cut_points(await run(None), cuts)
    for point in points:
        await run(point)
    return points


def at_every_cut_blocking(
    server: Callable[[], AbstractContextManager[Addressed]],
    scenario: BlockingScenario,
    cuts: Sequence[Cut] = BEFORE_AND_AFTER,
) -> list[CutPoint]:
    """Do the same as `at_every_cut` with a scenario that blocks."""
    shown: set[_Kind] = set()

    def run(point: CutPoint | None) -> tuple[SeenRequest, ...]:
        with server() as one, FaultProxy(one.address) as proxy:
            with _cutting(proxy, point, shown):
                scenario(proxy, point)
            return proxy.requests

    points = cut_points(run(None), cuts)
    for point in points:
        run(point)
    return points


# A cut, the operation of its request, and the paths.
_Kind: TypeAlias = tuple[Cut, int, tuple[str, ...]]


def _kind(cut: Cut, request: SeenRequest) -> _Kind:
    return cut, request.operation, request.paths


@contextmanager
def _cutting(proxy: FaultProxy, point: CutPoint | None, shown: set[_Kind]) -> Iterator[None]:
    """Cut a scenario, and add what was cut to what was shown."""
    fault = None if point is None else point.arm(proxy)
    try:
        yield
    except Exception as error:
        if point is not None:
            error.add_note(str(point))
        raise
    if point is None or fault is None:
        return
    shown.update(_kind(point.cut, request) for request in fault.hits)
    is_shown = _kind(point.cut, point.request) in shown
    assert fault.hits or is_shown, f"the scenario never came to this: {point}"

"""Virtual time for tests: `run_virtually` in pieces.

    time = VirtualTime()
    server = VirtualServer()
    time.run(server.start())
    time.run(scenario(server))
    time.run(server.stop())
    time.close()

The clock stands still between two runs. Under pytest there are fixtures for both, and
`in_virtual_time` for a test.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Final, Self, TypeVar

from paddock.server.config.config import ServerConfig
from paddock.testing.clock import VirtualClockLoop
from paddock.testing.embedded import EmbeddedServer
from paddock.testing.faulty import FaultInjection

T = TypeVar("T")

FIXTURE: Final = "paddock_virtual_time"
"""The fixture that `in_virtual_time` has pytest hand over."""


class VirtualTime:
    """An event loop in virtual time, which can be run again and again."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner(loop_factory=VirtualClockLoop)

    @property
    def now(self) -> float:
        """The virtual time in seconds; it starts at 0."""
        return self._runner.get_loop().time()

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end; what it leaves behind goes on in the next run."""
        return self._runner.run(main)

    def close(self) -> None:
        """Cancel what is left, and end the loop."""
        self._runner.close()


class VirtualServer(FaultInjection):
    """The same as `FaultyServer`, in virtual time: it lives in the event loop that starts it.

        async with VirtualServer() as server, paddock.connect(server.hosts) as client:
            await server.expire(client)

    It is in memory. With `partition` and some time, sessions expire by themselves.
    """

    def __init__(self, config: ServerConfig | None = None) -> None:
        super().__init__(EmbeddedServer(config=config))

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *details: object) -> None:
        await self.stop()

    async def expire(self, session: object) -> None:
        """End a session, and return when it is over and its ephemeral nodes are gone.

        It is given as its number or by its client. The client finds out when it comes back, which
        it tries at once. Raises ValueError for one that was never here.
        """
        await self._expire(session)

    async def start(self) -> None:
        """Start it, as entering its scope does."""
        await self._start()

    async def stop(self) -> None:
        """Stop it, and cut off all its clients."""
        await self._stop()


def in_virtual_time(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Have pytest run an `async def` test in virtual time, whichever other plugins it has.

        @in_virtual_time
        async def test_a_day_passes(paddock_virtual_server):
            async with paddock.connect(paddock_virtual_server.hosts) as client:
                await asyncio.sleep(86_400)
                assert client.state.is_connected

    The test can ask for any fixture; those that run an event loop of their own are of no use to it.
    """
    if not inspect.iscoroutinefunction(test):
        raise TypeError(f"in_virtual_time: {test!r} is not an `async def`")
    signature = inspect.signature(test)
    asks_itself = FIXTURE in signature.parameters

    @functools.wraps(test)
    def run(*arguments: Any, **fixtures: Any) -> None:
        time: VirtualTime = fixtures[FIXTURE] if asks_itself else fixtures.pop(FIXTURE)
        time.run(test(*arguments, **fixtures))

    if not asks_itself:
        # Where pytest looks for the names of fixtures.
        added = inspect.Parameter(FIXTURE, inspect.Parameter.KEYWORD_ONLY)
        run.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[*signature.parameters.values(), added]
        )
    return run

"""Both client APIs for one suite: the blocking client, seen from asyncio.

A test is written for the asyncio client. With the blocking one in its place every call is made by
a thread, as a program without asyncio makes it, and every watcher is called back on the test's own
loop. So what is tested is the blocking client, and what is asked of it is the same.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self, cast

import pytest

import paddock
import paddock.sync
from paddock.client.client import Client
from paddock.sync.bridge import Twin

APIS: Final = ("asyncio", "blocking")

_chosen = "asyncio"


@pytest.fixture(params=APIS, autouse=True)
def api(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run every test of a module that imports this on both APIs."""
    global _chosen
    _chosen = request.param
    yield
    _chosen = "asyncio"


#: For what only asyncio can do: leave several calls of one thread under way at the same time.
asyncio_only = pytest.mark.parametrize("api", ["asyncio"], indirect=True)


def connect(*arguments: Any, **named: Any) -> Client:
    """Give a client of the API under test; the blocking one in a form that asyncio can use."""
    if _chosen == "asyncio":
        return paddock.connect(*arguments, **named)
    return cast(Client, Threaded.connect(*arguments, **named))


def lose_connection(client: Client) -> None:
    """Cut the client's connection, as if the network had."""
    inner = client.twin._inner if isinstance(client, Threaded) else client
    link = inner._session._link
    assert link is not None
    if isinstance(client, Threaded):
        client.wait_for(client.twin._bridge.run, link.abort)
    else:
        link.abort()


@dataclass(frozen=True)
class _CalledBack:
    """A callback, called on a loop from another thread."""

    loop: asyncio.AbstractEventLoop
    callback: Callable[..., object]

    def __call__(self, *arguments: Any) -> None:
        self.loop.call_soon_threadsafe(self.callback, *arguments)


class Threaded:
    """A blocking object whose every call is made by a thread."""

    def __init__(self, twin: Twin[Any]) -> None:
        self.twin = twin
        # One for all calls, which keeps their order, and which leaves the scopes it has entered.
        self._thread = ThreadPoolExecutor(1)

    @classmethod
    def connect(cls, *arguments: Any, **named: Any) -> Self:
        named = {name: _adapted(value) for name, value in named.items()}
        with ThreadPoolExecutor(1) as thread:
            return cls(thread.submit(paddock.sync.connect, *arguments, **named).result())

    def wait_for(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Do what needs no waiting for the service; the test's loop stands still meanwhile."""
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(function, *arguments, **named).result()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            return getattr(self.twin._inner, name)
        value = getattr(self.twin, name)
        if not inspect.ismethod(value):
            return value
        source = getattr(type(self.twin._inner), name)
        returns = str(inspect.signature(source).return_annotation)
        waits = inspect.iscoroutinefunction(source) or returns.startswith("asyncio.Future")

        def call(*arguments: Any, **named: Any) -> Any:
            positional = [_adapted(one) for one in arguments]
            by_name = {name: _adapted(one) for name, one in named.items()}
            if waits:
                work = self._thread.submit(value, *positional, **by_name)
                return asyncio.wrap_future(work)
            return self._seen(self.wait_for(value, *positional, **by_name))

        return call

    def _seen(self, result: Any) -> Any:
        if result is self.twin:
            return self
        if isinstance(result, Twin):
            return Threaded(result)
        if isinstance(result, paddock.sync.Stream):
            return _iterated(result)
        return result

    async def __aenter__(self) -> Self:
        entered = await self._in_scope("__enter__")
        assert entered is self.twin
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._in_scope("__exit__", kind, error, traceback)

    def _in_scope(self, name: str, *arguments: Any) -> Awaitable[Any]:
        function = getattr(self.twin, name)
        return asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)


def _adapted(value: Any) -> Any:
    if callable(value) and not isinstance(value, type) and not hasattr(value, "randbytes"):
        return _CalledBack(asyncio.get_running_loop(), value)
    return value


async def _iterated(stream: paddock.sync.Stream[Any]) -> AsyncIterator[Any]:
    end = object()
    thread = ThreadPoolExecutor(1)
    loop = asyncio.get_running_loop()
    try:
        while (item := await loop.run_in_executor(thread, next, stream, end)) is not end:
            yield item
    finally:
        # Not by the thread that may wait for the next.
        await asyncio.to_thread(stream.close)

"""Both APIs for one suite: blocking clients and recipes, seen from asyncio.

A test is written for asyncio. With the blocking API in its place every call is made by a thread, as
a program without asyncio makes it, and every callback is called back on the test's own loop. So
what is tested is the blocking API, and what is asked of it is the same.

Each task has a thread of its own, which keeps the order of its calls and leaves the scopes that it
has entered. A task that is cancelled gives up the call of its thread, as Ctrl-C does. But the body
of a scope is never cancelled by the scope: a body that is to end waits for something that ends.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import TracebackType
from typing import Any, Final, TypeVar, cast
from weakref import WeakKeyDictionary

import pytest

import paddock
import paddock.sync
from paddock.client.client import Client
from paddock.sync.bridge import Bridge, Twin
from paddock.sync.portal import _Call

T = TypeVar("T")

APIS: Final = ("asyncio", "blocking")

_chosen = "asyncio"


@pytest.fixture(params=APIS, autouse=True)
def api(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run every test of a module that imports this on both APIs."""
    monkeypatch.setattr(_Call, "wait", _wait)
    with using(request.param):
        yield


@contextmanager
def using(api: str) -> Iterator[None]:
    """Have one of the APIs under test."""
    global _chosen
    _chosen = api
    try:
        yield
    finally:
        _chosen = "asyncio"


#: For what only asyncio can do: leave several calls of one thread under way at the same time.
asyncio_only = pytest.mark.parametrize("api", ["asyncio"], indirect=True)


def connect(*arguments: Any, **named: Any) -> Client:
    """Return a client of the API under test; the blocking one is wrapped for asyncio."""
    if _chosen == "asyncio":
        return paddock.connect(*arguments, **named)
    return cast(Client, _seen(_at_once(paddock.sync.connect, *arguments, **named)))


def recipe(make: Callable[..., T]) -> Callable[..., T]:
    """Return a recipe of the API under test, for a client of `connect`: a class, or a function."""
    if _chosen == "asyncio":
        return make
    return _called(getattr(import_module("paddock.sync.recipes"), make.__name__), make)


def lose_connection(client: Client) -> None:
    """Cut the client's connection, as if the network had."""
    inner = client.twin._inner if isinstance(client, Threaded) else client
    transport = inner._session.dispatcher.transport
    assert transport is not None
    if isinstance(client, Threaded):
        _at_once(client.twin._bridge.run, transport.abort)
    else:
        transport.abort()


class Threaded:
    """A blocking object whose every call is made by a thread."""

    def __init__(self, twin: Twin[Any]) -> None:
        self.twin = twin

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            return getattr(self.twin._inner, name)
        value = getattr(self.twin, name)
        if not inspect.ismethod(value):
            return _seen(value)
        called = _called(value, getattr(type(self.twin._inner), name), self.twin._bridge)

        def call(*arguments: Any, **named: Any) -> Any:
            result = called(*arguments, **named)
            is_own = isinstance(result, Threaded) and result.twin is self.twin
            return self if is_own else result

        return call

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Threaded) and other.twin == self.twin

    def __hash__(self) -> int:
        return hash(self.twin)

    def __repr__(self) -> str:
        return repr(self.twin)

    def __len__(self) -> int:
        return int(_at_once(len, self.twin))

    def __bool__(self) -> bool:
        return bool(_at_once(bool, self.twin))

    def __contains__(self, item: object) -> bool:
        return bool(_at_once(lambda: item in cast(Any, self.twin)))

    def __getitem__(self, key: Any) -> Any:
        return _seen(_at_once(lambda: cast(Any, self.twin)[key]))

    def __aiter__(self) -> AsyncIterator[Any]:
        return _iterated(_at_once(iter, self.twin))

    async def __aenter__(self) -> Any:
        entered = await _entered(self.twin, self.twin._bridge)
        return self if entered == self else entered

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return await _left(self.twin, self.twin._bridge, kind, error, traceback)


@dataclass(frozen=True)
class _ThreadedScope:
    """A blocking scope, entered and left by the thread of its task."""

    scope: paddock.sync.Scope[Any]
    bridge: Bridge | None

    async def __aenter__(self) -> Any:
        return await _entered(self.scope, self.bridge)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return await _left(self.scope, self.bridge, kind, error, traceback)


async def _entered(scope: Any, bridge: Bridge | None) -> Any:
    return await _Work(scope.__enter__, bridge).result()


async def _left(scope: Any, bridge: Bridge | None, *raised: Any) -> bool | None:
    work = _Work(lambda: scope.__exit__(*raised), bridge)
    is_handled: bool | None = await work.result()
    if work.is_given_up:
        raise asyncio.CancelledError
    return is_handled


# Calls, made by threads.

# The thread of each task.
_threads: Final[WeakKeyDictionary[asyncio.Task[Any], ThreadPoolExecutor]] = WeakKeyDictionary()
# What a thread does at the moment, if it is one of these.
_current: Final = threading.local()


class _Work:
    """Something that the thread of a task does, and that can be given up."""

    def __init__(self, function: Callable[[], Any], bridge: Bridge | None) -> None:
        self._function = function
        self._bridge = bridge
        self._lock = threading.Lock()
        self._waits_for: _Call[Any] | None = None
        self.is_given_up = False

    def start(self) -> asyncio.Future[Any]:
        """Have it done after what its task has asked for before."""
        task = asyncio.current_task()
        thread = _threads.get(task) if task is not None else None
        if thread is None:
            thread = ThreadPoolExecutor(1)
            if task is not None:
                _threads[task] = thread
        return asyncio.wrap_future(thread.submit(self._run))

    async def result(self) -> Any:
        """Return the result; if the task is cancelled, cancel the call and wait until it ends."""
        done = self.start()
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            self.give_up()
            await asyncio.wait([done])
            if done.cancelled() or done.exception() is not None:
                raise
            # It was done just in time, and what it gives is not lost.
            return done.result()

    def give_up(self) -> None:
        with self._lock:
            self.is_given_up = True
            if self._waits_for is not None and self._bridge is not None:
                self._bridge.portal._give_up(self._waits_for)

    def wait(self, call: _Call[Any]) -> None:
        """Note what is waited for, which has been begun."""
        with self._lock:
            self._waits_for = call
            if self.is_given_up and self._bridge is not None:
                self._bridge.portal._give_up(call)

    def _run(self) -> Any:
        _current.work = self
        try:
            return _seen(self._function(), self._bridge)
        finally:
            _current.work = None


_wait_of_a_call: Final = _Call.wait


def _wait(call: _Call[Any], seconds: float | None) -> bool:
    work: _Work | None = getattr(_current, "work", None)
    if work is not None:
        work.wait(call)
    return _wait_of_a_call(call, seconds)


def _called(
    function: Callable[..., Any], source: Callable[..., Any], bridge: Bridge | None = None
) -> Callable[..., Any]:
    """Wrap a blocking function in the form of its source: coroutine, future or plain function."""
    returns = "" if isinstance(source, type) else str(inspect.signature(source).return_annotation)

    def call(*arguments: Any, **named: Any) -> Any:
        positional = [_adapted(one) for one in arguments]
        by_name = {name: _adapted(one) for name, one in named.items()}
        work = _Work(lambda: function(*positional, **by_name), bridge)
        if inspect.iscoroutinefunction(source):
            return work.result()
        if returns.startswith("asyncio.Future"):
            future = work.start()
            future.add_done_callback(lambda done: work.give_up() if done.cancelled() else None)
            return future
        return _seen(_at_once(function, *positional, **by_name), bridge)

    return call


def _at_once(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Do what needs no waiting for the service; the test's loop stands still meanwhile."""
    positional = [_adapted(one) for one in arguments]
    by_name = {name: _adapted(one) for name, one in named.items()}
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(function, *positional, **by_name).result()


# What goes in, and what comes out.


@dataclass(frozen=True)
class _CalledBack:
    """A callback of a test, called in its loop from another thread."""

    loop: asyncio.AbstractEventLoop
    callback: Callable[..., Any]

    def __call__(self, *arguments: Any) -> Any:
        told = [_seen(one) for one in arguments]
        match threading.current_thread().name:
            case "paddock-callbacks":
                return self.loop.call_soon_threadsafe(self.callback, *told)
            case "paddock-handler":
                handled: Coroutine[Any, Any, Any] = self.callback(*told)
                return asyncio.run_coroutine_threadsafe(handled, self.loop).result()
        # A function that gives something back, at once.
        return self.callback(*told)


def _adapted(value: Any) -> Any:
    if isinstance(value, Threaded):
        return value.twin
    if isinstance(value, list | tuple) and any(isinstance(one, Threaded) for one in value):
        return [_adapted(one) for one in value]
    if inspect.isroutine(value) or (callable(value) and not isinstance(value, type | _CalledBack)):
        return _CalledBack(asyncio.get_running_loop(), value)
    return value


def _seen(result: Any, bridge: Bridge | None = None) -> Any:
    match result:
        case Twin():
            return Threaded(result)
        case paddock.sync.Stream():
            return _iterated(result)
        case paddock.sync.Scope():
            return _ThreadedScope(result, bridge)
        case list() | tuple() if any(isinstance(one, Twin) for one in result):
            return type(result)(_seen(one) for one in result)
        case dict():
            return {key: _seen(one) for key, one in result.items()}
    return result


async def _iterated(stream: paddock.sync.Stream[Any]) -> AsyncIterator[Any]:
    end = object()
    thread = ThreadPoolExecutor(1)
    loop = asyncio.get_running_loop()
    try:
        while (item := await loop.run_in_executor(thread, next, stream, end)) is not end:
            yield _seen(item)
    finally:
        # Not by the thread that may wait for the next.
        await asyncio.to_thread(stream.close)

"""Sends requests: each becomes a `PendingRequest` of the session, and its caller gets a future.

It refuses requests that are too large, decides which watcher a reply sets, and owns the tasks of
calls that take several requests.
"""

from __future__ import annotations

import asyncio
from asyncio import _get_running_loop as running_loop
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias, TypeVar

from paddock.client.operations.composed import compose
from paddock.client.requests.arguments import check_watcher
from paddock.client.requests.encoder import COUNTED_HEADER_BYTES, watched
from paddock.client.requests.pending_request import PendingRequest, name_of
from paddock.client.session.dispatcher import Dispatcher
from paddock.client.session.session import Session
from paddock.client.states import SessionState
from paddock.client.watches.watches import Watcher
from paddock.errors import (
    NO_NODE,
    OK,
    InvalidArgumentError,
    SessionExpiredError,
    UsageError,
)
from paddock.protocol import opcodes
from paddock.protocol.jute import Reader

T = TypeVar("T")

# A watcher of its own, True for the client's default one, or None for no watch.
Watch: TypeAlias = Watcher | bool | None


class RequestSender:
    """Sends the requests of one session."""

    def __init__(self, session: Session, request_bytes_max: int) -> None:
        self._session = session
        self._dispatcher: Dispatcher = session.dispatcher
        self._loop = asyncio.get_running_loop()
        self._body_bytes_max = request_bytes_max - COUNTED_HEADER_BYTES
        # Composed calls.
        self._tasks: set[asyncio.Task[Any]] = set()
        # Tasks of users, cancelled at the end.
        self._errands: set[asyncio.Task[Any]] = set()

    def send(
        self,
        operation: int,
        body: bytes,
        path: str | None,
        decode: Callable[[Reader], T],
        *,
        is_repeatable: bool = False,
        is_patient: bool = False,
        on_reply: Callable[[int, bool], int | None] | None = None,
        on_connect: Callable[[], None] | None = None,
    ) -> asyncio.Future[T]:
        """Send a request; errors name `path`. A repeatable one is sent again after a lost reply.

        In an exact session, a patient one fails only if the session ends or nobody knows of it.
        """
        if len(body) > self._body_bytes_max:
            raise self._too_large(operation, body)
        if running_loop() is not self._loop:
            raise _elsewhere()
        future: asyncio.Future[T] = self._loop.create_future()
        request = PendingRequest(operation, body, path, decode, future, is_repeatable)
        request.on_reply = on_reply
        request.on_connect = on_connect
        if is_patient:
            request.is_patient = self._session.credentials.is_exact
        self._dispatcher.submit(request)
        return future

    def send_read(
        self,
        operation: int,
        path: str,
        full: bytes,
        watch: Watch,
        decode: Callable[[Reader], T],
    ) -> asyncio.Future[T]:
        """Send a read of a node; `full` is its path with the chroot."""
        watcher = None if watch is None or watch is False else self._watcher(watch)
        body = watched(full, watcher is not None)
        if len(body) > self._body_bytes_max:
            raise self._too_large(operation, body)
        if running_loop() is not self._loop:
            raise _elsewhere()
        future: asyncio.Future[T] = self._loop.create_future()
        request: PendingRequest[Any] = PendingRequest(operation, body, path, decode, future, True)
        request.missing_is_none = operation == opcodes.EXISTS
        if watcher is not None:
            self._set_watch(request, full, watcher)
        self._dispatcher.submit(request)
        return future

    def own(
        self,
        work: Callable[[], Coroutine[Any, Any, T]],
        first: asyncio.Future[Any] | None = None,
    ) -> asyncio.Future[T]:
        """Start a composed call; `first`, which may be in flight, is cancelled with it."""
        task = asyncio.get_running_loop().create_task(compose(work, first))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if first is not None:
            task.add_done_callback(lambda _: first.cancel())
        return task

    def start_task(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a task of a user, and own it until the end."""
        task = asyncio.get_running_loop().create_task(work)
        self._errands.add(task)
        task.add_done_callback(self._end_errand)
        return task

    def _end_errand(self, errand: asyncio.Task[Any]) -> None:
        self._errands.discard(errand)
        if errand.cancelled() or self._session.state is not SessionState.CLOSED:
            return
        error = errand.exception()
        # `close` was called, so that the session is over is expected.
        if error is not None and not isinstance(error, SessionExpiredError):
            self._loop.call_exception_handler(
                {"message": "a task of a client that was closed failed", "exception": error}
            )

    def check_size(self, operation: int, body: bytes) -> None:
        """Raise InvalidArgumentError for a request that is larger than servers accept."""
        if len(body) > self._body_bytes_max:
            raise self._too_large(operation, body)

    def answered(self, result: T) -> asyncio.Future[T]:
        """Return a future with a result that needs no request."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        future.set_result(result)
        return future

    def end_tasks(self) -> asyncio.Future[list[Any]]:
        """Return a future that is done when all tasks have ended; the session is over."""
        # The caller may be one of them, and cannot wait for itself.
        own = asyncio.current_task()
        errands = self._errands - {own}
        for errand in errands:
            errand.cancel()
        return asyncio.gather(*(self._tasks - {own}), *errands, return_exceptions=True)

    def _watcher(self, watch: Watcher | bool) -> Watcher:
        if not isinstance(watch, bool):
            check_watcher("watch", watch)
            return watch
        default = self._session.watches.default
        if default is None:
            raise InvalidArgumentError(
                "watch: True stands for the default watcher, and there is none"
            )
        return default

    def _set_watch(self, request: PendingRequest[Any], full: bytes, watcher: Watcher) -> None:
        """Have a read set a watch of its own, or rely on a lasting one that is there."""
        watches = self._session.watches
        served = watches.served
        is_child = request.operation in (opcodes.GET_CHILDREN, opcodes.GET_CHILDREN2)
        relies = not served.keeps_modes_apart and served.carries(full, is_child, soon=True)
        request.body = watched(full, not relies)

        def set_watch(code: int, is_wanted: bool) -> int | None:
            # Only what the server has set, too: otherwise a watch would stand here for ever.
            is_missing = code == NO_NODE and request.operation == opcodes.EXISTS
            if code != OK and not is_missing:
                return code
            if not is_child and not relies:
                served.take_read(full)
            if not is_wanted:
                # The call was cancelled, and its caller would never remove it.
                return code
            if relies:
                if not served.carries(full, is_child):
                    # What was to bring the event is gone, or never came.
                    self._set_watch(request, full, watcher)
                    self._dispatcher.submit(request)
                    return None
                served.relied_on.add(full)
            table = watches.exists if is_missing else watches.data
            watches.add(watches.child if is_child else table, full, watcher)
            return code

        request.on_reply = set_watch
        # Another connection has other watches.
        request.on_connect = lambda: self._set_watch(request, full, watcher)

    def _too_large(self, operation: int, body: bytes) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"{name_of(operation)}: the request has {len(body) + COUNTED_HEADER_BYTES} bytes, and"
            f" servers take {self._body_bytes_max + COUNTED_HEADER_BYTES}; see max_request_bytes of"
            " connect"
        )


def _elsewhere() -> UsageError:
    return UsageError(
        "a client is for the event loop on which it was made, and that does not run here; make"
        " another one for another loop, another thread, or a forked child"
    )

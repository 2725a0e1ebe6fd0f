"""The dispatcher of a client that has an observer: it tells of every request, once.

A request that is sent again, after a lost connection or to set a watch, is still the same call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from paddock.client.observer import CallObserver, SessionObserver
from paddock.client.requests.in_flight import InFlight
from paddock.client.requests.pending_request import PendingRequest, name_of
from paddock.client.session.clock import SessionClock
from paddock.client.session.dispatcher import Dispatcher
from paddock.client.session.transport import Transport
from paddock.protocol.records import WatcherEvent


class ObservedDispatcher(Dispatcher):
    """A dispatcher whose requests are observed."""

    def __init__(
        self,
        observer: SessionObserver,
        loop: asyncio.AbstractEventLoop,
        clock: SessionClock,
        in_flight: InFlight,
        *,
        on_event: Callable[[WatcherEvent, int], None],
        on_watches_set: Callable[[], None],
        on_auth_reply: Callable[[int], None],
        on_expired: Callable[[Transport], None],
        on_recovered: Callable[[], None],
        leave: Callable[[str], None],
    ) -> None:
        # Each by its name: mypyc does not pass `**` on to the constructor of a compiled base.
        super().__init__(
            loop,
            clock,
            in_flight,
            on_event=on_event,
            on_watches_set=on_watches_set,
            on_auth_reply=on_auth_reply,
            on_expired=on_expired,
            on_recovered=on_recovered,
            leave=leave,
        )
        self._observer = observer
        # Those whose future is not done.
        self._calls: dict[PendingRequest[Any], CallObserver] = {}

    def submit(self, request: PendingRequest[Any]) -> None:
        """Queue a request, as any dispatcher does."""
        self.check_started()
        if request not in self._calls:
            self._calls[request] = self._observer.call(name_of(request.operation), request.path)

            request.future.add_done_callback(lambda _: self._end(request))
        super().submit(request)

    def _answer(self, xid: int, zxid: int, code: int) -> None:
        sent = self._in_flight.sent
        request = sent[0] if sent and sent[0].xid == xid else None
        call = None if request is None else self._calls.get(request)
        if call is not None:
            call.answered(xid, zxid)
        super()._answer(xid, zxid, code)
        if request is not None and request.future.done():
            # Before its caller goes on, who may have waited for another one.
            self._end(request)

    def _end(self, request: PendingRequest[Any]) -> None:
        call = self._calls.pop(request, None)
        if call is not None:
            call.end(error_of(request.future), request.losses)


def error_of(future: asyncio.Future[Any]) -> BaseException | None:
    """Return the error of a future that is done, its cancellation included.

    `Future.exception` would count as a look at it, and asyncio would not complain any more about an
    error that nobody has looked at.
    """
    return asyncio.CancelledError() if future.cancelled() else future._exception

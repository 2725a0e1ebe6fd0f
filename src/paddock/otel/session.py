"""Spans and metrics of one session: its calls, its states, and its watches."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import TypeVar

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.metrics import Counter, Histogram
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

from paddock.client.observer import Follow, ObservedSession
from paddock.client.session.observed_dispatcher import error_of
from paddock.client.states import EventType, SessionState
from paddock.otel import names
from paddock.otel.locks import LockInstruments, Wait, wait_for
from paddock.otel.names import Attributes

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Instruments(LockInstruments):
    """What is counted and measured, for all clients."""

    calls: Histogram
    reconnects: Histogram
    states: Counter
    events: Counter


def end_span(span: Span, error: BaseException | None) -> None:
    """End a span with its outcome. A cancellation is no error of the service."""
    if error is not None and span.is_recording():
        span.set_attribute(names.ERROR_TYPE, names.type_of(error))
        code = names.status_code(error)
        if code is not None:
            span.set_attribute(names.DB_STATUS, code)
        if not isinstance(error, asyncio.CancelledError):
            span.record_exception(error)
            span.set_status(Status(StatusCode.ERROR, str(error)))
    span.end()


class SessionTelemetry:
    """The observer of one session."""

    def __init__(self, session: ObservedSession, tracer: Tracer, instruments: Instruments) -> None:
        self.session = session
        self._tracer = tracer
        self._instruments = instruments
        # What all spans and all measurements have.
        self._constant: Attributes = {names.DB_SYSTEM: names.SYSTEM}
        if session.chroot:
            self._constant[names.DB_NAMESPACE] = session.chroot
        # The last server, and since when there is none, or it does not answer.
        self._last_server: Attributes = {}
        self._reconnect: _Reconnect | None = None

    def attributes(self) -> Attributes:
        """Return what says where something is done: the service, the session, the server."""
        found = self._constant.copy()
        if self.session.id:
            found[names.SESSION] = names.hexadecimal(self.session.id)
        return found | self.server()

    def server(self) -> Attributes:
        """Return the server that has the session; without one, nothing."""
        server = self.session.server
        if server is None:
            return {}
        return {names.SERVER_ADDRESS: server[0], names.SERVER_PORT: server[1]}

    def call(self, operation: str, path: str | None) -> Call:
        attributes = self.attributes()
        attributes[names.DB_OPERATION] = operation
        if path is not None:
            attributes[names.PATH] = path
        name = f"{names.SYSTEM} {operation}"
        span = self._tracer.start_span(name, kind=SpanKind.CLIENT, attributes=attributes)
        measured = {**self._constant, names.DB_OPERATION: operation, **self.server()}
        return Call(self, span, measured)

    @contextmanager
    def composed(self, operation: str, path: str | None) -> Iterator[Follow]:
        attributes = self.attributes()
        attributes[names.DB_OPERATION] = operation
        if path is not None:
            attributes[names.PATH] = path
        # Its requests are the calls of the service.
        span = self._tracer.start_span(f"paddock {operation}", attributes=attributes)

        def follow(future: asyncio.Future[T]) -> asyncio.Future[T]:
            future.add_done_callback(lambda future: end_span(span, error_of(future)))
            return future

        with trace.use_span(span, record_exception=False, set_status_on_exception=False):
            try:
                yield follow
            except BaseException as error:
                end_span(span, error)
                raise

    def acquire(self, kind: str, path: str) -> AbstractContextManager[Wait]:
        return wait_for(kind, path, self._tracer, self._instruments, self.attributes())

    def state(self, state: SessionState) -> None:
        self._instruments.states.add(1, {**self._constant, names.STATE: state.name.lower()})
        if state.is_connected or state.is_final:
            self._end_reconnect(state)
            self._last_server = self.server()
        elif self._reconnect is None:
            self._begin_reconnect()
        if self._reconnect is not None and state is SessionState.OVERDUE:
            self._reconnect.span.add_event("overdue")

    def _begin_reconnect(self) -> None:
        attributes = self.attributes() | self._last_server
        # A trace of its own: nobody has asked for it.
        span = self._tracer.start_span(
            "zookeeper reconnect", contexts.Context(), attributes=attributes
        )
        self._reconnect = _Reconnect(span)

    def _end_reconnect(self, state: SessionState) -> None:
        reconnect, self._reconnect = self._reconnect, None
        if reconnect is None:
            return
        span, outcome = reconnect.span, state.name.lower()
        self._instruments.reconnects.record(
            perf_counter() - reconnect.began, {**self._constant, names.STATE: outcome}
        )
        if span.is_recording():
            server = self.session.server
            span.set_attribute(names.STATE, outcome)
            if server is not None:
                span.set_attribute(names.NEXT_SERVER, "{}:{}".format(*server))
            if state in (SessionState.EXPIRED, SessionState.AUTH_FAILED):
                span.set_status(Status(StatusCode.ERROR, outcome))
        span.end()

    def event(self, kind: EventType) -> None:
        attributes = {**self._constant, names.EVENT_TYPE: kind.name.lower()}
        self._instruments.events.add(1, attributes)

    def background(self) -> contextvars.Context:
        """Return the present context without its span."""
        copied = contextvars.copy_context()
        nothing = trace.set_span_in_context(trace.INVALID_SPAN)
        copied.run(contexts.attach, nothing)
        return copied

    def measure(
        self, seconds: float, attributes: Attributes, error: BaseException | None, span: Span
    ) -> None:
        """Count a call that has ended; its span is the example for others like it."""
        if error is not None:
            attributes[names.ERROR_TYPE] = names.type_of(error)
            code = names.status_code(error)
            if code is not None:
                attributes[names.DB_STATUS] = code
        self._instruments.calls.record(seconds, attributes, trace.set_span_in_context(span))


class Call:
    """One request, as a span."""

    __slots__ = ("_began", "_has_session", "_measured", "_session", "_span")

    def __init__(self, session: SessionTelemetry, span: Span, measured: Attributes) -> None:
        self._session = session
        self._span = span
        # The attributes of its measurement.
        self._measured = measured
        self._began = perf_counter()
        # That which opens the session has none yet.
        self._has_session = session.session.id != 0

    def answered(self, xid: int, zxid: int) -> None:
        # It may have been made when another server had the session, or none.
        server = self._session.server()
        self._measured.update(server)
        if self._span.is_recording():
            self._span.set_attributes({names.XID: xid, **server})
            if zxid > 0:
                self._span.set_attribute(names.ZXID, names.hexadecimal(zxid))

    def end(self, error: BaseException | None, losses: int = 0) -> None:
        self._session.measure(perf_counter() - self._began, self._measured, error, self._span)
        if self._span.is_recording():
            if losses:
                self._span.set_attribute(names.LOSSES, losses)
            if not self._has_session:
                self._span.set_attributes(self._session.attributes())
        end_span(self._span, error)


class _Reconnect:
    """The time without a connection."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self.began = perf_counter()

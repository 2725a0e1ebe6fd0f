"""Spans and metrics of what is acquired, held and released: locks, leases, leaderships.

Of a `Lock` they are:

* `Lock.acquire`, from the call to the grant, with an event `blocked` for each contender that it
  waits for, and `woken` when that one has gone. Its requests are its children.
* `Lock.hold`, from the grant to the release or the loss, with a link to the first.
* `Lock.release`, until the node is deleted, with a link to the second.

A hand-over is seen from both sides. The node in a waiter's `blocked` is that of a holder's `hold`
and `release`, and the zxid of `woken` is that of the holder's delete.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.metrics import Histogram
from opentelemetry.trace import Link, Span, Status, StatusCode, Tracer

from paddock.client.observer import Ended
from paddock.otel import names
from paddock.otel.names import Attributes


@dataclass(frozen=True, slots=True)
class LockInstruments:
    """What is measured of locks."""

    waits: Histogram
    holds: Histogram


@contextmanager
def wait_for(
    kind: str, path: str, tracer: Tracer, instruments: LockInstruments, attributes: Attributes
) -> Iterator[Wait]:
    """A scope that acquires something; its requests belong to the span."""
    wait = Wait(kind, path, tracer, instruments, attributes)
    # Not by the scope: what it raises is recorded here, and the span ends with the grant.
    with trace.use_span(wait.span, record_exception=False, set_status_on_exception=False):
        try:
            yield wait
        except BaseException as error:
            wait.end(names.type_of(error), error)
            raise
        wait.end("busy")


class Wait:
    """Something that is to be acquired."""

    def __init__(
        self,
        kind: str,
        path: str,
        tracer: Tracer,
        instruments: LockInstruments,
        attributes: Attributes,
    ) -> None:
        self._kind = kind
        self._tracer = tracer
        self._instruments = instruments
        self._attributes = {**attributes, names.LOCK_KIND: kind, names.LOCK_PATH: path}
        # Of the caller that acquires it: what is held is beside the wait for it, not below it.
        self._caller = contexts.get_current()
        self.span: Span = tracer.start_span(f"{kind}.acquire", attributes=self._attributes)
        self._began = perf_counter()
        self._blocked_by: str | None = None
        self._is_over = False

    def blocked(self, node: str, session_id: int | None) -> None:
        if node == self._blocked_by:
            # It was looked at again, after a new connection.
            return
        self._blocked_by = node
        if self.span.is_recording():
            attributes: Attributes = {names.BLOCKED_BY: node}
            if session_id is not None:
                attributes[names.BLOCKING_SESSION] = names.hexadecimal(session_id)
            self.span.add_event("blocked", attributes)

    def woken(self, zxid: int | None) -> None:
        if self.span.is_recording():
            self.span.add_event(
                "woken", None if zxid is None else {names.ZXID: names.hexadecimal(zxid)}
            )

    def granted(self, node: str, token: int) -> Hold:
        own: Attributes = {names.LOCK_NODE: node, names.LOCK_TOKEN: token}
        if self.span.is_recording():
            self.span.set_attributes(own)
        self.end("granted")
        span = self._tracer.start_span(
            f"{self._kind}.hold",
            self._caller,
            attributes=self._attributes | own,
            links=[Link(self.span.get_span_context())],
        )
        return Hold(self._kind, span, self._tracer, self._instruments, self._attributes | own)

    def end(self, outcome: str, error: BaseException | None = None) -> None:
        """End the wait, once."""
        if self._is_over:
            return
        self._is_over = True
        has_waited = self._blocked_by is not None
        measured = {names.LOCK_KIND: self._kind, names.LOCK_OUTCOME: outcome}
        self._instruments.waits.record(
            perf_counter() - self._began, {**measured, names.LOCK_WAITED: has_waited}
        )
        if self.span.is_recording():
            self.span.set_attributes({names.LOCK_OUTCOME: outcome, names.LOCK_WAITED: has_waited})
            if error is not None and not isinstance(error, asyncio.CancelledError):
                self.span.set_attribute(names.ERROR_TYPE, names.type_of(error))
                self.span.record_exception(error)
                self.span.set_status(Status(StatusCode.ERROR, str(error)))
        self.span.end()


class Hold:
    """Something that is held."""

    def __init__(
        self,
        kind: str,
        span: Span,
        tracer: Tracer,
        instruments: LockInstruments,
        attributes: Attributes,
    ) -> None:
        self._kind = kind
        self._span = span
        self._tracer = tracer
        self._instruments = instruments
        self._attributes = attributes
        self._began = perf_counter()
        self.context = contextvars.copy_context()
        self.context.run(contexts.attach, trace.set_span_in_context(span))

    def change(self, event: str) -> None:
        self._span.add_event(str(event))

    @contextmanager
    def end(self, why_lost: str | None) -> Iterator[Ended]:
        outcome = "released" if why_lost is None else "lost"
        measured = {names.LOCK_KIND: self._kind, names.LOCK_OUTCOME: outcome}
        self._instruments.holds.record(perf_counter() - self._began, measured)
        self._span.set_attribute(names.LOCK_OUTCOME, outcome)
        if why_lost is not None:
            self._span.set_attribute(names.ERROR_TYPE, "GrantLostError")
            self._span.set_status(Status(StatusCode.ERROR, why_lost))
            self._span.end()
            # What is left of it is tidied up, beyond anybody's trace.
            with trace.use_span(trace.INVALID_SPAN):
                yield _ignore
            return
        self._span.end()
        release = self._tracer.start_span(
            f"{self._kind}.release",
            attributes=self._attributes,
            links=[Link(self._span.get_span_context())],
        )

        def on_end(error: BaseException | None) -> None:
            if error is not None:
                release.record_exception(error)
                release.set_status(Status(StatusCode.ERROR, str(error)))
            release.end()

        with trace.use_span(release):
            yield on_end


def _ignore(_: BaseException | None) -> None:
    pass

"""What a client tells an observer, if it is given one: calls, states, events, and waits for locks.

The client itself knows no telemetry. `paddock.otel` has an observer that makes spans and metrics of
what it is told; any object with the methods of `Observer` will do. The rules:

* A client without an observer has none of this on the path of its calls: its dispatcher is another
  class (`session.observed_dispatcher`).
* An observer is called on the client's event loop, in the context (`contextvars`) of the caller.
  For a blocking client that is the context of the calling thread.
* It must not block, and must not raise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import Context
from typing import Protocol, TypeAlias, TypeVar, runtime_checkable

from paddock.client.metrics import ClientMetrics
from paddock.client.states import EventType, SessionState

T = TypeVar("T")

# Called when something has ended, with its error if it has one.
Ended: TypeAlias = Callable[[BaseException | None], None]


class Follow(Protocol):
    """Called with the future of a call, to be told of its end; returns the same future."""

    def __call__(self, future: asyncio.Future[T], /) -> asyncio.Future[T]: ...


class ObservedSession(Protocol):
    """What an observer may ask of a session, at any time and on any thread."""

    @property
    def id(self) -> int:
        """The id of the session; 0 before there is one."""

    @property
    def server(self) -> tuple[str, int] | None:
        """The name and the port of the server that has the session now."""

    @property
    def chroot(self) -> str:
        """The path above all paths of the client, or "" without one."""

    def metrics(self) -> ClientMetrics:
        """The metrics of the client."""


class CallObserver(Protocol):
    """One call, which is one request."""

    def answered(self, xid: int, zxid: int) -> None:
        """Its reply has come; its end follows."""

    def end(self, error: BaseException | None, losses: int = 0) -> None:
        """It has ended: well, or with an error, which may be its cancellation.

        It was in flight on so many connections that were lost.
        """


class HoldObserver(Protocol):
    """Something that is held, from when it was granted."""

    # For requests on its behalf.
    context: Context

    def change(self, event: str) -> None:
        """The connection is lost (`suspended`), or back in time (`resumed`)."""

    def end(self, why_lost: str | None) -> AbstractContextManager[Ended]:
        """It was lost, or is released; the scope deletes its node, and its value is called then."""


class WaitObserver(Protocol):
    """A wait for something that others may hold."""

    def blocked(self, node: str, session_id: int | None) -> None:
        """It waits for this node of another contender, and of this session if that is known."""

    def woken(self, zxid: int | None) -> None:
        """Something has changed there, by the transaction of this zxid if that is known."""

    def granted(self, node: str, token: int) -> HoldObserver:
        """It is ours, by this node and with this fencing token."""


class SessionObserver(Protocol):
    """What one session tells."""

    def call(self, operation: str, path: str | None) -> CallObserver:
        """A call begins."""

    def composed(self, operation: str, path: str | None) -> AbstractContextManager[Follow]:
        """A call of several requests begins; the first of them are sent in the scope."""

    def acquire(self, kind: str, path: str) -> AbstractContextManager[WaitObserver]:
        """Something is to be acquired in this scope, such as a `Lock` at a path.

        Without a grant at its end it was not free.
        """

    def state(self, state: SessionState) -> None:
        """The session has another state."""

    def event(self, kind: EventType) -> None:
        """An event of a watch has come."""

    def background(self) -> Context:
        """Return the context for what the session does of its own accord."""


@runtime_checkable
class Observer(Protocol):
    """What clients tell about themselves; one may be given to any number of them."""

    def observe(self, session: ObservedSession) -> SessionObserver:
        """Return the observer of a new client's session."""

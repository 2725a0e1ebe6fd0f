"""A session with the service, over any number of connections.

When its connection is lost, the next server is tried (`reconnector`), until the service says that
the session has expired, or the client is closed. Requests outlive a connection, and are answered
in FIFO order (`in_flight`). The rules:

* No wait is unbounded, unless its caller is patient. When the session is overdue (`clock`) and
  there is no connection, all other pending requests fail. Until a server answers, so do new ones,
  each after a pause (`dispatcher`).
* After a reconnect credentials are sent first, then unfired watches, then requests.
* In an exact session the handshake tells what became of the writes in flight. They are answered
  when the watches are set again: an event comes before the reply that shows the change.
"""

from __future__ import annotations

import asyncio
import logging
import math
import ssl
from collections.abc import Callable
from typing import Any, Final

from paddock.client.metrics import ClientMetrics
from paddock.client.observer import Observer, SessionObserver
from paddock.client.requests import decoding
from paddock.client.requests.encoder import encoded, framed_request
from paddock.client.requests.in_flight import InFlight
from paddock.client.requests.pending_request import Failure, PendingRequest
from paddock.client.session.auth import Auth
from paddock.client.session.clock import SessionClock
from paddock.client.session.dispatcher import Dispatcher
from paddock.client.session.handshake import SaslCredentials, SessionCredentials
from paddock.client.session.hosts import HostRing, Randomness
from paddock.client.session.kerberos import KerberosCredentials
from paddock.client.session.measuring import ConnectionRecord, measure
from paddock.client.session.observed_dispatcher import ObservedDispatcher, error_of
from paddock.client.session.reconnector import Attachment, Reconnector
from paddock.client.session.session_log import SessionLog
from paddock.client.session.state_publisher import StatePublisher
from paddock.client.session.transport import Transport
from paddock.client.session.wake_ups import WakeUps
from paddock.client.states import Event, EventType, SessionState
from paddock.client.time_limits import limited
from paddock.client.watches.watches import ClientWatches
from paddock.errors import (
    OK,
    AuthenticationError,
    ConnectionLostError,
    RemoteProtocolError,
    ServiceError,
    SessionExpiredError,
    UsageError,
)
from paddock.protocol import opcodes
from paddock.protocol.exact import EXACT
from paddock.protocol.records import PING_XID, SET_WATCHES_XID, WatcherEvent

logger: Final = logging.getLogger(__name__)

_OVERDUE: Final = Failure(ConnectionLostError, session_may_be_over=True)
_NOT_SENT: Final = Failure(
    ConnectionLostError,
    "it was not sent, since no server answers; the session may be over",
    may_be_applied=False,
    session_may_be_over=True,
)
_CLOSED: Final = Failure(SessionExpiredError, "the client is closed")
_CLOSED_BEFORE: Final = Failure(
    ConnectionLostError, "the client was closed before the answer came; the outcome is unknown"
)

_NODE_EVENTS: Final = frozenset(EventType) - {EventType.NONE}


class Session:
    """One session, from `start` until it is final."""

    def __init__(
        self,
        hosts: HostRing,
        timeout: float,
        random: Randomness,
        *,
        own_path: Callable[[bytes], str],
        tls: ssl.SSLContext | None = None,
        read_only: bool = False,
        sasl: SaslCredentials | KerberosCredentials | None = None,
        exact: bool = False,
        chroot: str = "",
        observer: Observer | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.chroot = chroot
        self.credentials = SessionCredentials(timeout, read_only=read_only, asks_exact=exact)
        self._log = SessionLog(logger, self.credentials)
        self.record = ConnectionRecord(self._log)
        self.observer: SessionObserver | None = None
        self.watches = ClientWatches()
        self.states = StatePublisher(self._loop)
        if observer is not None:
            self.observer = observer.observe(self)
            self.states.add(self.observer.state)
        self.states.add(self.watches.tell_everybody)
        self.reconnector = Reconnector(hosts, self.credentials, random, tls=tls, sasl=sasl)
        self._has_sasl = sasl is not None
        # Removes the chroot from a path.
        self._own_path = own_path
        self._clock = SessionClock(
            self._loop,
            timeout,
            ping=self._ping,
            leave=self._leave,
            on_overdue=self._become_overdue,
            answered=lambda: self.in_flight.answered,
        )
        # Sent on every connection.
        self.auth = Auth()
        self.in_flight = InFlight()
        # Of change feeds.
        self.wake_ups = WakeUps()
        self.dispatcher = self._new_dispatcher(
            on_event=self._notify,
            on_watches_set=self._watches_set,
            on_auth_reply=self._take_auth_reply,
            on_expired=self._expire,
            on_recovered=lambda: self.states.publish(self._attached_state),
            leave=self._leave,
        )
        self.dispatcher.on_wake_up = self.wake_ups.wake
        # How many requests that set watches again are not answered.
        self._replays = 0
        # That of the end of the session.
        self._last_transport: Transport | None = None
        # The state while there is a connection and the session is not overdue.
        self._attached_state: SessionState = SessionState.CONNECTED
        self._task: asyncio.Task[None] | None = None
        # Done when there is a session, or there will be none.
        self._established: asyncio.Future[None] = self._loop.create_future()
        # The request that ends the session.
        self._closing: PendingRequest[None] | None = None

    def _new_dispatcher(self, **handlers: Any) -> Dispatcher:
        parts = (self._loop, self._clock, self.in_flight)
        if self.observer is None:
            return Dispatcher(*parts, **handlers)
        return ObservedDispatcher(self.observer, *parts, **handlers)

    # Called by the client.

    @property
    def state(self) -> SessionState:
        return self.states.state

    @property
    def id(self) -> int:
        return self.credentials.id

    @property
    def timeout(self) -> float:
        """Seconds, as requested, then as granted."""
        return self._clock.timeout

    @property
    def valid_until(self) -> float:
        """The time, by the event loop's clock, before which the session cannot expire."""
        return -math.inf if self.state.is_final else self._clock.valid_until

    @property
    def server(self) -> tuple[str, int] | None:
        """The name and the port of the server that has the session."""
        return self.record.server

    def metrics(self) -> ClientMetrics:
        """Return the metrics of this moment; on any thread."""
        return measure(self, self._loop.time())

    async def start(self) -> None:
        """Open the session. Raises ConnectionLostError if no server grants one."""
        if self._task is not None or self.state.is_final:
            raise UsageError("a client is opened once; make another one for another session")
        self.dispatcher.refusal = None
        # What the session does later is not on behalf of who has opened it.
        context = None if self.observer is None else self.observer.background()
        self._task = self._loop.create_task(self._run(), context=context)
        self._clock.start()
        try:
            await asyncio.shield(self._established)
        except BaseException:
            await self.abandon()
            raise

    async def wait_connected(self) -> None:
        """Wait for a connection; raises if the session is over."""
        self.dispatcher.check_started()
        if not await self.states.wait_connected():
            assert self.dispatcher.refusal is not None
            raise self.dispatcher.refusal.of("connect")

    @property
    def is_attached(self) -> bool:
        """Return whether a server has our state, such as watches."""
        return self.dispatcher.transport is not None

    def authenticate(self, scheme: str, credentials: bytes | None) -> asyncio.Future[None]:
        """Send credentials, now and after every reconnect."""
        dispatcher = self.dispatcher
        dispatcher.check_started()
        # Earlier requests have the earlier identities, so they go first.
        dispatcher.write_everything()
        future = self.auth.add((scheme, credentials), dispatcher.transport)
        if self.observer is not None:
            call = self.observer.call("add_auth", None)
            future.add_done_callback(lambda future: call.end(error_of(future)))
        if dispatcher.refusal is not None:
            # They are sent on the next connection, if there is one.
            self.auth.fail(dispatcher.refusal)
        return future

    async def close(self, deadline: float) -> None:
        """End the session when all requests are answered, or after `deadline` seconds."""
        try:
            if self._established.done() and not self.state.is_final:
                async with limited(asyncio.timeout(deadline)):
                    await asyncio.shield(self._ask_to_close())
        except (TimeoutError, ServiceError) as error:
            reason = str(error) or "no answer in time"
            self._log.info("left to expire: %s", reason, reason=reason)
        finally:
            await self.abandon()
            if self._closing is not None and self._closing.future.done():
                # Mark its error as seen.
                self._closing.future.exception()

    def _ask_to_close(self) -> asyncio.Future[None]:
        if self._closing is None:
            future: asyncio.Future[None] = self._loop.create_future()
            operation = opcodes.CLOSE_SESSION
            self._closing = PendingRequest(operation, b"", None, decoding.nothing, future, True)
            self.dispatcher.submit(self._closing)
        return self._closing.future

    async def abandon(self) -> None:
        """Close the client without a request to the service."""
        self._end(SessionState.CLOSED, _CLOSED, _CLOSED_BEFORE)
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
        if self._last_transport is not None:
            # It must not be open when the event loop ends.
            await self._last_transport.wait_closed()

    # The life of a session.

    async def _run(self) -> None:
        while not self.state.is_final:
            try:
                seen = self.dispatcher.seen_zxid
                found = await self.reconnector.attach(seen, self.timeout)
            except AuthenticationError as error:
                self._log.error("%s", error, reason=error.reason)
                self._end(SessionState.AUTH_FAILED, Failure(AuthenticationError, error.reason))
                return
            _, transport, reply, _, asked_at = found
            if self.credentials.is_refused(reply):
                self._expire(transport)
                return
            self._begin(found)
            if reply.read_only:
                better = await self.reconnector.find_better(transport, self.timeout)
                if better is not None:
                    self._leave(f"{better} can be written to")
            why = await transport.lost
            was_of_use = self._clock.confirmed_at > asked_at
            self._detach(transport, was_of_use=was_of_use, why=why)
            if not self.state.is_final:
                await self.reconnector.pause_after(was_of_use=was_of_use)

    def _begin(self, found: Attachment) -> None:
        host, transport, reply, terms, asked_at = found
        self.credentials.stamp(reply, terms)
        self.record.begin(host)
        if terms is not None and not terms.flags & EXACT:
            # They say nothing of writes.
            terms = None
        transport.trust()
        self.dispatcher.attach(transport)
        self.auth.send_all(transport)
        self._replays = 0
        for request in self.watches.requests(self.dispatcher.last_zxid):
            transport.write(framed_request(SET_WATCHES_XID, opcodes.SET_WATCHES2, encoded(request)))
            self._replays += 1
        self.in_flight.begin(terms, is_read_only=bool(reply.read_only))
        if terms is not None:
            self.dispatcher.see(terms.zxid)
        if not self._replays:
            self.in_flight.deliver()
        self.in_flight.adapt()
        self.wake_ups.wake_all()
        self._clock.attach(asked_at, reply.timeout_ms / 1000, confirms=not reply.read_only)
        if not self._established.done():
            self._established.set_result(None)
        states = [SessionState.CONNECTED]
        if self._has_sasl:
            states.append(SessionState.SASL_AUTHENTICATED)
        if reply.read_only:
            # The last one stays.
            states = [*states[1:], SessionState.CONNECTED_READ_ONLY]
        self._attached_state = states[-1]
        for state in states:
            self.states.publish(state)
        self.dispatcher.flush()

    def _leave(self, reason: str) -> None:
        """Abort the connection; `_run` does the rest."""
        if self.dispatcher.transport is not None:
            self.record.leave(reason)
            self.dispatcher.transport.abort()

    def _detach(self, transport: Transport, *, was_of_use: bool, why: Exception | None) -> None:
        """Handle the loss of the connection and of the replies in flight."""
        if self.dispatcher.transport is not transport:
            return
        self.record.lose(why)
        self.dispatcher.transport = None
        self._clock.detach()
        self.in_flight.lose_connection(was_of_use=was_of_use)
        if self._clock.is_overdue:
            self._refuse(_OVERDUE, _NOT_SENT)
        else:
            self.states.publish(SessionState.DISCONNECTED)

    def _become_overdue(self) -> None:
        if not self._established.done():
            reason = f"no server gave us a session within {self.timeout:g} s: "
            failure = Failure(ConnectionLostError, reason + self.reconnector.tried())
            self._end(SessionState.CLOSED, failure)
            return
        tried = self.reconnector.tried()
        self._log.warning(
            "nothing was answered for %.1f s, it may be over: %s",
            self.timeout,
            tried,
            seconds=self.timeout,
            reason=tried,
        )
        if self.dispatcher.transport is None:
            self._refuse(_OVERDUE, _NOT_SENT)
        self.states.publish(SessionState.OVERDUE)

    def _expire(self, transport: Transport) -> None:
        transport.abort()
        if self._closing is not None and self._closing.xid:
            # We ended it, and the reply was lost.
            if not self._closing.future.done():
                self._closing.future.set_result(None)
            self._end(SessionState.CLOSED, _CLOSED, _CLOSED_BEFORE)
            return
        self._log.info("it has expired")
        self._end(SessionState.EXPIRED, Failure(SessionExpiredError))

    def _end(
        self, state: SessionState, failure: Failure, unanswered: Failure | None = None
    ) -> None:
        """Enter a final state, once: pending requests fail, those in flight with `unanswered`."""
        if self.state.is_final:
            return
        self._clock.stop()
        self.record.host = None
        transport, self.dispatcher.transport = self.dispatcher.transport, None
        if transport is not None:
            transport.on_frames = None
            transport.close()
            self._last_transport = transport
        self.dispatcher.is_ended = True
        self._refuse(unanswered or failure, failure.unsent())
        if not self._established.done():
            self._established.set_exception(failure.of("connect"))
            # Mark the error as seen: `start` may have been cancelled.
            self._established.exception()
        self.states.publish(state)
        self.watches.clear()
        self.wake_ups.wake_all()

    def _refuse(self, sent: Failure, unsent: Failure) -> None:
        """Fail pending requests, and later ones; patient ones only at the end of the session."""
        self.dispatcher.refusal = unsent
        self.in_flight.fail(sent, unsent, also_patient=self.dispatcher.is_ended)
        self.auth.fail(sent)

    # Called by the clock and the dispatcher.

    def _ping(self) -> None:
        assert self.dispatcher.transport is not None
        self.dispatcher.transport.write(framed_request(PING_XID, opcodes.PING))

    def _watches_set(self) -> None:
        self.watches.served.end_replay()
        self._replays -= 1
        if not self._replays:
            self.in_flight.deliver()

    def _take_auth_reply(self, code: int) -> None:
        """Handle the reply to our credentials."""
        if code == OK:
            self.auth.accepted()
            return
        scheme = self.auth.next_scheme
        self._log.error("credentials of scheme %s not accepted", scheme)
        reason = f"the credentials of the scheme {scheme!r} were not accepted"
        self._end(SessionState.AUTH_FAILED, Failure(AuthenticationError, reason))

    def _notify(self, told: WatcherEvent, header_zxid: int) -> None:
        if told.kind not in _NODE_EVENTS:
            # Servers send no events of the session.
            raise RemoteProtocolError(f"an event of the unknown type {told.kind}")
        kind = EventType(told.kind)
        self.record.events += 1
        if self.observer is not None:
            self.observer.event(kind)
        zxid = header_zxid if header_zxid > 0 else None
        served = self.watches.served
        served.hear(zxid)
        self.watches.tell(Event(self.state, kind, self._own_path(told.path), zxid), told.path)
        above = served.parent_to_tell(kind, told.path, zxid)
        if above is not None:
            changed = EventType.CHILDREN_CHANGED
            self.watches.tell(Event(self.state, changed, self._own_path(above)), above)

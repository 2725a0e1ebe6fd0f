"""A session with the service, whatever happens to its connections.

While a server can be reached, a session is attached to one; when that is lost, the next one is
tried (`seeker`), until the service says that the session has expired, or the client is closed.
Requests outlive a connection, and are answered in their order (`outstanding`). The rules:

* Nobody waits for ever. When the session is overdue (`clock`) and there is no connection, whatever
  waits fails, and so does what is asked until a server answers.
* After a reconnect credentials come first, then unfired watches, then requests.
"""

from __future__ import annotations

import asyncio
import logging
import math
import ssl
from collections.abc import Callable
from struct import Struct
from typing import Any, Final

from paddock.client import decoding
from paddock.client.announcer import Announcer
from paddock.client.call import Call, Failure
from paddock.client.clock import SessionClock
from paddock.client.frames import encoded, framed_request
from paddock.client.hosts import HostRing, Randomness
from paddock.client.introductions import Introductions
from paddock.client.link import Link
from paddock.client.outstanding import LOST, Outstanding
from paddock.client.passport import Passport
from paddock.client.sasl import SaslCredentials
from paddock.client.seeker import Seeker
from paddock.client.states import Event, EventType, SessionState
from paddock.client.watches import ClientWatches
from paddock.errors import (
    OK,
    SESSION_EXPIRED,
    AuthenticationError,
    ConnectionLostError,
    RemoteProtocolError,
    ServiceError,
    SessionExpiredError,
    UsageError,
)
from paddock.protocol import opcodes
from paddock.protocol.jute import DecodeError, Reader
from paddock.protocol.records import (
    AUTH_XID,
    NOTIFICATION_XID,
    PING_XID,
    SET_WATCHES_XID,
    ConnectResponse,
    WatcherEvent,
)

logger: Final = logging.getLogger(__name__)

# The number of the request, the zxid and the result.
_REPLY_HEADER: Final = Struct(">iqi")
_REPLY_HEADER_BYTES: Final = 16

_NOT_SENT: Final = Failure(
    ConnectionLostError, "it was not sent, since no server answers; the session may be over"
)
_CLOSED: Final = Failure(SessionExpiredError, "the client is closed")
_CLOSED_BEFORE: Final = Failure(
    ConnectionLostError, "the client was closed before the answer came; the outcome is unknown"
)
# Nobody gets it: whoever asks too early has a program to mend.
_NOT_STARTED: Final = Failure(ConnectionLostError)
# So many requests in a write are no crowd.
_FEW: Final = 8


class Gathering:
    """A scope, without an await in it, at whose end what was asked in it is written as one."""

    def __init__(self, session: Session) -> None:
        self._session = session
        # Not one that is within another one.
        self._is_outermost = False

    def __enter__(self) -> None:
        self._is_outermost = self._session.begin_to_gather()

    def __exit__(self, *_: object) -> None:
        if self._is_outermost:
            self._session.write_gathered()


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
        sasl: SaslCredentials | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._passport = Passport(timeout, read_only=read_only)
        # The last zxid in any reply: what a server must have seen to be of use to us.
        self.last_zxid = 0
        self.watches = ClientWatches()
        # Where every state is told, and who hears of it first.
        self.states = Announcer(self._loop)
        self.states.add(self.watches.tell_everybody)
        self._seeker = Seeker(hosts, self._passport, random, tls=tls, sasl=sasl)
        self._has_sasl = sasl is not None
        # Gives a path of the service as the client knows it.
        self._own_path = own_path
        self._clock = SessionClock(
            self._loop,
            timeout,
            ping=self._ping,
            leave=self._leave,
            on_overdue=self._become_overdue,
            answered=lambda: self._outstanding.answered,
        )
        # Who we are, as said on every connection.
        self.introductions = Introductions()
        self._outstanding = Outstanding()
        # One for all replies, which are read one after the other.
        self._reader = Reader(b"")
        self._flush_is_due = False
        # Whether what is asked has to wait for what is asked with it.
        self._is_gathering = False
        # Whether the last write had many requests: who asks like that does better with one write.
        self._comes_in_crowds = False
        # Why a request fails that is asked now; None if it does not.
        self._refusal: Failure | None = _NOT_STARTED
        self._link: Link | None = None
        # The one that was closed with the session.
        self._last_link: Link | None = None
        # What the state is while the link stands and the session is not overdue.
        self._attached_state = SessionState.CONNECTED
        self._task: asyncio.Task[None] | None = None
        # Done when there is a session, or it is clear that there will be none.
        self._established: asyncio.Future[None] = self._loop.create_future()
        # What asks the service to end the session, once we want that.
        self._closing: Call[None] | None = None

    # What the client calls.

    @property
    def state(self) -> SessionState:
        return self.states.state

    @property
    def id(self) -> int:
        return self._passport.id

    @property
    def password(self) -> bytes:
        return self._passport.password

    @property
    def timeout(self) -> float:
        """Seconds, as asked for, and as granted once there is a session."""
        return self._clock.timeout

    @property
    def valid_until(self) -> float:
        """The time, by the event loop, until which the session surely lives."""
        return -math.inf if self.state.is_final else self._clock.sure_until

    async def start(self) -> None:
        """Begin, and wait for a session. Raises ConnectionLostError if no server gives us one."""
        if self._task is not None or self.state.is_final:
            raise UsageError("a client is opened once; make another one for another session")
        self._refusal = None
        self._task = self._loop.create_task(self._run())
        self._clock.start()
        try:
            await asyncio.shield(self._established)
        except BaseException:
            await self.abandon()
            raise

    async def wait_connected(self) -> None:
        """Wait until there is a connection; raises if there will be none any more."""
        self._check_started()
        if not await self.states.wait_connected():
            assert self._refusal is not None
            raise self._refusal.of("connect")

    @property
    def is_attached(self) -> bool:
        """Tell whether a server has what we asked it to remember, such as watches."""
        return self._link is not None

    def is_watch_under_way(self, path: str) -> bool:
        """Tell whether a request that may set a watch on this path is not answered yet."""
        return self._outstanding.may_set_watch(path)

    def submit(self, call: Call[Any]) -> None:
        """Queue a request; its future will be done, whatever happens."""
        if self._refusal is not None:
            self._check_started()
            # Not at once: who awaits what is done lets nobody else run, so somebody who asks again
            # and again would stop the event loop, and with it all that could make an end of it.
            self._loop.call_soon(call.fail, self._refusal)
        else:
            self._outstanding.unsent.append(call)
            if self._outstanding.sent or self._flush_is_due or self._comes_in_crowds:
                self._schedule_flush()
            elif not self._is_gathering:
                # It comes alone, and need not wait for a pass of the loop that brings nothing else.
                # What follows in this pass is written in the next, so that is one write in each.
                self._flush()

    def begin_to_gather(self) -> bool:
        """Have what is asked wait for what is asked with it; tell whether it does not already."""
        begins, self._is_gathering = not self._is_gathering, True
        return begins

    def write_gathered(self) -> None:
        """Write what was asked meanwhile, as one, and have nothing wait any more."""
        self._is_gathering = False
        if self._outstanding.unsent and not self._flush_is_due:
            self._flush()

    def authenticate(self, scheme: str, credentials: bytes | None) -> asyncio.Future[None]:
        """Say who we are, now and after every reconnect."""
        self._check_started()
        # What was asked before is asked by whom we were, so it goes first, however much it is.
        while self._link is not None and self._link.is_open and self._outstanding.unsent:
            self._write(self._link)
        future = self.introductions.add((scheme, credentials), self._link)
        if self._refusal is not None:
            # It is said on the next connection, if there is one; until when, nobody knows.
            self.introductions.fail(self._refusal)
        return future

    def _check_started(self) -> None:
        """Raise UsageError if nothing that is asked would ever be sent."""
        if self._refusal is _NOT_STARTED:
            raise UsageError("the client is not open: enter its scope, or call `start`, before")

    async def close(self, deadline: float) -> None:
        """End the session when everything that was asked has been answered, or time is up."""
        try:
            if self._established.done() and not self.state.is_final:
                async with asyncio.timeout(deadline):
                    await asyncio.shield(self._ask_to_close())
        except (TimeoutError, ServiceError) as error:
            reason = str(error) or "no answer in time"
            logger.info("session 0x%x: left to expire: %s", self.id, reason)
        finally:
            await self.abandon()
            if self._closing is not None and self._closing.future.done():
                # Nobody else hears of it.
                self._closing.future.exception()

    def _ask_to_close(self) -> asyncio.Future[None]:
        if self._closing is None:
            future: asyncio.Future[None] = self._loop.create_future()
            operation = opcodes.CLOSE_SESSION
            self._closing = Call(operation, b"", None, decoding.nothing, future, True)
            self.submit(self._closing)
        return self._closing.future

    async def abandon(self) -> None:
        """Let go of everything, without telling the service."""
        self._end(SessionState.CLOSED, _CLOSED, _CLOSED_BEFORE)
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
        if self._last_link is not None:
            # The event loop may end with us, and must not find it open.
            await self._last_link.wait_closed()

    # The life of a session.

    async def _run(self) -> None:
        while not self.state.is_final:
            try:
                link, reply, asked_at = await self._seeker.attach(self.last_zxid, self.timeout)
            except AuthenticationError as error:
                logger.error("session 0x%x: %s", self.id, error)
                self._end(SessionState.AUTH_FAILED, Failure(AuthenticationError, error.reason))
                return
            if self._passport.is_refused(reply):
                self._expire(link)
                return
            self._begin(link, reply, asked_at)
            if reply.read_only:
                better = await self._seeker.find_better(link, self.timeout)
                if better is not None:
                    self._leave(f"{better} can be written to")
            await link.lost
            was_of_use = self._clock.vouched_at > asked_at
            self._detach(link, was_of_use=was_of_use)
            if not self.state.is_final:
                await self._seeker.pause_after(was_of_use=was_of_use)

    def _begin(self, link: Link, reply: ConnectResponse, asked_at: float) -> None:
        self._passport.stamp(reply)
        self._link = link
        self._refusal = None
        link.trust()
        link.on_frames = self._receive
        link.on_writable = self._flush
        self.introductions.send_all(link)
        for request in self.watches.requests(self.last_zxid):
            link.write(framed_request(SET_WATCHES_XID, opcodes.SET_WATCHES2, encoded(request)))
        self._outstanding.adapt()
        self._clock.attach(asked_at, reply.timeout_ms / 1000, vouches=not reply.read_only)
        if not self._established.done():
            self._established.set_result(None)
        states = [SessionState.CONNECTED]
        if self._has_sasl:
            states.append(SessionState.SASL_AUTHENTICATED)
        if reply.read_only:
            # What matters most is what stays.
            states = [*states[1:], SessionState.CONNECTED_READ_ONLY]
        self._attached_state = states[-1]
        for state in states:
            self.states.announce(state)
        self._flush()

    def _leave(self, reason: str) -> None:
        """Give up on the connection; whoever waits for its end does the rest."""
        if self._link is not None:
            logger.info("session 0x%x: connection left: %s", self.id, reason)
            self._link.abort()

    def _detach(self, link: Link, *, was_of_use: bool) -> None:
        """Take note that the connection is gone, with the answers that were on their way."""
        if self._link is not link:
            return
        self._link = None
        self._clock.detach()
        self._outstanding.lose_connection(was_of_use=was_of_use)
        if self._clock.is_overdue:
            self._refuse(LOST, _NOT_SENT)
        else:
            self.states.announce(SessionState.DISCONNECTED)

    def _become_overdue(self) -> None:
        if not self._established.done():
            reason = f"no server gave us a session within {self.timeout:g} s: "
            failure = Failure(ConnectionLostError, reason + self._seeker.tried())
            self._end(SessionState.CLOSED, failure)
            return
        logger.warning(
            "session 0x%x: nothing was answered for %.1f s, it may be over: %s",
            self.id,
            self.timeout,
            self._seeker.tried(),
        )
        if self._link is None:
            self._refuse(LOST, _NOT_SENT)
        self.states.announce(SessionState.OVERDUE)

    def _expire(self, link: Link) -> None:
        link.abort()
        if self._closing is not None and self._closing.xid:
            # It ended because we asked for it, and the answer was lost.
            if not self._closing.future.done():
                self._closing.future.set_result(None)
            self._end(SessionState.CLOSED, _CLOSED, _CLOSED_BEFORE)
            return
        logger.info("session 0x%x has expired", self.id)
        self._end(SessionState.EXPIRED, Failure(SessionExpiredError))

    def _end(
        self, state: SessionState, failure: Failure, unanswered: Failure | None = None
    ) -> None:
        """Come to a final state: everything that waits fails, once.

        What was sent and is not answered may fail for a reason of its own.
        """
        if self.state.is_final:
            return
        self._clock.stop()
        link, self._link = self._link, None
        if link is not None:
            link.on_frames = None
            link.close()
            self._last_link = link
        self._refuse(unanswered or failure, failure)
        if not self._established.done():
            self._established.set_exception(failure.of("connect"))
            # Whoever began may have gone: then nobody needs to hear of it.
            self._established.exception()
        self.states.announce(state)
        self.watches.clear()

    def _refuse(self, sent: Failure, unsent: Failure) -> None:
        """Let everything that waits fail, and what is asked from now on."""
        self._refusal = unsent
        self._outstanding.fail(sent, unsent)
        self.introductions.fail(sent)

    # What goes out, and what comes in.

    def _ping(self) -> None:
        assert self._link is not None
        self._link.write(framed_request(PING_XID, opcodes.PING))

    def _schedule_flush(self) -> None:
        if not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Write once; what does not fit into it has the next pass of the loop."""
        self._flush_is_due = False
        link = self._link
        if link is None or not link.is_writable:
            return
        self._write(link)
        if self._outstanding.unsent and link.is_writable:
            self._schedule_flush()

    def _write(self, link: Link) -> None:
        now = self._loop.time()
        before = len(self._outstanding.sent)
        requests = self._outstanding.take(now)
        if requests:
            self._comes_in_crowds = len(self._outstanding.sent) - before > _FEW
            self._clock.sent_at = now
            link.write(requests)

    def _receive(self, frames: list[bytes]) -> None:
        self._clock.heard_at = self._loop.time()
        try:
            for frame in frames:
                self._take(frame)
        except (DecodeError, IndexError, RemoteProtocolError) as error:
            self._leave(f"the server sent what it should not: {error}")
            return
        if self._clock.is_overdue and self._link is not None and self._clock.recover():
            self.states.announce(self._attached_state)

    def _take(self, frame: bytes) -> None:
        if len(frame) < _REPLY_HEADER_BYTES:
            raise RemoteProtocolError("a frame without a header")
        xid, zxid, code = _REPLY_HEADER.unpack_from(frame)
        reader = self._reader
        reader.data = frame
        reader.position = _REPLY_HEADER_BYTES
        if xid > 0:
            sent = self._outstanding.sent
            if not sent or sent[0].xid != xid:
                raise RemoteProtocolError(f"a reply to request {xid}, which is not the next")
            if zxid > self.last_zxid:
                self.last_zxid = zxid
            call = sent.popleft()
            if call.sent_at > self._clock.vouched_at:
                self._clock.vouched_at = call.sent_at
            call.answer(code, reader)
            if code == SESSION_EXPIRED and self._link is not None:
                # A service may say so before it ends the connection. Whoever was told finds it so.
                self._expire(self._link)
        elif xid == NOTIFICATION_XID:
            self._notify(WatcherEvent.read(reader))
        elif xid == PING_XID:
            # A connection may outlive its session: when somebody else has closed that one just
            # while we took it back. The next handshake tells.
            if code != OK:
                raise RemoteProtocolError(f"an answer to a ping with the error {code}")
            if not self._clock.answer_ping():
                raise RemoteProtocolError("an answer to a ping that was not sent")
        elif xid == AUTH_XID:
            self._take_word(code)
        elif xid != SET_WATCHES_XID:
            raise RemoteProtocolError(f"a reply with the number {xid}")

    def _take_word(self, code: int) -> None:
        """Hear what the service makes of our credentials."""
        if code == OK:
            self.introductions.accepted()
            return
        scheme = self.introductions.next_scheme
        logger.error("session 0x%x: credentials of scheme %s not accepted", self.id, scheme)
        reason = f"the credentials of the scheme {scheme!r} were not accepted"
        self._end(SessionState.AUTH_FAILED, Failure(AuthenticationError, reason))

    def _notify(self, told: WatcherEvent) -> None:
        try:
            kind = EventType(told.kind)
        except ValueError:
            kind = EventType.NONE
        if kind is EventType.NONE:
            # What concerns the session we know ourselves: no server tells us.
            raise RemoteProtocolError(f"an event of the unknown type {told.kind}")
        self.watches.tell(Event(self.state, kind, self._own_path(told.path)), told.path)
        above = self.watches.parent_to_tell(kind, told.path)
        if above is not None:
            changed = EventType.CHILDREN_CHANGED
            self.watches.tell(Event(self.state, changed, self._own_path(above)), above)

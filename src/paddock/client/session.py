"""A session with the service, whatever happens to its connections.

Requests queue here and are answered in their order. While a server can be reached, a session is
attached to one; when that is lost, the next one is tried, with pauses that are random and grow,
until the service says that the session has expired, or the client is closed. The rules:

* A request whose answer was lost is sent again if repeating it does no harm; otherwise whoever
  asked is told that the outcome is unknown. What was not sent yet just waits.
* A server that says nothing for two thirds of the timeout is left; pings after a third of silence
  of our own make it say something.
* Nobody waits for ever. When the last answered request was sent longer ago than the timeout, the
  session may be over: whatever waits then fails, and so does what is asked until a server answers.
* After a reconnect credentials come first, then unfired watches, then requests.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from librt.strings import BytesWriter, read_i32_be, read_i64_be, write_i32_be

from paddock.client.call import Call
from paddock.client.hosts import Backoff, Host, HostRing, Randomness
from paddock.client.link import Link
from paddock.client.states import Event, EventType, SessionState
from paddock.client.watches import ClientWatches, Watcher
from paddock.errors import (
    OK,
    AuthenticationError,
    ConnectionLostError,
    RemoteProtocolError,
    ServiceError,
    SessionExpiredError,
)
from paddock.protocol import opcodes
from paddock.protocol.jute import DecodeError, Reader
from paddock.protocol.records import (
    AUTH_XID,
    NOTIFICATION_XID,
    PING_XID,
    SET_WATCHES_XID,
    ConnectRequest,
    ConnectResponse,
    WatcherEvent,
)
from paddock.protocol.requests import AuthPacket

logger: Final = logging.getLogger(__name__)

# A scheme, and what proves to it who we are.
Credentials: TypeAlias = tuple[str, bytes]

_XID_MAX: Final = 2**31 - 1
# How much is written at a time before we look whether the server takes it.
_WRITE_BYTES_MAX: Final = 1 << 20
_ATTEMPT_SECONDS_MIN: Final = 0.5


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
    ) -> None:
        self.state = SessionState.DISCONNECTED
        self.id = 0
        self.password = bytes(16)
        # Seconds, as asked for, and as granted once there is a session.
        self.timeout = timeout
        # The last zxid in any reply: what a server must have seen to be of use to us.
        self.last_zxid = 0
        self.watches = ClientWatches()
        # Told of every change of the state, and of everything that no watcher of its own is for.
        self.default_watcher: Watcher | None = None
        # Called with each new state.
        self.on_state: Callable[[SessionState], None] | None = None
        # Called when the session may be over, for all that we know.
        self.on_overdue: Callable[[], None] | None = None
        self._hosts = hosts
        # Gives a path of the service as the client knows it.
        self._own_path = own_path
        self._tls = tls
        self._read_only = read_only
        self._backoff = Backoff(random)
        self._loop = asyncio.get_running_loop()
        # Who we are, and who waits for the service to know it.
        self._credentials: dict[Credentials, list[asyncio.Future[None]]] = {}
        # Those that were sent on this connection and are not answered, in their order.
        self._introductions: deque[Credentials] = deque()
        # Requests that are to be sent, and those that wait for their answer, each in their order.
        self._queue: deque[Call[Any]] = deque()
        self._pending: deque[Call[Any]] = deque()
        self._xid = 0
        self._flush_is_due = False
        self._link: Link | None = None
        # The answer to our handshake, while there is none.
        self._handshake: asyncio.Future[bytes] | None = None
        self._heard_at = 0.0
        self._sent_at = 0.0
        self._pinged_at = 0.0
        # When the last request was sent that has been answered: the session lives at least for its
        # timeout from then on.
        self._vouched_at = self._loop.time()
        self._is_overdue = False
        self._heartbeat: asyncio.TimerHandle | None = None
        self._overdue: asyncio.TimerHandle | None = None
        self._state_changed = _Pulse()
        self._task: asyncio.Task[None] | None = None
        self._failure = "no attempt has been made"
        # Done when there is a session, or it is clear that there will be none.
        self._established: asyncio.Future[None] = self._loop.create_future()

    # What the client calls.

    async def start(self) -> None:
        """Begin, and wait for a session. Raises ConnectionLostError if no server gives us one."""
        assert self._task is None, "a session starts once"
        self._task = self._loop.create_task(self._run())
        self._expect_answer()
        try:
            await asyncio.shield(self._established)
        except asyncio.CancelledError:
            await self.abandon()
            raise

    async def wait_connected(self) -> None:
        """Wait until there is a connection; raises if there will be none any more."""
        while not self.state.is_connected:
            if self.state.is_final:
                raise self._final_error()("connect")
            await self._state_changed.wait()

    def submit(self, call: Call[Any]) -> None:
        """Queue a request; its future will be done, whatever happens."""
        if self.state.is_final:
            call.fail(self._final_error())
        elif self._is_overdue:
            call.fail(ConnectionLostError)
        else:
            self._queue.append(call)
            self._schedule_flush()

    def authenticate(self, scheme: str, credentials: bytes) -> asyncio.Future[None]:
        """Say who we are, now and after every reconnect."""
        future: asyncio.Future[None] = self._loop.create_future()
        if self.state.is_final:
            future.set_exception(self._final_error()("add_auth"))
            return future
        self._credentials.setdefault((scheme, credentials), []).append(future)
        if self._link is not None:
            self._introduce(self._link, (scheme, credentials))
        return future

    async def close(self, deadline: float) -> None:
        """End the session when everything that was asked has been answered, or time is up."""
        if self.state.is_final:
            await self.abandon()
            return
        future: asyncio.Future[None] = self._loop.create_future()
        call = Call(opcodes.CLOSE_SESSION, b"", None, lambda reader: None, future, True)
        self.submit(call)
        try:
            async with asyncio.timeout(deadline):
                await asyncio.shield(future)
        except (TimeoutError, ServiceError) as error:
            reason = str(error) or "no answer in time"
            logger.info("session 0x%x: left to expire: %s", self.id, reason)
        finally:
            await self.abandon()

    async def abandon(self) -> None:
        """Let go of everything, without telling the service."""
        self._end(SessionState.CLOSED)
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    # The life of a session.

    async def _run(self) -> None:
        while not self.state.is_final:
            host = self._hosts.take()
            try:
                link = await self._attach(host)
            except (OSError, TimeoutError, RemoteProtocolError) as error:
                self._failure = f"{host}: {str(error) or type(error).__name__}"
                logger.debug("session 0x%x: %s", self.id, self._failure)
            else:
                if link is not None:
                    await link.lost
                    self._detach(link)
                    continue
            if self._hosts.is_round_over() and not self.state.is_final:
                await asyncio.sleep(self._backoff.next())

    async def _attach(self, host: Host) -> Link | None:
        """Try one server; give the connection if it took us, None if there will be no session."""
        limit = max(self.timeout / len(self._hosts), _ATTEMPT_SECONDS_MIN)
        async with asyncio.timeout(limit):
            _, link = await self._loop.create_connection(
                lambda: Link(self._receive), host.name, host.port, ssl=self._tls
            )
            try:
                begun = self._loop.time()
                reply = await self._shake_hands(link)
            except BaseException:
                link.abort()
                raise
        if reply.timeout_ms <= 0:
            link.abort()
            logger.info("session 0x%x has expired", self.id)
            self._end(SessionState.EXPIRED)
            return None
        self._begin(link, reply, begun)
        return link

    async def _shake_hands(self, link: Link) -> ConnectResponse:
        writer = BytesWriter()
        ConnectRequest(
            0,
            self.last_zxid,
            round(self.timeout * 1000),
            self.id,
            self.password,
            self._read_only,
        ).write(writer)
        self._handshake = self._loop.create_future()
        link.write(_framed(writer.getvalue()))
        try:
            await asyncio.wait((self._handshake, link.lost), return_when=asyncio.FIRST_COMPLETED)
            if not self._handshake.done():
                raise ConnectionResetError("the server closed the connection")
            return ConnectResponse.read(Reader(self._handshake.result()))
        except DecodeError as error:
            raise RemoteProtocolError(f"handshake not understood: {error}") from error
        finally:
            self._handshake.cancel()
            self._handshake = None

    def _begin(self, link: Link, reply: ConnectResponse, begun: float) -> None:
        self.id = reply.session_id
        self.password = reply.password or bytes(16)
        self.timeout = reply.timeout_ms / 1000
        self._link = link
        link.on_writable = self._flush
        now = self._loop.time()
        self._heard_at = self._sent_at = now
        self._pinged_at = begun
        self._vouch(begun)
        self._backoff.reset()
        self._introductions.clear()
        for credentials in self._credentials:
            self._introduce(link, credentials)
        for request in self.watches.requests(self.last_zxid):
            writer = BytesWriter()
            write_i32_be(writer, SET_WATCHES_XID)
            write_i32_be(writer, opcodes.SET_WATCHES2)
            request.write(writer)
            link.write(_framed(writer.getvalue()))
        self._beat()
        if not self._established.done():
            self._established.set_result(None)
        self._set_state(
            SessionState.CONNECTED_READ_ONLY if reply.read_only else SessionState.CONNECTED
        )
        self._flush()

    def _detach(self, link: Link) -> None:
        """Take note that the connection is gone, with the answers that were on their way."""
        if self._link is not link:
            return
        self._link = None
        if self._heartbeat is not None:
            self._heartbeat.cancel()
        pending, self._pending = self._pending, deque()
        for call in reversed(pending):
            if call.is_repeatable:
                self._queue.appendleft(call)
        for call in pending:
            if not call.is_repeatable:
                call.fail(ConnectionLostError)
        self._expect_answer()
        if not self.state.is_final:
            self._set_state(SessionState.DISCONNECTED)

    def _end(self, state: SessionState) -> None:
        """Come to a final state: everything that waits fails, once."""
        if self.state.is_final:
            return
        for timer in (self._heartbeat, self._overdue):
            if timer is not None:
                timer.cancel()
        link, self._link = self._link, None
        if link is not None:
            link.close()
        self._set_state(state)
        self._fail_all(self._final_error())
        if not self._established.done():
            self._established.set_exception(self._final_error()("connect"))
        self._tell_everybody(state)
        self.watches.clear()

    def _fail_all(self, kind: type[ServiceError]) -> None:
        calls = [*self._pending, *self._queue]
        self._pending.clear()
        self._queue.clear()
        for call in calls:
            call.fail(kind)
        for waiting in self._credentials.values():
            for future in waiting:
                if not future.done():
                    future.set_exception(kind("add_auth"))
            waiting.clear()

    def _final_error(self) -> type[ServiceError]:
        if self.state is SessionState.EXPIRED:
            return SessionExpiredError
        return (
            AuthenticationError if self.state is SessionState.AUTH_FAILED else ConnectionLostError
        )

    def _set_state(self, state: SessionState) -> None:
        if state is self.state:
            return
        self.state = state
        self._state_changed.beat()
        if self.on_state is not None:
            self.on_state(state)
        if not state.is_final:
            self._tell_everybody(state)

    def _tell_everybody(self, state: SessionState) -> None:
        event = Event(state, EventType.NONE, None)
        watchers = dict.fromkeys(self.watches.everybody())
        if self.default_watcher is not None:
            watchers[self.default_watcher] = None
        for watcher in watchers:
            self._tell(watcher, event)

    def _tell(self, watcher: Watcher, event: Event) -> None:
        try:
            watcher(event)
        except Exception as error:
            self._loop.call_exception_handler(
                {"message": f"a watcher failed on {event}", "exception": error}
            )

    # Time.

    def _vouch(self, sent_at: float) -> None:
        """Take note that something we sent at that time was answered."""
        if sent_at > self._vouched_at:
            self._vouched_at = sent_at
        self._is_overdue = False

    def _expect_answer(self) -> None:
        """Look again when the session may be over."""
        if self._overdue is not None:
            self._overdue.cancel()
        self._overdue = self._loop.call_at(self._vouched_at + self.timeout, self._look_at_clock)

    def _look_at_clock(self) -> None:
        if self.state.is_final:
            return
        if self._loop.time() < self._vouched_at + self.timeout:
            self._expect_answer()
            return
        self._is_overdue = True
        logger.warning(
            "session 0x%x: nothing was answered for %.1f s, it may be over; last failure: %s",
            self.id,
            self.timeout,
            self._failure,
        )
        if not self._established.done():
            self._end(SessionState.CLOSED)
            return
        self._fail_all(ConnectionLostError)
        if self.on_overdue is not None:
            self.on_overdue()

    def _beat(self) -> None:
        """Ping a server to which we said nothing for a while; leave one that says nothing."""
        link = self._link
        if link is None:
            return
        now = self._loop.time()
        if now >= self._heard_at + self.timeout * 2 / 3:
            self._failure = "the server went silent"
            link.abort()
            return
        if now >= self._sent_at + self.timeout / 3:
            self._sent_at = self._pinged_at = now
            writer = BytesWriter()
            write_i32_be(writer, PING_XID)
            write_i32_be(writer, opcodes.PING)
            link.write(_framed(writer.getvalue()))
        next_at = min(self._sent_at + self.timeout / 3, self._heard_at + self.timeout * 2 / 3)
        self._heartbeat = self._loop.call_at(next_at, self._beat)

    # What goes out, and what comes in.

    def _schedule_flush(self) -> None:
        if not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_is_due = False
        link, queue, pending = self._link, self._queue, self._pending
        if link is None or not queue or not link.is_writable:
            return
        now = self._loop.time()
        self._sent_at = now
        writer = BytesWriter()
        while queue:
            call = queue.popleft()
            if call.future.cancelled():
                continue
            self._xid = call.xid = self._xid + 1 if self._xid < _XID_MAX else 1
            call.sent_at = now
            body = call.body
            write_i32_be(writer, 8 + len(body))
            write_i32_be(writer, call.xid)
            write_i32_be(writer, call.operation)
            writer.write(body)
            pending.append(call)
            if len(writer) > _WRITE_BYTES_MAX:
                takes_more = link.write(writer.getvalue())
                writer = BytesWriter()
                if not takes_more:
                    return
        if len(writer):
            link.write(writer.getvalue())

    def _introduce(self, link: Link, credentials: Credentials) -> None:
        self._introductions.append(credentials)
        writer = BytesWriter()
        write_i32_be(writer, AUTH_XID)
        write_i32_be(writer, opcodes.AUTH)
        AuthPacket(0, *credentials).write(writer)
        link.write(_framed(writer.getvalue()))

    def _receive(self, frames: list[bytes]) -> None:
        handshake = self._handshake
        if handshake is not None:
            if not handshake.done():
                handshake.set_result(frames[0])
            # Nothing is sent to us before the handshake is answered, so nothing else is there.
            return
        self._heard_at = self._loop.time()
        try:
            for frame in frames:
                self._take(frame)
        except (DecodeError, IndexError, RemoteProtocolError) as error:
            self._failure = f"the server sent what it should not: {error}"
            logger.warning("session 0x%x: %s", self.id, self._failure)
            if self._link is not None:
                self._link.abort()

    def _take(self, frame: bytes) -> None:
        if len(frame) < 16:
            raise RemoteProtocolError("a frame without a header")
        xid = read_i32_be(frame, 0)
        if xid > 0:
            pending = self._pending
            if not pending or pending[0].xid != xid:
                raise RemoteProtocolError(f"a reply to request {xid}, which is not the next")
            zxid = read_i64_be(frame, 4)
            if zxid > self.last_zxid:
                self.last_zxid = zxid
            call = pending.popleft()
            self._vouched_at = call.sent_at
            call.answer(read_i32_be(frame, 12), Reader(frame, 16))
        elif xid == NOTIFICATION_XID:
            self._notify(WatcherEvent.read(Reader(frame, 16)))
        elif xid == PING_XID:
            self._vouch(self._pinged_at)
        elif xid == AUTH_XID:
            self._authenticated(read_i32_be(frame, 12))
        elif xid != SET_WATCHES_XID:
            raise RemoteProtocolError(f"a reply with the number {xid}")

    def _authenticated(self, code: int) -> None:
        if code != OK:
            logger.error("session 0x%x: the credentials were not accepted", self.id)
            self._end(SessionState.AUTH_FAILED)
            return
        if not self._introductions:
            raise RemoteProtocolError("an answer to credentials that were not sent")
        waiting = self._credentials[self._introductions.popleft()]
        for future in waiting:
            if not future.done():
                future.set_result(None)
        waiting.clear()

    def _notify(self, told: WatcherEvent) -> None:
        try:
            kind = EventType(told.kind)
        except ValueError:
            raise RemoteProtocolError(f"an event of the unknown type {told.kind}") from None
        event = Event(self.state, kind, self._own_path(told.path))
        watchers = self.watches.take(kind, told.path)
        if not watchers and self.default_watcher is not None:
            watchers = [self.default_watcher]
        for watcher in watchers:
            self._tell(watcher, event)


class _Pulse:
    """Something that happens again and again; whoever waits is woken by the next time."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def beat(self) -> None:
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self) -> None:
        await self._event.wait()


def _framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload

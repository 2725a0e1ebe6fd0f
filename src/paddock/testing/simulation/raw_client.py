"""A client that pipelines: it sends the calls of a burst at once, and takes what comes.

It behaves as the common clients do: it has one session, goes to the next server when it loses a
connection, says what zxid it has seen, sets its watches again, pings, and begins a new session when
it is told that the old one is over. It keeps nothing of what it sees: the history has it.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Sequence
from typing import Final

from paddock.protocol import events, opcodes
from paddock.protocol.acl import OPEN
from paddock.protocol.framing import FrameBuffer
from paddock.protocol.jute import Reader
from paddock.protocol.operations import Record
from paddock.protocol.records import (
    PING_XID,
    SET_WATCHES_XID,
    ConnectRequest,
    ConnectResponse,
)
from paddock.protocol.requests import (
    AddWatchRequest,
    CreateRequest,
    PathRequest,
    SetDataRequest,
    SetWatchesRequest,
    VersionRequest,
    WatchedRequest,
    WatchesRequest,
)
from paddock.testing.simulation.frames import (
    Request,
    Step,
    decode_event,
    decode_reply,
    encode_record,
    encode_request,
    is_event,
    reply_xid,
)
from paddock.testing.simulation.plan import Burst, ClientPlan, Wish

Address = tuple[str, int]

_FRAME_BYTES_MAX: Final = 1 << 24
_NO_PASSWORD: Final = bytes(16)
_NUMBERS: Final = {
    "set": opcodes.SET_DATA,
    "delete": opcodes.DELETE,
    "get": opcodes.GET_DATA,
    "exists": opcodes.EXISTS,
    "children": opcodes.GET_CHILDREN,
    "children2": opcodes.GET_CHILDREN2,
    "sync": opcodes.SYNC,
    "multi": opcodes.MULTI,
    "multi_read": opcodes.MULTI_READ,
    "add_watch": opcodes.ADD_WATCH,
    "remove_watches": opcodes.REMOVE_WATCHES,
    "ephemerals": opcodes.GET_EPHEMERALS,
    "check": opcodes.CHECK,
    "close": opcodes.CLOSE_SESSION,
}
_CONTAINER: Final = 4


def operation_of(wish: Wish) -> int:
    if wish.name == "create":
        return opcodes.CREATE_CONTAINER if wish.flags == _CONTAINER else opcodes.CREATE2
    return _NUMBERS[wish.name]


def body_of(wish: Wish) -> Record | list[Step] | None:
    """Return the request of a wish."""
    path = wish.path.encode()
    match wish.name:
        case "create":
            return CreateRequest(path, wish.data.encode(), list(OPEN), wish.flags)
        case "set":
            return SetDataRequest(path, wish.data.encode(), wish.version)
        case "delete" | "check":
            return VersionRequest(path, wish.version)
        case "get" | "exists" | "children" | "children2":
            return WatchedRequest(path, wish.watch)
        case "sync" | "ephemerals":
            return PathRequest(path)
        case "add_watch":
            return AddWatchRequest(path, wish.flags)
        case "remove_watches":
            return WatchesRequest(path, 3)
        case "multi" | "multi_read":
            return [(operation_of(one), body_of(one)) for one in wish.steps]  # type: ignore[misc]
    return None


class RawClient:
    """One client, on the process's loop that runs it."""

    def __init__(self, plan: ClientPlan, servers: Sequence[Address], draw: random.Random) -> None:
        self._plan = plan
        self._servers = list(servers)
        self._draw = draw
        draw.shuffle(self._servers)
        self._session = 0
        self._password = _NO_PASSWORD
        self._seen = 0
        self._xid = 0
        self._link: _Link | None = None
        # The watches that are set, as setWatches takes them.
        self._watches: dict[str, dict[bytes, None]] = {}
        self._forget_watches()

    async def run(self) -> None:
        """Carry out the plan, whatever comes of the calls."""
        for burst in self._plan.bursts:
            await self.carry_out(burst)
        if self._link is not None:
            await self._link.settled()

    async def carry_out(self, burst: Burst) -> None:
        """Issue some calls after their pause; most clients wait for their outcomes."""
        await self._idle(burst.pause)
        await self._issue(burst)

    async def stay(self) -> None:
        """Stay connected, for ever."""
        while True:
            await self._idle(1.0)

    async def close(self) -> None:
        """Leave, without closing the session."""
        if self._link is not None:
            self._link.close()

    async def _issue(self, burst: Burst) -> None:
        link = await self._connected()
        for wish in burst.wishes:
            if wish.name in ("hop", "linger"):
                # To the next server, with its session, and without waiting for anything.
                if wish.name == "hop":
                    link.close()
                else:
                    link.linger()
                link = await self._connected()
            else:
                self._send(link, wish)
        closes = any(wish.name == "close" for wish in burst.wishes)
        if self._plan.waits or closes:
            await link.settled()
        if closes:
            self._begin_anew()
            link.close()

    async def _idle(self, seconds: float) -> None:
        """Wait, and ping meanwhile."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while True:
            link = await self._connected()
            if loop.time() >= end:
                return
            await link.wait(min(end - loop.time(), self._plan.timeout / 3))
            link.keep_alive()

    def _send(self, link: _Link, wish: Wish) -> None:
        self._xid += 1
        link.send(Request(self._xid, operation_of(wish), body_of(wish)))

    # Connecting.

    async def _connected(self) -> _Link:
        while self._link is None or self._link.is_over:
            self._link = None
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(self._plan.timeout / 3):
                    self._link = await self._attach()
            if self._link is None:
                await asyncio.sleep(self._draw.uniform(0, 0.5))
        return self._link

    async def _attach(self) -> _Link | None:
        host, port = self._servers[0]
        self._servers.append(self._servers.pop(0))
        loop = asyncio.get_running_loop()
        link = _Link(self, self._plan.timeout * 2 / 3)
        await loop.create_connection(lambda: link, host, port)
        try:
            granted = await link.greet(
                ConnectRequest(
                    0,
                    self._seen,
                    int(self._plan.timeout * 1000),
                    self._session,
                    self._password,
                    False,
                )
            )
        except BaseException:
            link.close()
            raise
        if granted is None:
            return None
        if not granted.session_id:
            self._begin_anew()
            link.close()
            return None
        self._session, self._password = granted.session_id, granted.password or b""
        if any(self._watches.values()):
            link.send(
                Request(
                    SET_WATCHES_XID,
                    opcodes.SET_WATCHES2,
                    SetWatchesRequest(
                        self._seen,
                        *(list(self._watches[kind]) for kind in _WATCH_KINDS),
                    ),
                )
            )
        return link

    def _begin_anew(self) -> None:
        self._session, self._password = 0, _NO_PASSWORD
        self._forget_watches()

    def _forget_watches(self) -> None:
        self._watches = {kind: {} for kind in _WATCH_KINDS}

    # What comes.

    def saw(self, zxid: int) -> None:
        self._seen = max(self._seen, zxid)

    def told(self, frame: bytes) -> None:
        """Take an event: a watch that fires once is gone."""
        event = decode_event(frame)
        self.saw(event.zxid)
        if event.kind == events.NODE_CHILDREN_CHANGED:
            self._watches["child"].pop(event.path, None)
        else:
            self._watches["data"].pop(event.path, None)
            self._watches["exists"].pop(event.path, None)
            if event.kind == events.NODE_DELETED:
                self._watches["child"].pop(event.path, None)

    def answered(self, request: Request, frame: bytes) -> None:
        reply = decode_reply(request.operation, frame)
        self.saw(reply.zxid)
        body = request.body
        if isinstance(body, WatchedRequest) and body.watch:
            if request.operation in (opcodes.GET_CHILDREN, opcodes.GET_CHILDREN2):
                kind = "child" if not reply.error else ""
            elif request.operation == opcodes.EXISTS:
                kind = "exists" if reply.error else "data"
            else:
                kind = "data" if not reply.error else ""
            if kind:
                self._watches[kind][body.path] = None
        elif isinstance(body, AddWatchRequest) and not reply.error:
            self._watches["recursive" if body.mode else "persistent"][body.path] = None
            self._watches["persistent" if body.mode else "recursive"].pop(body.path, None)
        elif isinstance(body, WatchesRequest) and not reply.error:
            for kind in _WATCH_KINDS:
                self._watches[kind].pop(body.path or b"", None)


_WATCH_KINDS: Final = ("data", "exists", "child", "persistent", "recursive")


class _Link(asyncio.Protocol):
    """One connection of a raw client."""

    def __init__(self, client: RawClient, patience: float) -> None:
        self.is_over = False
        self._is_left = False
        self._client = client
        # How long the server may be silent.
        self._patience = patience
        self._loop = asyncio.get_running_loop()
        self._frames = FrameBuffer(_FRAME_BYTES_MAX)
        self._transport: asyncio.Transport | None = None
        self._granted: asyncio.Future[ConnectResponse | None] = self._loop.create_future()
        self._in_flight: list[Request] = []
        # Done when there is something new: a reply, or the end.
        self._news: asyncio.Future[None] | None = None
        self._heard_at = self._sent_at = self._loop.time()

    def is_silent(self, seconds: float) -> bool:
        return self._loop.time() - self._heard_at >= seconds

    async def greet(self, request: ConnectRequest) -> ConnectResponse | None:
        self._write(encode_record(request))
        return await self._granted

    def send(self, request: Request) -> None:
        if not self.is_over:
            self._in_flight.append(request)
            self._write(encode_request(request))

    async def settled(self) -> None:
        """Wait until all calls have their outcome."""
        while self._in_flight and not self.is_over:
            await self.wait(self._patience / 2)
            self.keep_alive()

    def keep_alive(self) -> None:
        """Ping if nothing was sent for a while, and leave a server that does not answer."""
        if self.is_silent(self._patience):
            self.close()
        elif self._loop.time() - self._sent_at >= self._patience / 2:
            self.send(Request(PING_XID, opcodes.PING, None))

    async def wait(self, seconds: float) -> None:
        """Wait for news, for so long at most."""
        if self.is_over:
            return
        news = self._news = self._loop.create_future()
        await asyncio.wait((news,), timeout=seconds)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
        self._finish()

    def linger(self) -> None:
        """Leave it open for a while, and take no notice of what comes."""
        self._is_left = True
        self._finish()
        self._loop.call_later(self._patience, self.close)

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        for frame in self._frames.receive_data(data):
            if not self._is_left:
                self._take(frame)
        self._tell()

    def connection_lost(self, error: Exception | None) -> None:
        self._finish()

    def _take(self, frame: bytes) -> None:
        if not self._granted.done():
            self._granted.set_result(ConnectResponse.read(Reader(frame)))
        elif is_event(frame):
            self._client.told(frame)
        else:
            xid = reply_xid(frame)
            for request in self._in_flight:
                if request.xid == xid:
                    self._in_flight.remove(request)
                    self._client.answered(request, frame)
                    break

    def _finish(self) -> None:
        self.is_over = True
        self._in_flight.clear()
        if not self._granted.done():
            self._granted.set_result(None)
        self._tell()

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _write(self, frame: bytes) -> None:
        self._sent_at = self._loop.time()
        if self._transport is not None:
            self._transport.write(len(frame).to_bytes(4, "big") + frame)

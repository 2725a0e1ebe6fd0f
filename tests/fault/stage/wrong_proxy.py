"""A proxy that lies to one client, and a story in which each of its lies can be told.

    await tell_story(servers, address, EventTwice())
    judge(loop.recorder.history)

A lie sees the frames of the client's connection in both directions, and may pass on others in their
place. It is told once, and as well as it can be: frames are whole and in turn, and zxids are such
as a server might send. The story is played by two clients, one behind the proxy and one that talks
to the server itself. With `Lie`, which changes nothing, it breaks no rule.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import random
from collections.abc import Callable
from typing import Final

from paddock.client.requests.encoder import framed
from paddock.errors import OK
from paddock.protocol import opcodes
from paddock.protocol.framing import FrameBuffer
from paddock.protocol.replies import GetDataResponse
from paddock.protocol.requests import (
    CreateRequest,
    SetDataRequest,
    VersionRequest,
    WatchedRequest,
)
from paddock.testing.simulation.frames import (
    Reply,
    Request,
    decode_reply,
    decode_request,
    encode_reply,
    encode_request,
    is_event,
    reply_xid,
)
from paddock.testing.simulation.plan import Burst, ClientPlan, Wish
from paddock.testing.simulation.raw_client import RawClient
from tests.fault.stage.tapped_loop import client_name

Address = tuple[str, int]

_TIMEOUT_S: Final = 10.0
_DEADLINE_S: Final = 60.0
_FRAME_BYTES_MAX: Final = 1 << 24
_PIECE_BYTES: Final = 1 << 16


class Lie:
    """Passes everything on as it is. What is a lie changes that, at one place of the story."""

    def __init__(self) -> None:
        #: Whether it was told.
        self.is_told = False
        # What was asked, by xid, and the last answer to each read.
        self.asked: dict[int, Request] = {}
        self.earlier: dict[bytes, Reply] = {}

    def from_client(self, request: Request) -> list[Request]:
        """Return what the server is asked instead."""
        return [request]

    def from_server(self, request: Request, reply: Reply) -> list[Reply]:
        """Return what the client is answered instead."""
        return [reply]

    def event(self, frame: bytes) -> list[bytes]:
        """Return which events the client is told of instead."""
        return [frame]

    # What passes by.

    def take_request(self, frame: bytes) -> list[bytes]:
        request = decode_request(frame)
        self.asked[request.xid] = request
        return [encode_request(one) for one in self.from_client(request)]

    def take_answer(self, frame: bytes) -> list[bytes]:
        if is_event(frame):
            return self.event(frame)
        request = self.asked[reply_xid(frame)]
        reply = decode_reply(self.operation_of(request), frame)
        answers = self.from_server(request, reply)
        if request.operation == opcodes.GET_DATA:
            self.earlier[_path(request)] = reply
        return [encode_reply(self.asked[one.xid].operation, one) for one in answers]

    def operation_of(self, request: Request) -> int:
        """Return what the server was asked in the place of a request."""
        return request.operation


class DroppedWrite(Lie):
    """Acknowledges a write that no server was asked for."""

    def from_client(self, request: Request) -> list[Request]:
        if self._is_meant(request):
            self.is_told = True
            # It changes nothing, and has a zxid of its own.
            return [Request(request.xid, opcodes.DELETE, VersionRequest(b"/missing", -1))]
        return [request]

    def from_server(self, request: Request, reply: Reply) -> list[Reply]:
        if self._is_meant(request):
            earlier = self.earlier[_path(request)].body
            assert isinstance(earlier, GetDataResponse)
            stat = earlier.stat
            stat = stat._replace(mzxid=reply.zxid, version=stat.version + 1, data_length=len("own"))
            return [Reply(reply.xid, reply.zxid, OK, stat)]
        return [reply]

    def operation_of(self, request: Request) -> int:
        return opcodes.DELETE if self._is_meant(request) else request.operation

    def _is_meant(self, request: Request) -> bool:
        return _sets(request, b"own")


class StaleRead(Lie):
    """Answers a read as it was answered before, although the client has changed the node since."""

    data: bytes | None = b"own"

    def from_server(self, request: Request, reply: Reply) -> list[Reply]:
        if request.operation == opcodes.GET_DATA and _data(reply) == self.data:
            self.is_told = True
            return [self.lie(self.earlier[_path(request)], reply)]
        return [reply]

    def lie(self, earlier: Reply, reply: Reply) -> Reply:
        return dataclasses.replace(earlier, xid=reply.xid)


class ReadGoingBack(StaleRead):
    """Answers a read as it was answered before, although the client has seen a later state."""

    data = b"theirs"


class HiddenStaleRead(StaleRead):
    """The same, under the zxid of the state that the client should have seen."""

    def lie(self, earlier: Reply, reply: Reply) -> Reply:
        return dataclasses.replace(reply, body=earlier.body)


class EventTwice(Lie):
    """Delivers an event twice."""

    def event(self, frame: bytes) -> list[bytes]:
        self.is_told = True
        return [frame, frame]


class EventDropped(Lie):
    """Delivers no event."""

    def event(self, frame: bytes) -> list[bytes]:
        self.is_told = True
        return []


class EventLate(Lie):
    """Delivers an event after the read that shows its change."""

    _held: bytes = b""

    def event(self, frame: bytes) -> list[bytes]:
        self._held = frame
        return []

    def take_answer(self, frame: bytes) -> list[bytes]:
        answers = super().take_answer(frame)
        is_read = not is_event(frame) and self.asked[reply_xid(frame)].operation == opcodes.GET_DATA
        if self._held and is_read:
            answers.append(self._held)
            self._held, self.is_told = b"", True
        return answers


class SwappedZxids(Lie):
    """Gives the answers to two writes each other's zxids."""

    _first: Reply | None = None

    def from_server(self, request: Request, reply: Reply) -> list[Reply]:
        if _sets(request, b"first"):
            self._first = reply
            return []
        if _sets(request, b"second"):
            first = self._first
            assert first is not None
            self.is_told = True
            return [
                dataclasses.replace(first, zxid=reply.zxid),
                dataclasses.replace(reply, zxid=first.zxid),
            ]
        return [reply]


class WriteTwice(Lie):
    """Has a sequential create carried out twice, and passes one answer on."""

    def __init__(self) -> None:
        super().__init__()
        self._xid = 0

    def from_client(self, request: Request) -> list[Request]:
        if isinstance(request.body, CreateRequest) and request.body.flags:
            self._xid = request.xid
            return [request, request]
        return [request]

    def from_server(self, request: Request, reply: Reply) -> list[Reply]:
        if request.xid == self._xid and not self.is_told:
            self.is_told = True
            return []
        return [reply]


#: Each with the rule that it breaks, whatever others it breaks as well.
LIES: Final[dict[str, tuple[str, Callable[[], Lie]]]] = {
    "a dropped write is acknowledged": ("replies", DroppedWrite),
    "a read is older than the client's own write": ("own order", StaleRead),
    "a read goes back": ("own order", ReadGoingBack),
    "a read is old, and says that it is not": ("replies", HiddenStaleRead),
    "an event comes twice": ("watches", EventTwice),
    "an event is lost": ("watches", EventDropped),
    "an event comes after the read that shows it": ("watches", EventLate),
    "two writes have each other's zxids": ("own order", SwappedZxids),
    "a write is carried out twice": ("replies", WriteTwice),
}


async def tell_story(servers: dict[str, str], address: Address, lie: Lie) -> None:
    """Play the story on a server, one client behind a proxy that tells this lie.

    `servers` are the names that the loop has for addresses.
    """
    async with asyncio.timeout(_DEADLINE_S), WrongProxy(address, lie) as proxy:
        servers[f"{address[0]}:{address[1]}"] = "server"
        servers[f"{proxy.address[0]}:{proxy.address[1]}"] = "proxy"
        deceived, other = _client("deceived", proxy.address), _client("other", address)
        try:
            for name, wishes in _STORY:
                client_name.set(name)
                client = deceived if name == "deceived" else other
                await client.carry_out(Burst(0.0, wishes))
        finally:
            client_name.set("")
            await deceived.close()
            await other.close()


# Who calls what at once, and waits for the answers. A read follows each write.
_STORY: Final = (
    ("deceived", (Wish("create", "/a", "new"), Wish("create", "/q"))),
    ("deceived", (Wish("get", "/a", watch=True),)),
    ("other", (Wish("set", "/a", "theirs"),)),
    ("deceived", (Wish("sync"),)),
    ("deceived", (Wish("get", "/a"),)),
    ("deceived", (Wish("set", "/a", "own"),)),
    ("deceived", (Wish("get", "/a"),)),
    ("deceived", (Wish("set", "/a", "first"), Wish("set", "/a", "second"))),
    ("deceived", (Wish("create", "/q/n-", flags=2),)),
    ("deceived", (Wish("get", "/a"), Wish("children2", "/q"))),
    ("other", (Wish("sync"), Wish("get", "/a"), Wish("children2", "/q"))),
)


def _client(name: str, address: Address) -> RawClient:
    return RawClient(ClientPlan(name, "raw", _TIMEOUT_S, ()), [address], random.Random(name))


class WrongProxy:
    """Stands between one client and a server. `async with` opens and closes it."""

    def __init__(self, server: Address, lie: Lie) -> None:
        self._server = server
        self._lie = lie
        self._listener: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None] | None] = set()

    @property
    def address(self) -> Address:
        assert self._listener is not None
        host, port = self._listener.sockets[0].getsockname()
        return host, port

    async def __aenter__(self) -> WrongProxy:
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *details: object) -> None:
        assert self._listener is not None
        self._listener.close()
        await self._listener.wait_closed()
        # The client is gone, and so they end.
        await asyncio.gather(*filter(None, self._serving))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving.add(asyncio.current_task())
        answers, requests = await asyncio.open_connection(*self._server)
        await asyncio.gather(
            _forward(reader, requests, self._lie.take_request),
            _forward(answers, writer, self._lie.take_answer),
        )


async def _forward(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    change: Callable[[bytes], list[bytes]],
) -> None:
    """Forward frames, the handshake as it is and others as they are changed."""
    frames = FrameBuffer(_FRAME_BYTES_MAX)
    is_greeted = False
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(_PIECE_BYTES):
            for frame in frames.receive_data(data):
                passed = change(frame) if is_greeted else [frame]
                is_greeted = True
                # In pieces, asyncio of 3.13 does not take nothing.
                writer.write(b"".join(framed(one) for one in passed))
    writer.close()


def _path(request: Request) -> bytes:
    body = request.body
    assert isinstance(body, WatchedRequest | SetDataRequest)
    assert body.path is not None
    return body.path


def _sets(request: Request, data: bytes) -> bool:
    return isinstance(request.body, SetDataRequest) and request.body.data == data


def _data(reply: Reply) -> bytes | None:
    return getattr(reply.body, "data", None)

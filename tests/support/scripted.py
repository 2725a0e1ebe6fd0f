"""A server that does what a test says, on the running event loop: for what no real one says.

It speaks the protocol's frames and knows nothing else. Each connection is a conversation of its
own, which a coroutine leads:

    async def lead(talk: Talk) -> None:
        await talk.grant(session_id=7)
        await talk.hear()                # a request, and then the end of the connection

    async with ScriptedServer(lead) as server:
        ...
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, NamedTuple, Self

from librt.strings import BytesWriter

from paddock.protocol import opcodes
from paddock.protocol.jute import Reader
from paddock.protocol.records import ConnectRequest, ConnectResponse, Stat

SESSION_ID: Final = 7
_STAT: Final = Stat(1, 1, 0, 0, 0, 0, 0, 0, 4, 0, 1)


class Asked(NamedTuple):
    """A request that has come."""

    xid: int
    operation: int
    body: bytes


class Talk:
    """One connection, from the server's side."""

    def __init__(
        self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        # How many connections there were before it.
        self.number = number
        self.reader = reader
        self.writer = writer

    async def hear(self) -> bytes:
        """Wait for a frame; raises IncompleteReadError when there will be none."""
        (length,) = struct.unpack(">i", await self.reader.readexactly(4))
        return await self.reader.readexactly(length)

    async def hear_request(self) -> Asked:
        """Wait for a request, which may be a ping."""
        frame = await self.hear()
        xid, operation = struct.unpack_from(">ii", frame)
        return Asked(xid, operation, frame[8:])

    async def request(self) -> Asked:
        """Wait for a request that is no ping; pings are answered."""
        while True:
            asked = await self.hear_request()
            if asked.operation != opcodes.PING:
                return asked
            self.answer(asked.xid)

    async def serve(self) -> None:
        """Answer everything well: a node that has data, and no children."""
        while True:
            asked = await self.request()
            self.answer(asked.xid, good_body(asked.operation))

    async def wait_left(self) -> None:
        """Say nothing more, until the client leaves."""
        while await self.reader.read(1 << 16):
            pass

    def say(self, frame: bytes) -> None:
        self.writer.write(buffer(frame))

    def answer(self, xid: int, body: bytes = b"", *, code: int = 0, zxid: int = 1) -> None:
        self.say(reply(xid, body, code=code, zxid=zxid))

    async def grant(
        self,
        *,
        session_id: int | None = SESSION_ID,
        timeout_ms: int = 10_000,
        read_only: bool = False,
    ) -> ConnectRequest:
        """Shake hands; give what the client asked for. Without an id it keeps its own."""
        request = ConnectRequest.read(Reader(await self.hear()))
        given = request.session_id if session_id is None else session_id
        password = request.password if session_id is None else b"p" * 16
        self.say(handshake_reply(given, timeout_ms, password, read_only=read_only))
        return request


class ScriptedServer:
    """Listens, and has each connection led by a coroutine; with its end the connection ends."""

    def __init__(
        self, lead: Callable[[Talk], Awaitable[None]], host: str = "127.0.0.1", port: int = 0
    ) -> None:
        self._lead = lead
        self._address = (host, port)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        # How many connections there were.
        self.talks = 0
        # What a conversation failed with: its script was wrong, or the client.
        self.problem: Exception | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, *self._address)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        # What was accepted just before has its task, and is known here, three turns later.
        for _ in range(3):
            await asyncio.sleep(0)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if error is None and self.problem is not None:
            raise self.problem

    @property
    def hosts(self) -> str:
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"{host}:{port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        talk = Talk(self.talks, reader, writer)
        self.talks += 1
        try:
            await self._lead(talk)
        except (asyncio.IncompleteReadError, ConnectionError):
            # The client has gone.
            pass
        except asyncio.CancelledError:
            # By us; the streams of 3.11 would complain of a callback that is cancelled.
            pass
        except Exception as problem:
            self.problem = problem
        finally:
            writer.close()


def buffer(data: bytes) -> bytes:
    """Return `data` with its length in front, as a buffer or a frame has it."""
    return struct.pack(">i", len(data)) + data


def reply(xid: int, body: bytes = b"", *, code: int = 0, zxid: int = 1) -> bytes:
    return struct.pack(">iqi", xid, zxid, code) + body


def event(kind: int, path: bytes, zxid: int = -1) -> bytes:
    return reply(-1, struct.pack(">ii", kind, 3) + buffer(path), zxid=zxid)


def handshake_reply(
    session_id: int, timeout_ms: int, password: bytes | None, *, read_only: bool = False
) -> bytes:
    writer = BytesWriter()
    ConnectResponse(0, timeout_ms, session_id, password, read_only).write(writer)
    return writer.getvalue()


def stat() -> bytes:
    writer = BytesWriter()
    _STAT.write(writer)
    return writer.getvalue()


def good_body(operation: int) -> bytes:
    """Return the body of a successful reply."""
    if operation == opcodes.GET_DATA:
        return buffer(b"data") + stat()
    if operation in (opcodes.EXISTS, opcodes.SET_DATA, opcodes.SET_ACL):
        return stat()
    if operation in (opcodes.CREATE, opcodes.CREATE2):
        return buffer(b"/made") + stat()
    if operation in (opcodes.GET_CHILDREN, opcodes.GET_CHILDREN2):
        return struct.pack(">i", 0) + stat()
    return b""

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
from typing import Self

from paddock.protocol.jute import BytesWriter, Reader
from paddock.protocol.records import ConnectRequest, ConnectResponse


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

    async def hear_request(self) -> tuple[int, int, bytes]:
        """Wait for a request; give its xid, its operation and its body."""
        frame = await self.hear()
        xid, operation = struct.unpack_from(">ii", frame)
        return xid, operation, frame[8:]

    def say(self, frame: bytes) -> None:
        self.writer.write(struct.pack(">i", len(frame)) + frame)

    def answer(self, xid: int, body: bytes = b"", *, code: int = 0, zxid: int = 1) -> None:
        self.say(struct.pack(">iqi", xid, zxid, code) + body)

    async def grant(
        self, *, session_id: int = 7, timeout_ms: int = 10_000, read_only: bool = False
    ) -> ConnectRequest:
        """Shake hands; give what the client asked for."""
        request = ConnectRequest.read(Reader(await self.hear()))
        writer = BytesWriter()
        ConnectResponse(0, timeout_ms, session_id, b"p" * 16, read_only).write(writer)
        self.say(writer.getvalue())
        return request


class ScriptedServer:
    """Listens, and has each connection led by a coroutine; with its end the connection ends."""

    def __init__(self, lead: Callable[[Talk], Awaitable[None]]) -> None:
        self._lead = lead
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        # How many connections there were.
        self.talks = 0
        # What a conversation failed with: its script was wrong, or the client.
        self.problem: Exception | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
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
        except Exception as problem:
            self.problem = problem
        finally:
            writer.close()

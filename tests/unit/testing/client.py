"""A raw client on asyncio, for virtual time; otherwise as small as `tests.support.wire`."""

from __future__ import annotations

import asyncio
import struct
from dataclasses import dataclass

from tests.support import wire
from tests.support.records import REPLY_HEADER, ConnectReply, Reply, Request


@dataclass
class AsyncClient:
    """A session's connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    handshake: ConnectReply
    xid: int = 0

    def send(self, request: Request) -> None:
        self.xid += 1
        payload = struct.pack(">ii", self.xid, request.op) + request.body
        self.writer.write(struct.pack(">i", len(payload)) + payload)

    async def reply(self, op: int) -> Reply:
        payload = await read_frame(self.reader)
        xid, zxid, error = REPLY_HEADER.unpack_from(payload)
        return Reply(xid, zxid, error, op, payload[REPLY_HEADER.size :])

    async def call(self, request: Request) -> Reply:
        """Raises IncompleteReadError if the connection ends before the reply."""
        self.send(request)
        return await self.reply(request.op)

    async def leave(self) -> None:
        """Drop the connection; the session lives on."""
        self.writer.close()
        await self.writer.wait_closed()


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    (length,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(length)


async def connect(
    address: tuple[str, int], *, timeout_ms: int = 4000, like: AsyncClient | None = None
) -> AsyncClient:
    """Open a session, or go on with that of another client."""
    reader, writer = await asyncio.open_connection(*address)
    if like is None:
        body = wire.connect_body(timeout_ms=timeout_ms)
    else:
        body = wire.connect_body(
            timeout_ms=timeout_ms,
            session_id=like.handshake.session_id,
            password=like.handshake.password,
        )
    writer.write(struct.pack(">i", len(body)) + body)
    try:
        handshake = wire.decode_connect(await read_frame(reader))
    except BaseException:
        writer.close()
        raise
    return AsyncClient(reader, writer, handshake)

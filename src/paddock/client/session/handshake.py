"""The handshake of a session: the first frame each way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from paddock.client.requests.frames import encoded, framed
from paddock.client.session.transport import Transport
from paddock.errors import RemoteProtocolError, error_from_code
from paddock.protocol.jute import DecodeError, Reader
from paddock.protocol.records import ConnectRequest, ConnectResponse, ReplyHeader

_HEADER_BYTES: Final = 16


async def perform_handshake(transport: Transport, request: ConnectRequest) -> ConnectResponse:
    """Ask for a session, a new one or our own; raises OSError or RemoteProtocolError.

    Frames are dropped afterwards, until `on_frames` is set.
    """
    transport.write(framed(encoded(request)))
    frame = await next_frame(transport)
    try:
        if len(frame) == _HEADER_BYTES:
            # Not what it should be, but some servers answer it as if it were any request.
            code = ReplyHeader.read(Reader(frame)).error
            raise RemoteProtocolError(f"it refused: {error_from_code(code).reason} (code {code})")
        return ConnectResponse.read(Reader(frame))
    except DecodeError as error:
        raise RemoteProtocolError(f"handshake not understood: {error}") from error


async def next_frame(transport: Transport) -> bytes:
    """Wait for what the server says next; raises OSError if it says nothing any more."""
    answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    transport.on_frames = _give_first_to(answer)
    try:
        await asyncio.wait((answer, transport.lost), return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return answer.result()
        reason = transport.lost.result()
        if isinstance(reason, RemoteProtocolError):
            raise RemoteProtocolError(f"it does not speak ZooKeeper's protocol: {reason}")
        raise reason or ConnectionResetError("the server closed the connection")
    finally:
        answer.cancel()


def _give_first_to(answer: asyncio.Future[bytes]) -> Callable[[list[bytes]], None]:
    def give(frames: list[bytes]) -> None:
        # Nothing is sent to us before we have asked for more, so nothing else is there.
        if frames and not answer.done():
            answer.set_result(frames[0])

    return give

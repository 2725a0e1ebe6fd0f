"""One connection to one server: frames out, frames in, and its end.

It knows nothing of sessions; it reports frames, in order, and its end. Data that are sent in one
pass of the event loop go out in one write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, cast

from paddock.protocol.framing import FrameBuffer

# Replies may be larger than requests, and the client has asked for them: a list of a million
# children has 20 MB.
_FRAME_BYTES_MAX: Final = 1 << 30
# What a server sends before it is trusted is small, even the terms of an exact session; whatever is
# not speaks another protocol.
_FIRST_FRAME_BYTES_MAX: Final = 1 << 19
# How long the end of a connection may take.
_CLOSE_SECONDS_MAX: Final = 1.0


class Transport:
    """The client's end of a connection; an asyncio protocol by its methods."""

    def __init__(self) -> None:
        # Called with the frames that have come, as `FrameBuffer.cut` has them, and their number,
        # also if there is only a part of one: that is a sign of life. Without it, frames are
        # dropped.
        self.on_frames: Callable[[bytes, int], None] | None = None
        self._frames = FrameBuffer(_FIRST_FRAME_BYTES_MAX)
        self._asyncio_transport: asyncio.Transport | None = None
        # Done when nothing is left of the transport, once there is one.
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Whether the server takes what we send. Invariant: False once the connection is over.
        self.is_writable = True
        # Called when it is again.
        self.on_writable: Callable[[], None] | None = None
        # Done when the connection is over, with the reason if there is one.
        self.lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    def trust(self) -> None:
        """Take large frames from now on: the server has shown that it is one."""
        self._frames.limit = _FRAME_BYTES_MAX

    @property
    def is_open(self) -> bool:
        """Return whether what is written now may arrive, at once or later."""
        return self._asyncio_transport is not None and not self._asyncio_transport.is_closing()

    @property
    def peer_address(self) -> str:
        """The address of the server. Raises ConnectionResetError without a connection."""
        transport = self._asyncio_transport
        address = None if transport is None else transport.get_extra_info("peername")
        if not address:
            raise ConnectionResetError("the connection is over")
        return str(address[0])

    def write(self, data: bytes) -> bool:
        """Send something; return whether the server takes more at the moment."""
        if self._asyncio_transport is not None:
            self._asyncio_transport.write(data)
        return self.is_writable

    def close(self) -> None:
        """Close once everything has been sent."""
        self.is_writable = False
        if self._asyncio_transport is not None:
            self._asyncio_transport.close()

    def wait_closed(self) -> asyncio.Future[None]:
        """Return a future that is done when nothing is left of it, after `close`.

        Over TLS both sides have to agree to the end; a peer that does not is not waited for.
        """
        if not self._gone.done():
            loop = asyncio.get_running_loop()
            timer = loop.call_later(_CLOSE_SECONDS_MAX, self.abort)
            self._gone.add_done_callback(lambda _: timer.cancel())
        # A waiter may be cancelled while others wait.
        return asyncio.shield(self._gone)

    def abort(self) -> None:
        self.is_writable = False
        if self._asyncio_transport is not None:
            self._asyncio_transport.abort()

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._asyncio_transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        frames = self._frames.cut(data)
        if self.on_frames is not None:
            self.on_frames(frames, self._frames.count)
        if self._frames.error is not None:
            self._end(self._frames.error)
            self.abort()

    def eof_received(self) -> None:
        self.is_writable = False

    def connection_lost(self, error: Exception | None) -> None:
        self._asyncio_transport = None
        self._gone.set_result(None)
        self.is_writable = False
        self._end(error)

    def pause_writing(self) -> None:
        self.is_writable = False

    def resume_writing(self) -> None:
        self.is_writable = True
        if self.on_writable is not None:
            self.on_writable()

    def _end(self, error: Exception | None) -> None:
        if not self.lost.done():
            self.lost.set_result(error)

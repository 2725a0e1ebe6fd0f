"""Frames: four bytes of length, then that many bytes.

Memory is allocated as bytes arrive, not when a length is announced. However small the pieces in
which a frame arrives, it takes no more than its own size.
"""

from __future__ import annotations

from librt.strings import read_i32_be
from mypy_extensions import i64

from paddock.errors import RemoteProtocolError


class FrameSizeError(RemoteProtocolError):
    """The peer announced a frame that is longer than allowed, or negative."""

    def __init__(self, length: int, limit: int) -> None:
        self.length = length
        super().__init__(f"frame of {length} bytes announced, at most {limit} are allowed")


class FrameBuffer:
    """Cuts a stream of bytes into frames."""

    __slots__ = ("_has_rest", "_rest", "_wanted", "error", "limit")

    def __init__(self, limit: i64) -> None:
        self.limit: i64 = limit
        # The beginning of a frame that is not complete.
        self._rest = bytearray()
        # Whether there are any: as a rule there are none.
        self._has_rest = False
        # How many bytes must be here before it is worth looking again. Invariant: _rest is shorter
        # between two calls.
        self._wanted: i64 = 4
        # Set for good by a length that is not allowed: nothing after it can be understood.
        self.error: FrameSizeError | None = None

    def unfinished(self) -> int:
        """Count the bytes of a frame whose end has not come."""
        return len(self._rest)

    def receive_data(self, data: bytes) -> list[bytes]:
        """Take received bytes; return every frame that is complete now, without its length.

        After a bad length `error` is set, and no frame is returned any more.
        """
        frames: list[bytes] = []
        if self.error is not None:
            return frames
        if self._has_rest:
            self._rest += data
            if len(self._rest) < self._wanted:
                return frames
            data = bytes(self._rest)
            self._rest = bytearray()
            self._has_rest = False
        position: i64 = 0
        end: i64 = len(data)
        while True:
            if end - position < 4:
                self._wanted = 4
                break
            # By way of an int: uncompiled, a conversion to i64 is a slow call.
            announced: int = read_i32_be(data, position)
            length: i64 = announced
            if length < 0 or length > self.limit:
                self.error = FrameSizeError(length, self.limit)
                return frames
            after = position + 4 + length
            if after > end:
                self._wanted = 4 + length
                break
            frames.append(data[position + 4 : after])
            position = after
        if position < end:
            self._rest += data[position:]
            self._has_rest = True
        return frames

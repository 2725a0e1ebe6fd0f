"""Frames: four bytes of length, then that many bytes.

Memory is allocated as bytes arrive, not when a length is announced. However small the pieces in
which a frame arrives, it takes no more than its own size.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i32_be
from mypy_extensions import i64

from paddock.errors import RemoteProtocolError

# The length before each frame.
LENGTH_BYTES: Final = 4
# The xid and the operation, before the request itself.
REQUEST_HEADER_BYTES: Final = 8


class FrameSizeError(RemoteProtocolError):
    """The peer announced a frame that is longer than allowed, or negative."""

    def __init__(self, length: int, limit: int) -> None:
        self.length = length
        super().__init__(f"frame of {length} bytes announced, at most {limit} are allowed")


class FrameBuffer:
    """Cuts a stream of bytes into frames."""

    __slots__ = ("_has_rest", "_rest", "_wanted", "count", "error", "last", "limit")

    def __init__(self, limit: i64) -> None:
        self.limit: i64 = limit
        # The beginning of a frame that is not complete.
        self._rest = bytearray()
        # Whether there are any: as a rule there are none.
        self._has_rest = False
        # How many bytes must be here before it is worth looking again. Invariant: _rest is shorter
        # between two calls.
        self._wanted: i64 = 4
        # How many frames the last cut has found, and where the last of them begins.
        self.count: i64 = 0
        self.last: i64 = 0
        # Set for good by a length that is not allowed: nothing after it can be understood.
        self.error: FrameSizeError | None = None

    def unfinished(self) -> int:
        """Count the bytes of a frame whose end has not come."""
        return len(self._rest)

    def receive_data(self, data: bytes) -> list[bytes]:
        """Take received bytes; return every frame that is complete now, without its length."""
        return copied(self.cut(data), self.count)

    def cut(self, data: bytes) -> bytes:
        """Take received bytes; return some in which the next frames are found, without a copy.

        They begin with `count` whole frames, each behind its length, which can be relied on. After
        a bad length `error` is set, and there is no frame any more.
        """
        self.count = 0
        if self.error is not None:
            return data
        if self._has_rest:
            self._rest += data
            if len(self._rest) < self._wanted:
                return data
            data = bytes(self._rest)
            self._rest = bytearray()
            self._has_rest = False
        count: i64 = 0
        last: i64 = 0
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
                break
            after = position + 4 + length
            if after > end:
                self._wanted = 4 + length
                break
            count += 1
            last = position + 4
            position = after
        if position < end and self.error is None:
            self._rest += data[position:]
            self._has_rest = True
        self.count = count
        self.last = last
        return data


def copied(frames: bytes, count: i64) -> list[bytes]:
    """Return the first frames of what `FrameBuffer.cut` returns, each without its length."""
    found: list[bytes] = []
    position: i64 = 0
    for _ in range(count):
        length: int = read_i32_be(frames, position)
        start = position + 4
        position = start + length
        found.append(frames[start:position])
    return found

"""The stream format of snappy-java, an option of Apache for snapshots.

    stream:  magic (8)  version (4)  oldest reader (4)  then blocks
    block:   length (4)  that many bytes, one block of raw Snappy

Raw Snappy begins with the length of what comes out, as a little-endian base-128 number. Then come
tags, whose two low bits say what follows: a literal, or a copy of bytes that have come out already,
with an offset of 11, 16 or 32 bits.

Not by `cramjam`, which is well kept and has wheels (4 MB): it does not read this stream format, so
only `decompress` would go, and snapshots in Snappy, which are rare, would need an extra.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

MAGIC: Final = b"\x82SNAPPY\x00"

# A block is 32 KiB by default, and 512 MiB at most; more than this is not expected.
BLOCK_BYTES_MAX: Final = 64 << 20


class SnappyError(ValueError):
    """The bytes are not what snappy-java writes."""


class SnappyReader:
    """Decompresses a stream; it is read as a file. Raises SnappyError."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._block = b""
        self._position = 0
        if self._exactly(16)[:8] != MAGIC:
            raise SnappyError("it does not begin as a snappy stream does")

    def read(self, size: int) -> bytes:
        """Return at least one byte and at most `size`; nothing only at the end."""
        while self._position == len(self._block):
            announced = self._read(4)
            if not announced:
                return b""
            if len(announced) < 4:
                raise SnappyError("it ends in the middle of a block")
            length = int.from_bytes(announced, "big")
            if length > BLOCK_BYTES_MAX:
                raise SnappyError(f"a block of {length} bytes")
            self._block = decompress(self._exactly(length))
            self._position = 0
        data = self._block[self._position : self._position + size]
        self._position += len(data)
        return data

    def _exactly(self, size: int) -> bytes:
        data = self._read(size)
        if len(data) < size:
            raise SnappyError("it ends in the middle of a block")
        return data


def decompress(block: bytes) -> bytes:
    """Decompress one block of raw Snappy. Raises SnappyError."""
    size, position = _varint(block)
    if size > BLOCK_BYTES_MAX:
        raise SnappyError(f"a block that would hold {size} bytes")
    out = bytearray()
    while position < len(block) and len(out) <= size:
        tag = block[position]
        kind = tag & 3
        length = 1 + (tag >> 2)
        # How many bytes of the length of a literal, or of an offset, follow the tag.
        extra = (max(0, length - 60), 1, 2, 4)[kind]
        number = int.from_bytes(block[position + 1 : position + 1 + extra], "little")
        position += 1 + extra
        if kind == 0:
            length = number + 1 if extra else length
            out += block[position : position + length]
            position += length
        elif kind == 1:
            _copy(out, tag >> 5 << 8 | number, 4 + (tag >> 2 & 7))
        else:
            _copy(out, number, length)
        if position > len(block):
            raise SnappyError("a block ends in the middle")
    if len(out) != size:
        raise SnappyError(f"a block should hold {size} bytes and holds {len(out)}")
    return bytes(out)


def _copy(out: bytearray, offset: int, length: int) -> None:
    """Append bytes that are already there; they may overlap what they become."""
    start = len(out) - offset
    if offset == 0 or start < 0:
        raise SnappyError("a copy from before the beginning of its block")
    piece = out[start : start + length]
    if len(piece) < length:
        piece = (piece * (length // len(piece) + 1))[:length]
    out += piece


def _varint(block: bytes) -> tuple[int, int]:
    value = 0
    for position, byte in enumerate(block[:5]):
        value |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            return value, position + 1
    raise SnappyError("a block with a length that does not end")

"""The format of a segment, which is one file of the log, and how its end is judged.

    segment:  magic (8)  first index (8)  marker (8)  checksum (4)  then records, then zeros
    record:   marker (8)  checksum (4)  length (4)  index (8)  payload  end (1)

Numbers are big-endian. A checksum is the CRC-32 of what follows it in the record, of what precedes
it in the segment's header. The length is that of payload and end. The end is never zero: a record
whose last byte is zero did not arrive whole. The marker is eight random bytes, chosen for each
segment, so no payload holds it; zeros and the remains of another file are never taken for a record.

Records are written one at a time, each after the one before it is durable, and only where zeros are
on the disk already. At least one zero is left behind the last one. Where reading stops at something
that is not a good record:

* Only zeros follow, and there are some: the end.
* The file ends with the last good record, or within what was begun behind it: it was cut short, by
  an unknown number of records. That is damage.
* The marker appears once more behind it: another record was begun, so the bad one was durable once.
  That is damage. The length of a bad record is not trusted; every offset is looked at.
* Nothing follows, and its beginning, its end or a sector of it is zeros: a torn tail, the remains
  of a write that a crash interrupted and that was never acknowledged. It may be damage as well, of
  a record that has such zeros in it, so it is reported.
* Nothing follows, and nothing of it is missing: one damaged record, since a disk writes a sector
  whole or not at all.

Early versions of Paddock wrote records without an end, and left no zero behind one that filled the
space. Their markers begin with another byte, and nothing is added to their segments.

This file knows bytes, not files.
"""

from __future__ import annotations

import enum
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from paddock._checksums import crc32
from paddock.log.interface import Record

# A version that does not know these segments must not append to them.
_MAGIC: Final = b"PADLOG\x00\x02"
_MAGIC_EARLY: Final = b"PADLOG\x00\x01"
_HEADER: Final = struct.Struct(">8sQ8sI")
_RECORD: Final = struct.Struct(">8sIIQ")
_LENGTH_AND_INDEX: Final = struct.Struct(">IQ")
_COVERED_OFFSET: Final = 12  # where the part of a record starts that its checksum covers

MARKER_BYTES: Final = 8
SEGMENT_HEADER_BYTES: Final = _HEADER.size
RECORD_HEADER_BYTES: Final = _RECORD.size
# Of a record beside its payload.
RECORD_BYTES: Final = RECORD_HEADER_BYTES + 1
PAYLOAD_BYTES_MAX: Final = (1 << 32) - 2
# How many zeros there are at least behind the last record, before it is written and ever after.
SPARE_BYTES: Final = 1

_PIECE_BYTES: Final = 1 << 16
# What a disk writes whole or not at all. Larger ones are a multiple of it.
_SECTOR_BYTES: Final = 512
_END: Final = b"\xe5"
# How a marker begins: of the segments that are written now, and of those of early versions.
_MARKED: Final = b"\xa6"
_MARKED_EARLY: Final = b"\xa5"


class Tail(enum.Enum):
    """What follows the last good record of a segment."""

    CLEAN = enum.auto()
    TORN = enum.auto()
    # A record is damaged, and others were written behind it.
    DAMAGED = enum.auto()
    # The last record is damaged.
    LAST_DAMAGED = enum.auto()
    # The file is shorter than it was.
    CUT_SHORT = enum.auto()

    @property
    def is_damage(self) -> bool:
        """Whether a server did not leave it behind like this, not even by a crash."""
        return self not in (Tail.CLEAN, Tail.TORN)


class HeaderError(ValueError):
    """A segment does not begin as a segment does. Never a torn write: it is synced before use."""


@dataclass(frozen=True, slots=True)
class SegmentHeader:
    """How a segment begins."""

    first_index: int
    marker: bytes

    @property
    def is_early(self) -> bool:
        """Whether its records have no end, and zeros behind them only where there was room."""
        return self.marker.startswith(_MARKED_EARLY)

    def encode(self) -> bytes:
        """Return the header's bytes."""
        magic = _MAGIC_EARLY if self.is_early else _MAGIC
        covered = _HEADER.pack(magic, self.first_index, self.marker, 0)[:-4]
        return covered + crc32(covered).to_bytes(4, "big")

    @classmethod
    def decode(cls, data: bytes) -> SegmentHeader:
        """Read the header that `data` begins with. Raises HeaderError if it is not a good one."""
        if len(data) < SEGMENT_HEADER_BYTES:
            raise HeaderError("the file is too short to be a part of the log")
        magic, first_index, marker, checksum = _HEADER.unpack_from(data)
        if magic not in (_MAGIC, _MAGIC_EARLY):
            raise HeaderError("the file does not begin like a part of the log")
        if checksum != crc32(data[: SEGMENT_HEADER_BYTES - 4]):
            raise HeaderError("the file's header is damaged")
        return cls(first_index, marker)


def new_marker() -> bytes:
    """Choose the marker of a new segment. Its first byte is fixed, so that it is never zeros."""
    return _MARKED + os.urandom(MARKER_BYTES - 1)


def guess_header(data: bytes, first_index: int) -> SegmentHeader | None:
    """Find out what a damaged header said, from a whole record behind it with this index."""
    marker = data[SEGMENT_HEADER_BYTES : SEGMENT_HEADER_BYTES + MARKER_BYTES]
    record = decode_record(marker, data, SEGMENT_HEADER_BYTES)
    if record is None or record.index != first_index or not any(marker):
        return None
    return SegmentHeader(first_index, marker)


def encode_record(marker: bytes, index: int, payload: bytes) -> bytes:
    """Return the bytes of a record, for the segment with this marker."""
    return b"".join(record_parts(marker, index, payload))


def record_parts(marker: bytes, index: int, payload: bytes) -> list[bytes]:
    """Return a record in parts, of which the payload is not copied."""
    assert len(marker) == MARKER_BYTES
    assert any(marker)
    return [marker, *unmarked_parts(index, (payload,), _end_of_records(marker))]


def unmarked_parts(index: int, payload: tuple[bytes, ...], end: bytes = _END) -> list[bytes]:
    """Return what follows the marker in a record, in parts, of which the payload's are not copied.

    It is the same for every segment of today's format.
    """
    covered = [*payload, end]
    length = sum(map(len, covered))
    assert length <= PAYLOAD_BYTES_MAX + len(end)
    length_and_index = _LENGTH_AND_INDEX.pack(length, index)
    checksum = crc32(length_and_index)
    for part in covered:
        checksum = crc32(part, checksum)
    return [checksum.to_bytes(4, "big") + length_and_index, *covered]


def decode_record(marker: bytes, data: bytes, offset: int = 0) -> Record | None:
    """Return the record at this offset, or None if no good one is there."""
    payload_offset = offset + RECORD_HEADER_BYTES
    if payload_offset > len(data):
        return None
    found, checksum, length, index = _RECORD.unpack_from(data, offset)
    payload_end = payload_offset + length
    if found != marker or payload_end > len(data):
        return None
    payload = data[payload_offset:payload_end]
    covered = data[offset + _COVERED_OFFSET : payload_offset]
    end = _end_of_records(marker)
    if checksum != crc32(payload, crc32(covered)) or not payload.endswith(end):
        return None
    return Record(index, payload.removesuffix(end))


def _end_of_records(marker: bytes) -> bytes:
    """Return what the records end with in the segment with this marker."""
    return b"" if marker.startswith(_MARKED_EARLY) else _END


class SegmentReader:
    """Reads the records of one segment, given all of its bytes, and its header if that is damaged.

    Iterating yields the good records in order and stops at the first thing that is none; then
    `end_offset` is where that begins, and `tail` says what it is.
    """

    def __init__(self, data: bytes, header: SegmentHeader | None = None) -> None:
        self.header = SegmentHeader.decode(data) if header is None else header
        # Invariant: everything before it is good. The next record belongs here.
        self.end_offset = SEGMENT_HEADER_BYTES
        # Where the last good record begins; equal to `end_offset` if there is none.
        self.last_offset = SEGMENT_HEADER_BYTES
        # Invariant: one above the index of the last good record.
        self.next_index = self.header.first_index
        self._data = data

    def __iter__(self) -> Iterator[Record]:
        while (record := self._record_at_end()) is not None:
            if record.index != self.next_index:
                return
            self.last_offset = self.end_offset
            self.end_offset = self._begun_end()
            self.next_index += 1
            yield record

    @property
    def last_bytes(self) -> bytes:
        """The bytes of the last good record; none if there is no such record."""
        return self._data[self.last_offset : self.end_offset]

    @property
    def remains_bytes(self) -> int:
        """How much follows the last good record before the zeros that reach to the end."""
        end = len(self._data)
        while end > self.end_offset:
            # In pieces: a copy of all of it would take as much memory again.
            begin = max(self.end_offset, end - _PIECE_BYTES)
            piece = self._data[begin:end].rstrip(b"\0")
            if piece:
                return begin + len(piece) - self.end_offset
            end = begin
        return 0

    def tail(self) -> Tail:
        """Judge what follows the last good record, once iterating has stopped."""
        if self.remains_bytes == 0:
            is_cut = not self.header.is_early and self.end_offset >= len(self._data)
            return Tail.CUT_SHORT if is_cut else Tail.CLEAN
        # A whole record that is not the next one cannot come from an interrupted write either.
        if self._record_at_end() is not None:
            return Tail.DAMAGED
        if self._data.find(self.header.marker, self.end_offset + 1) >= 0:
            return Tail.DAMAGED
        begun = self._data[self.end_offset : self.end_offset + RECORD_HEADER_BYTES]
        if not begun.startswith(self.header.marker[: len(begun)]):
            # Space that was not made yet when the power went may hold anything. But where all the
            # rest is right, it is the marker that is damaged.
            record = decode_record(begun[:MARKER_BYTES], self._data, self.end_offset)
            is_next = record is not None and record.index == self.next_index
            return Tail.LAST_DAMAGED if is_next and not self._misses_bytes() else Tail.TORN
        # A length that is torn itself is too small, never too large: zeros were there before.
        spare = 0 if self.header.is_early else SPARE_BYTES
        if len(begun) < RECORD_HEADER_BYTES or self._begun_end() + spare > len(self._data):
            return Tail.CUT_SHORT
        return Tail.TORN if self._misses_bytes() else Tail.LAST_DAMAGED

    def skip_damage(self) -> bool:
        """Go on at the next whole record behind damage, if there is one; a server never does."""
        offset = self.end_offset
        while (offset := self._data.find(self.header.marker, offset)) >= 0:
            record = decode_record(self.header.marker, self._data, offset)
            if record is not None and record.index >= self.next_index:
                self.last_offset = self.end_offset = offset
                self.next_index = record.index
                return True
            offset += 1
        return False

    def _record_at_end(self) -> Record | None:
        return decode_record(self.header.marker, self._data, self.end_offset)

    def _begun_end(self) -> int:
        """Where the record at the end says that it ends, whether it is good or not."""
        _, _, length, _ = _RECORD.unpack_from(self._data, self.end_offset)
        return self.end_offset + RECORD_HEADER_BYTES + int(length)

    def _misses_bytes(self) -> bool:
        """Return whether the bad record has zeros where a part of it may not have arrived."""
        offset = self.end_offset
        end = max(self._begun_end(), offset + self.remains_bytes)
        if self._data[offset] == 0 or self._data[end - 1] == 0:
            return True
        while offset < end:
            sector_end = min(end, (offset // _SECTOR_BYTES + 1) * _SECTOR_BYTES)
            if not self._data[offset:sector_end].strip(b"\0"):
                return True
            offset = sector_end
        return False

"""One file of Apache's transaction log: its records, and its end.

    file:    magic (4)  version (4)  database (8)  then records, then zeros
    record:  checksum (8)  length (4)  that many bytes  "B"

The checksum is the Adler-32 of the bytes. A file is filled with zeros ahead of what is written, so
a length of 0 ends it. A bad record with a good one behind it is damage, and an error. One without
is a write that a crash cut short: it was never acknowledged, and is skipped.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from paddock.upgrade.stream import DamagedFileError, UpgradeError

MAGIC: Final = b"ZKLG"
FILE_HEADER: Final = struct.Struct(">4siq")
RECORD_HEADER: Final = struct.Struct(">qi")
RECORD_END: Final = b"B"

# How far is looked for a good record behind a bad one; Apache preallocates this much at a time.
_LOOK_BYTES: Final = 64 << 20
_ZEROS: Final = bytes(1 << 16)


@dataclass(frozen=True, slots=True)
class Record:
    """The bytes of one transaction, and where they stand."""

    offset: int
    payload: bytes


class TransactionLog:
    """A file of the log. Raises DamagedFileError, and UpgradeError if it cannot be read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Once all records were read: where a write was cut short, if one was.
        self.torn_offset: int | None = None

    def records(self) -> Iterator[Record]:
        """Read the records in order, up to the last whole one."""
        try:
            with self.path.open("rb") as file:
                # An empty file cannot be mapped; it was made just before the server died.
                if file.seek(0, 2):
                    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                        yield from self._read(data)
        except OSError as error:
            raise UpgradeError(f"{self.path}: cannot be read: {error.strerror}") from None

    def _read(self, data: mmap.mmap) -> Iterator[Record]:
        offset = FILE_HEADER.size
        if data[: len(MAGIC)] != MAGIC:
            if _without_zeros(data, 0):
                raise DamagedFileError(self.path, 0, "this is not how a transaction log begins")
            return
        while True:
            payload = _payload(data, offset)
            if payload is None:
                break
            yield Record(offset, payload)
            offset += RECORD_HEADER.size + len(payload) + len(RECORD_END)
        rest = _without_zeros(data, offset)
        if rest:
            if _has_record(rest):
                raise DamagedFileError(
                    self.path, offset, "a transaction is damaged, and there are good ones behind it"
                )
            self.torn_offset = offset


def _payload(data: mmap.mmap | bytes, offset: int) -> bytes | None:
    """Return the payload of the record here, or None if it is not whole."""
    start = offset + RECORD_HEADER.size
    if start > len(data):
        return None
    checksum, length = RECORD_HEADER.unpack_from(data, offset)
    end = start + length
    # A length that lies is found out before anything is read for it.
    if length <= 0 or end >= len(data) or data[end : end + 1] != RECORD_END:
        return None
    payload = data[start:end]
    return payload if zlib.adler32(payload) == checksum else None


def _without_zeros(data: mmap.mmap, offset: int) -> bytes:
    """Return the rest without the zeros at its end; usually nothing."""
    end = min(len(data), offset + _LOOK_BYTES)
    # Whole blocks are compared, which is faster by far than to look at each byte.
    while end - offset > len(_ZEROS) and data[end - len(_ZEROS) : end] == _ZEROS:
        end -= len(_ZEROS)
    return data[offset:end].rstrip(b"\0")


def _has_record(rest: bytes) -> bool:
    """Return whether there is a whole record anywhere behind the first byte."""
    # The checksum has 32 bits in a field of 64, so a record begins with zeros.
    at = rest.find(bytes(4), 1)
    while at >= 0:
        if _payload(rest, at) is not None:
            return True
        at = rest.find(bytes(4), at + 1)
    return False

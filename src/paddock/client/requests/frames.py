"""Frames as the client sends them: a length, then what a record, or a whole request, has."""

from __future__ import annotations

from struct import Struct
from typing import Final, Protocol

from librt.strings import BytesWriter

# What a server takes at once by default (jute.maxbuffer); it closes the connection otherwise.
REQUEST_BYTES_MAX: Final = 0xFFFFF
# The length of what follows it, the number of the request, and the operation.
REQUEST_HEADER: Final = Struct(">iii")
# What the length counts of it.
COUNTED_HEADER_BYTES: Final = 8


class Record(Protocol):
    """Something of the protocol that can be written down."""

    def write(self, writer: BytesWriter) -> None: ...


def encoded(record: Record) -> bytes:
    """Return a record as the wire has it."""
    writer = BytesWriter()
    record.write(writer)
    return writer.getvalue()


def framed(payload: bytes) -> bytes:
    """Put the length before something."""
    return len(payload).to_bytes(4, "big") + payload


def framed_request(xid: int, operation: int, body: bytes = b"") -> bytes:
    """Return a request as it is sent; those that are sent by the thousand `in_flight` joins."""
    return REQUEST_HEADER.pack(COUNTED_HEADER_BYTES + len(body), xid, operation) + body

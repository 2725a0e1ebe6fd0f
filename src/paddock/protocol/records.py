"""The records of every connection: the handshake, headers, Stat, and events.

A record has its encoder and its decoder, so client and server cannot disagree on its shape. Field
order is wire order. The bodies of requests and replies are in `requests` and `replies`. Records are
not frozen, which would slow down decoding by half, but are never changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct
from typing import Final, NamedTuple, Self

from librt.strings import BytesWriter, write_i32_be

from paddock.protocol.jute import (
    BUFFER,
    INT,
    LONG,
    STRING,
    Codec,
    DeclaredRecord,
    DecodeError,
    Reader,
    WritableRecord,
    write_boolean,
)

NOTIFICATION_XID: Final = -1
PING_XID: Final = -2
AUTH_XID: Final = -4
SET_WATCHES_XID: Final = -8

# The fields of a Stat in their order: longs and ints.
_STAT: Final = Struct(">qqqqiiiqiiq")
_STAT_BYTES: Final = 68


class Stat(NamedTuple):
    """The metadata of a node.

    A zxid is the number of a write, larger than those of all writes before it. `czxid` is that of
    the write that created the node, `mzxid` that of the last one to its data, `pzxid` that of the
    last one that created or deleted a child; `ctime` and `mtime` are the times of the first two, in
    milliseconds since 1970. `version` counts the writes to the data, `cversion` the children that
    came and went, `aversion` the changes of the ACL. `ephemeral_owner` is the session that an
    ephemeral node belongs to, and 0 for all others.
    """

    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    data_length: int
    num_children: int
    pzxid: int

    def write(self, writer: BytesWriter) -> None:
        writer.write(_STAT.pack(*self))

    @classmethod
    def read(cls, reader: Reader) -> Self:
        start = reader.position
        if start + _STAT_BYTES > reader.end:
            raise DecodeError("truncated stat")
        reader.position = start + _STAT_BYTES
        # As `_make` does it, but without the interpreter: there is one in most replies.
        return tuple.__new__(cls, _STAT.unpack_from(reader.data, start))


def _read_last_boolean(reader: Reader) -> bool | None:
    return reader.boolean() if reader.position < reader.end else None


def _write_last_boolean(writer: BytesWriter, value: bool | None) -> None:
    if value is not None:
        write_boolean(writer, value)


# Left out by old peers.
_READ_ONLY: Final[Codec] = {"read": _read_last_boolean, "write": _write_last_boolean}


@dataclass(slots=True)
class ConnectRequest(DeclaredRecord):
    """The first frame of a connection. Old clients send it without the read-only byte."""

    protocol_version: int = field(metadata=INT)
    last_zxid_seen: int = field(metadata=LONG)
    timeout_ms: int = field(metadata=INT)
    session_id: int = field(metadata=LONG)
    password: bytes | None = field(metadata=BUFFER)
    read_only: bool | None = field(metadata=_READ_ONLY)


@dataclass(slots=True)
class ConnectResponse(DeclaredRecord):
    """The answer to it. Timeout and session 0 say that the session asked for is over."""

    protocol_version: int = field(metadata=INT)
    timeout_ms: int = field(metadata=INT)
    session_id: int = field(metadata=LONG)
    password: bytes | None = field(metadata=BUFFER)
    read_only: bool | None = field(metadata=_READ_ONLY)


@dataclass(slots=True)
class RequestHeader(DeclaredRecord):
    xid: int = field(metadata=INT)
    operation: int = field(metadata=INT)


@dataclass(slots=True)
class ReplyHeader(DeclaredRecord):
    xid: int = field(metadata=INT)
    zxid: int = field(metadata=LONG)
    error: int = field(metadata=INT)


@dataclass(slots=True)
class MultiHeader:
    """Stands before each operation and each result of a transaction; `done` ends the list."""

    operation: int
    done: bool
    error: int

    def write(self, writer: BytesWriter) -> None:
        write_i32_be(writer, self.operation)
        write_boolean(writer, self.done)
        write_i32_be(writer, self.error)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(reader.int32(), reader.boolean(), reader.int32())


@dataclass(slots=True)
class WatcherEvent(WritableRecord):
    kind: int = field(metadata=INT)
    state: int = field(metadata=INT)
    path: bytes = field(metadata=STRING)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(reader.int32(), reader.int32(), reader.string())

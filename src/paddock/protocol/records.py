"""The records of the protocol: what a request asks and what a reply says.

Each record writes itself and can be read, so client and server cannot disagree on its shape.
Field order is wire order. Records are not frozen, since that would make decoding half as fast
again; nobody changes one after it was read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from paddock.protocol.acl import ACL, read_acls, read_whole_acls, write_acls
from paddock.protocol.jute import (
    BytesWriter,
    Reader,
    write_boolean,
    write_buffer,
    write_i32_be,
    write_i64_be,
    write_strings,
    write_text,
)

NOTIFICATION_XID: Final = -1
PING_XID: Final = -2
AUTH_XID: Final = -4
SET_WATCHES_XID: Final = -8


@dataclass(frozen=True, slots=True)
class Stat:
    """What the service keeps about a node beside its data."""

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
        write_i64_be(writer, self.czxid)
        write_i64_be(writer, self.mzxid)
        write_i64_be(writer, self.ctime)
        write_i64_be(writer, self.mtime)
        write_i32_be(writer, self.version)
        write_i32_be(writer, self.cversion)
        write_i32_be(writer, self.aversion)
        write_i64_be(writer, self.ephemeral_owner)
        write_i32_be(writer, self.data_length)
        write_i32_be(writer, self.num_children)
        write_i64_be(writer, self.pzxid)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(
            reader.int64(),
            reader.int64(),
            reader.int64(),
            reader.int64(),
            reader.int32(),
            reader.int32(),
            reader.int32(),
            reader.int64(),
            reader.int32(),
            reader.int32(),
            reader.int64(),
        )


@dataclass(slots=True)
class ConnectRequest:
    """The first frame of a connection. Old clients send it without the read-only byte."""

    protocol_version: int
    last_zxid_seen: int
    timeout_ms: int
    session_id: int
    password: bytes | None
    read_only: bool | None

    def write(self, writer: BytesWriter) -> None:
        write_i32_be(writer, self.protocol_version)
        write_i64_be(writer, self.last_zxid_seen)
        write_i32_be(writer, self.timeout_ms)
        write_i64_be(writer, self.session_id)
        write_buffer(writer, self.password)
        if self.read_only is not None:
            write_boolean(writer, self.read_only)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        version = reader.int32()
        zxid = reader.int64()
        timeout_ms = reader.int32()
        session_id = reader.int64()
        password = reader.buffer()
        read_only = reader.boolean() if reader.position < len(reader.data) else None
        return cls(version, zxid, timeout_ms, session_id, password, read_only)


@dataclass(slots=True)
class ConnectResponse:
    """The answer to it. Timeout and session 0 say that the session asked for is over."""

    protocol_version: int
    timeout_ms: int
    session_id: int
    password: bytes | None
    read_only: bool | None

    def write(self, writer: BytesWriter) -> None:
        write_i32_be(writer, self.protocol_version)
        write_i32_be(writer, self.timeout_ms)
        write_i64_be(writer, self.session_id)
        write_buffer(writer, self.password)
        if self.read_only is not None:
            write_boolean(writer, self.read_only)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        version = reader.int32()
        timeout_ms = reader.int32()
        session_id = reader.int64()
        password = reader.buffer()
        read_only = reader.boolean() if reader.position < len(reader.data) else None
        return cls(version, timeout_ms, session_id, password, read_only)


@dataclass(slots=True)
class RequestHeader:
    xid: int
    operation: int

    def write(self, writer: BytesWriter) -> None:
        write_i32_be(writer, self.xid)
        write_i32_be(writer, self.operation)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(reader.int32(), reader.int32())


@dataclass(slots=True)
class ReplyHeader:
    xid: int
    zxid: int
    error: int

    def write(self, writer: BytesWriter) -> None:
        write_i32_be(writer, self.xid)
        write_i64_be(writer, self.zxid)
        write_i32_be(writer, self.error)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(reader.int32(), reader.int64(), reader.int32())


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
class WatcherEvent:
    kind: int
    state: int
    path: bytes

    def write(self, writer: BytesWriter) -> None:
        write_i32_be(writer, self.kind)
        write_i32_be(writer, self.state)
        write_buffer(writer, self.path)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(reader.int32(), reader.int32(), reader.string())


@dataclass(slots=True)
class PathRequest:
    """Just a path: sync, get_acl, get_all_children_number, get_ephemerals, delete_container."""

    path: bytes | None

    def write(self, writer: BytesWriter) -> None:
        write_buffer(writer, self.path)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(reader.buffer())


@dataclass(slots=True)
class WatchedRequest:
    """A path, and whether to watch it: exists, get, get_children and get_children2."""

    path: bytes
    watch: bool

    def write(self, writer: BytesWriter) -> None:
        write_buffer(writer, self.path)
        write_boolean(writer, self.watch)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(reader.string(), reader.boolean())


@dataclass(slots=True)
class CreateRequest:
    """create, create2 and create_container."""

    path: bytes
    data: bytes | None
    acls: list[ACL | None] | None
    flags: int

    def write(self, writer: BytesWriter) -> None:
        write_buffer(writer, self.path)
        write_buffer(writer, self.data)
        _write_request_acls(writer, self.acls)
        write_i32_be(writer, self.flags)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(reader.string(), reader.buffer(), read_acls(reader), reader.int32())


@dataclass(slots=True)
class CreateTTLRequest:
    path: bytes
    data: bytes | None
    acls: list[ACL | None] | None
    flags: int
    ttl_ms: int

    def write(self, writer: BytesWriter) -> None:
        write_buffer(writer, self.path)
        write_buffer(writer, self.data)
        _write_request_acls(writer, self.acls)
        write_i32_be(writer, self.flags)
        write_i64_be(writer, self.ttl_ms)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        path = reader.string()
        data = reader.buffer()
        acls = read_acls(reader)
        return cls(path, data, acls, reader.int32(), reader.int64())


@dataclass(slots=True)
class VersionRequest:
    """A path and the version it must have, -1 for any: delete and check."""

    path: bytes | None
    version: int

    def write(self, writer: BytesWriter) -> None:
        write_buffer(writer, self.path)
        write_i32_be(writer, self.version)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(reader.buffer(), reader.int32())


@dataclass(slots=True)
class SetDataRequest:
    path: bytes | None
    data: bytes | None
    version: int

    def write(self, writer: BytesWriter) -> None:
        write_buffer(writer, self.path)
        write_buffer(writer, self.data)
        write_i32_be(writer, self.version)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(reader.buffer(), reader.buffer(), reader.int32())


@dataclass(slots=True)
class SetACLRequest:
    path: bytes | None
    acls: list[ACL | None] | None
    version: int

    def write(self, writer: BytesWriter) -> None:
        write_buffer(writer, self.path)
        _write_request_acls(writer, self.acls)
        write_i32_be(writer, self.version)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(reader.buffer(), read_acls(reader), reader.int32())


@dataclass(slots=True)
class WatchesRequest:
    """check_watches and remove_watches: 1 children, 2 data, 3 any."""

    path: bytes | None
    kind: int

    def write(self, writer: BytesWriter) -> None:
        write_buffer(writer, self.path)
        write_i32_be(writer, self.kind)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(reader.buffer(), reader.int32())


@dataclass(slots=True)
class AddWatchRequest:
    """add_watch: mode 0 persistent, 1 persistent recursive."""

    path: bytes
    mode: int

    def write(self, writer: BytesWriter) -> None:
        write_buffer(writer, self.path)
        write_i32_be(writer, self.mode)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(reader.string(), reader.int32())


@dataclass(slots=True)
class SetWatchesRequest:
    """The watches that a client had before it reconnected, and the last zxid it saw.

    set_watches ends before `persistent`; set_watches2 has all five lists.
    """

    relative_zxid: int
    data: list[bytes]
    exists: list[bytes]
    child: list[bytes]
    persistent: list[bytes]
    recursive: list[bytes]

    def write(self, writer: BytesWriter) -> None:
        self.write_first(writer)
        write_strings(writer, self.persistent)
        write_strings(writer, self.recursive)

    def write_first(self, writer: BytesWriter) -> None:
        """Write it as set_watches, which knows no persistent watches."""
        write_i64_be(writer, self.relative_zxid)
        write_strings(writer, self.data)
        write_strings(writer, self.exists)
        write_strings(writer, self.child)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        zxid = reader.int64()
        data, exists, child = reader.strings(), reader.strings(), reader.strings()
        return cls(zxid, data, exists, child, reader.strings(), reader.strings())

    @classmethod
    def read_first(cls, reader: Reader) -> Self:
        zxid = reader.int64()
        data, exists, child = reader.strings(), reader.strings(), reader.strings()
        return cls(zxid, data, exists, child, [], [])


@dataclass(slots=True)
class ReconfigRequest:
    joining: str | None
    leaving: str | None
    members: str | None
    config_id: int

    def write(self, writer: BytesWriter) -> None:
        write_text(writer, self.joining)
        write_text(writer, self.leaving)
        write_text(writer, self.members)
        write_i64_be(writer, self.config_id)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(reader.text(), reader.text(), reader.text(), reader.int64())


@dataclass(slots=True)
class AuthPacket:
    kind: int
    scheme: str | None
    credentials: bytes | None

    def write(self, writer: BytesWriter) -> None:
        write_i32_be(writer, self.kind)
        write_text(writer, self.scheme)
        write_buffer(writer, self.credentials)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(reader.int32(), reader.text(), reader.buffer())


@dataclass(slots=True)
class SaslToken:
    token: bytes | None

    def write(self, writer: BytesWriter) -> None:
        write_buffer(writer, self.token)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(reader.buffer())


@dataclass(slots=True)
class CreateResponse:
    path: bytes

    def write(self, writer: BytesWriter) -> None:
        write_buffer(writer, self.path)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(reader.string())


@dataclass(slots=True)
class Create2Response:
    path: bytes
    stat: Stat

    def write(self, writer: BytesWriter) -> None:
        write_buffer(writer, self.path)
        self.stat.write(writer)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(reader.string(), Stat.read(reader))


@dataclass(slots=True)
class GetDataResponse:
    data: bytes | None
    stat: Stat

    def write(self, writer: BytesWriter) -> None:
        write_buffer(writer, self.data)
        self.stat.write(writer)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(reader.buffer(), Stat.read(reader))


@dataclass(slots=True)
class StringsResponse:
    """get_children and get_ephemerals."""

    values: list[bytes]

    def write(self, writer: BytesWriter) -> None:
        write_strings(writer, self.values)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(reader.strings())


@dataclass(slots=True)
class GetChildren2Response:
    children: list[bytes]
    stat: Stat

    def write(self, writer: BytesWriter) -> None:
        write_strings(writer, self.children)
        self.stat.write(writer)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(reader.strings(), Stat.read(reader))


@dataclass(slots=True)
class GetACLResponse:
    acls: list[ACL]
    stat: Stat

    def write(self, writer: BytesWriter) -> None:
        write_acls(writer, self.acls)
        self.stat.write(writer)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(read_whole_acls(reader), Stat.read(reader))


@dataclass(slots=True)
class IntResponse:
    """One number: a count of descendants, or an error code within a record."""

    value: int

    def write(self, writer: BytesWriter) -> None:
        write_i32_be(writer, self.value)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(reader.int32())


@dataclass(frozen=True, slots=True)
class ClientInfo:
    scheme: str
    user: str

    def write(self, writer: BytesWriter) -> None:
        write_text(writer, self.scheme)
        write_text(writer, self.user)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(reader.text() or "", reader.text() or "")


@dataclass(slots=True)
class WhoAmIResponse:
    clients: list[ClientInfo]

    def write(self, writer: BytesWriter) -> None:
        write_i32_be(writer, len(self.clients))
        for client in self.clients:
            client.write(writer)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls([ClientInfo.read(reader) for _ in range(reader.int32())])


def _write_request_acls(writer: BytesWriter, acls: list[ACL | None] | None) -> None:
    if acls is None:
        write_i32_be(writer, -1)
        return
    write_i32_be(writer, len(acls))
    for acl in acls:
        if acl is None:
            write_i32_be(writer, 0)
            write_buffer(writer, None)
            write_buffer(writer, None)
        else:
            acl.write(writer)

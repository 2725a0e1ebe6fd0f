"""The bodies of requests: a record for each shape; several operations share one.

The most frequent ones have an `__init__` of their own: that of a dataclass is made at run time, so
it is interpreted even in compiled code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from mypy_extensions import mypyc_attr

from paddock.protocol.acl import ACL, read_acls
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


@mypyc_attr(acyclic=True)
@dataclass(slots=True)
class PathRequest:
    """Just a path: sync, get_acl, get_all_children_number, get_ephemerals, delete_container."""

    path: bytes | None

    def write(self, writer: BytesWriter) -> None:
        write_buffer(writer, self.path)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(reader.buffer())


@mypyc_attr(acyclic=True)
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


@mypyc_attr(acyclic=True)
@dataclass(slots=True, init=False)
class CreateRequest:
    """create, create2 and create_container."""

    path: bytes
    data: bytes | None
    acls: list[ACL | None] | None
    flags: int

    def __init__(
        self, path: bytes, data: bytes | None, acls: list[ACL | None] | None, flags: int
    ) -> None:
        self.path = path
        self.data = data
        self.acls = acls
        self.flags = flags

    def write(self, writer: BytesWriter) -> None:
        write_buffer(writer, self.path)
        write_buffer(writer, self.data)
        _write_request_acls(writer, self.acls)
        write_i32_be(writer, self.flags)

    @staticmethod
    def read(reader: Reader) -> CreateRequest:
        return CreateRequest(reader.string(), reader.buffer(), read_acls(reader), reader.int32())


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


@mypyc_attr(acyclic=True)
@dataclass(slots=True, init=False)
class VersionRequest:
    """A path and the version it must have, -1 for any: delete and check."""

    path: bytes | None
    version: int

    def __init__(self, path: bytes | None, version: int) -> None:
        self.path = path
        self.version = version

    def write(self, writer: BytesWriter) -> None:
        write_buffer(writer, self.path)
        write_i32_be(writer, self.version)

    @staticmethod
    def read(reader: Reader) -> VersionRequest:
        return VersionRequest(reader.buffer(), reader.int32())


@mypyc_attr(acyclic=True)
@dataclass(slots=True, init=False)
class SetDataRequest:
    path: bytes | None
    data: bytes | None
    version: int

    def __init__(self, path: bytes | None, data: bytes | None, version: int) -> None:
        self.path = path
        self.data = data
        self.version = version

    def write(self, writer: BytesWriter) -> None:
        write_buffer(writer, self.path)
        write_buffer(writer, self.data)
        write_i32_be(writer, self.version)

    @staticmethod
    def read(reader: Reader) -> SetDataRequest:
        return SetDataRequest(reader.buffer(), reader.buffer(), reader.int32())


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
    """set_watches2: a client's watches before it reconnected, and the last zxid it saw."""

    relative_zxid: int
    data: list[bytes]
    exists: list[bytes]
    child: list[bytes]
    persistent: list[bytes]
    recursive: list[bytes]

    def write(self, writer: BytesWriter) -> None:
        write_i64_be(writer, self.relative_zxid)
        for paths in (self.data, self.exists, self.child, self.persistent, self.recursive):
            write_strings(writer, paths)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        zxid = reader.int64()
        data, exists, child = reader.strings(), reader.strings(), reader.strings()
        return cls(zxid, data, exists, child, reader.strings(), reader.strings())


@dataclass(slots=True)
class OldSetWatchesRequest(SetWatchesRequest):
    """set_watches, which has no persistent watches."""

    def write(self, writer: BytesWriter) -> None:
        write_i64_be(writer, self.relative_zxid)
        for paths in (self.data, self.exists, self.child):
            write_strings(writer, paths)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        zxid = reader.int64()
        return cls(zxid, reader.strings(), reader.strings(), reader.strings(), [], [])


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

"""The bodies of requests: a record for each shape; several operations share one.

The most frequent ones have an `__init__` of their own: that of a dataclass is made at run time, so
it is interpreted even in compiled code. What a server decodes by the thousand has a `read` of its
own, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Self

from librt.strings import BytesWriter, write_i32_be
from mypy_extensions import mypyc_attr

from paddock.protocol.acl import ACL, read_acls
from paddock.protocol.jute import (
    BOOLEAN,
    BUFFER,
    INT,
    LONG,
    STRING,
    STRINGS,
    TEXT,
    Codec,
    DeclaredRecord,
    Reader,
    WritableRecord,
    write_buffer,
)


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


_ACLS: Final[Codec] = {"read": read_acls, "write": _write_request_acls}
_NOT_SENT: Final[Codec] = {"read": lambda reader: [], "write": lambda writer, paths: None}


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
class WatchedRequest(WritableRecord):
    """A path, and whether to watch it: exists, get, get_children and get_children2."""

    path: bytes = field(metadata=STRING)
    watch: bool = field(metadata=BOOLEAN)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(reader.string(), reader.boolean())


@mypyc_attr(acyclic=True)
@dataclass(slots=True, init=False)
class CreateRequest(WritableRecord):
    """create, create2 and create_container."""

    path: bytes = field(metadata=STRING)
    data: bytes | None = field(metadata=BUFFER)
    acls: list[ACL | None] | None = field(metadata=_ACLS)
    flags: int = field(metadata=INT)

    def __init__(
        self, path: bytes, data: bytes | None, acls: list[ACL | None] | None, flags: int
    ) -> None:
        self.path = path
        self.data = data
        self.acls = acls
        self.flags = flags

    @staticmethod
    def read(reader: Reader) -> CreateRequest:
        return CreateRequest(reader.string(), reader.buffer(), read_acls(reader), reader.int32())


@dataclass(slots=True)
class CreateTTLRequest(DeclaredRecord):
    path: bytes = field(metadata=STRING)
    data: bytes | None = field(metadata=BUFFER)
    acls: list[ACL | None] | None = field(metadata=_ACLS)
    flags: int = field(metadata=INT)
    ttl_ms: int = field(metadata=LONG)


@mypyc_attr(acyclic=True)
@dataclass(slots=True, init=False)
class VersionRequest(WritableRecord):
    """A path and the version it must have, -1 for any: delete and check."""

    path: bytes | None = field(metadata=BUFFER)
    version: int = field(metadata=INT)

    def __init__(self, path: bytes | None, version: int) -> None:
        self.path = path
        self.version = version

    @staticmethod
    def read(reader: Reader) -> VersionRequest:
        return VersionRequest(reader.buffer(), reader.int32())


@mypyc_attr(acyclic=True)
@dataclass(slots=True, init=False)
class SetDataRequest(WritableRecord):
    path: bytes | None = field(metadata=BUFFER)
    data: bytes | None = field(metadata=BUFFER)
    version: int = field(metadata=INT)

    def __init__(self, path: bytes | None, data: bytes | None, version: int) -> None:
        self.path = path
        self.data = data
        self.version = version

    @staticmethod
    def read(reader: Reader) -> SetDataRequest:
        return SetDataRequest(reader.buffer(), reader.buffer(), reader.int32())


@dataclass(slots=True)
class SetACLRequest(DeclaredRecord):
    path: bytes | None = field(metadata=BUFFER)
    acls: list[ACL | None] | None = field(metadata=_ACLS)
    version: int = field(metadata=INT)


@dataclass(slots=True)
class WatchesRequest(DeclaredRecord):
    """check_watches and remove_watches: 1 children, 2 data, 3 any."""

    path: bytes | None = field(metadata=BUFFER)
    kind: int = field(metadata=INT)


@dataclass(slots=True)
class AddWatchRequest(WritableRecord):
    """add_watch: mode 0 persistent, 1 persistent recursive."""

    path: bytes = field(metadata=STRING)
    mode: int = field(metadata=INT)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(reader.string(), reader.int32())


@dataclass(slots=True)
class SetWatchesRequest(DeclaredRecord):
    """set_watches2: a client's watches before it reconnected, and the last zxid it saw."""

    relative_zxid: int = field(metadata=LONG)
    data: list[bytes] = field(metadata=STRINGS)
    exists: list[bytes] = field(metadata=STRINGS)
    child: list[bytes] = field(metadata=STRINGS)
    persistent: list[bytes] = field(metadata=STRINGS)
    recursive: list[bytes] = field(metadata=STRINGS)


@dataclass(slots=True)
class OldSetWatchesRequest(SetWatchesRequest):
    """set_watches, which has no persistent watches."""

    persistent: list[bytes] = field(metadata=_NOT_SENT)
    recursive: list[bytes] = field(metadata=_NOT_SENT)


@dataclass(slots=True)
class ReconfigRequest(DeclaredRecord):
    joining: str | None = field(metadata=TEXT)
    leaving: str | None = field(metadata=TEXT)
    members: str | None = field(metadata=TEXT)
    config_id: int = field(metadata=LONG)


@dataclass(slots=True)
class AuthPacket(DeclaredRecord):
    kind: int = field(metadata=INT)
    scheme: str | None = field(metadata=TEXT)
    credentials: bytes | None = field(metadata=BUFFER)


@dataclass(slots=True)
class SaslToken(DeclaredRecord):
    token: bytes | None = field(metadata=BUFFER)

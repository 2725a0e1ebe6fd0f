"""The bodies of replies: a record for each shape; several operations share one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Self

from librt.strings import BytesWriter, write_i32_be

from paddock.protocol.acl import ACL, read_whole_acls, write_acls
from paddock.protocol.jute import (
    BUFFER,
    INT,
    STRING,
    STRINGS,
    Codec,
    DeclaredRecord,
    Reader,
    WritableRecord,
    write_text,
)
from paddock.protocol.records import Stat


def _write_stat(writer: BytesWriter, stat: Stat) -> None:
    stat.write(writer)


_ACLS: Final[Codec] = {"read": read_whole_acls, "write": write_acls}
_STAT: Final[Codec] = {"read": Stat.read, "write": _write_stat}
# Null is the empty one.
_NAME: Final[Codec] = {"read": lambda reader: reader.text() or "", "write": write_text}


@dataclass(slots=True)
class CreateResponse(DeclaredRecord):
    path: bytes = field(metadata=STRING)


@dataclass(slots=True)
class Create2Response(DeclaredRecord):
    path: bytes = field(metadata=STRING)
    stat: Stat = field(metadata=_STAT)


@dataclass(slots=True)
class GetDataResponse(DeclaredRecord):
    data: bytes | None = field(metadata=BUFFER)
    stat: Stat = field(metadata=_STAT)


@dataclass(slots=True)
class StringsResponse(DeclaredRecord):
    """get_children and get_ephemerals."""

    values: list[bytes] = field(metadata=STRINGS)


@dataclass(slots=True)
class GetChildren2Response(WritableRecord):
    children: list[bytes] = field(metadata=STRINGS)
    stat: Stat = field(metadata=_STAT)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(reader.strings(), Stat.read(reader))


@dataclass(slots=True)
class GetACLResponse(DeclaredRecord):
    acls: list[ACL] = field(metadata=_ACLS)
    stat: Stat = field(metadata=_STAT)


@dataclass(slots=True)
class IntResponse(DeclaredRecord):
    """One number: a count of descendants, or an error code within a record."""

    value: int = field(metadata=INT)


@dataclass(slots=True)
class ClientInfo(DeclaredRecord):
    scheme: str = field(metadata=_NAME)
    user: str = field(metadata=_NAME)


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

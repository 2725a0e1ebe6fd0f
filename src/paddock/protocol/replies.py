"""The bodies of replies: a record for each shape; several operations share one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from paddock.protocol.acl import ACL, read_whole_acls, write_acls
from paddock.protocol.jute import (
    BytesWriter,
    Reader,
    write_buffer,
    write_i32_be,
    write_strings,
    write_text,
)
from paddock.protocol.records import Stat


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

"""Jute, ZooKeeper's serialization: big-endian integers, and lengths before everything else.

Reading is strict about what it needs and indifferent to what follows: a record ends where its
last field ends, and bytes behind it are ignored, as upstream does. A length of -1 is null; any
other negative length of a string or buffer, or one that points past the end, is a `DecodeError`.
A vector with a negative length other than -1 is an empty one, also as upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Self, TypeAlias

from librt.strings import BytesWriter, read_i32_be, read_i64_be, write_i32_be, write_i64_be
from mypy_extensions import i64, mypyc_attr

from paddock.errors import ProtocolError


class DecodeError(ProtocolError):
    """The bytes are not the record they should be."""


# What is acyclic never leads back to itself, so the garbage collector need not know it: that makes
# objects smaller and faster to come by. It goes for what there are thousands or millions of.
@mypyc_attr(acyclic=True)
class Reader:
    """Takes one value after another out of `data`, up to `end`."""

    __slots__ = ("acl_entries_max", "data", "end", "position")

    def __init__(self, data: bytes, position: i64 = 0, acl_entries_max: i64 = 1 << 31) -> None:
        self.data = data
        # An ACL with more entries than this is passed over, not read: see `read_acls`.
        self.acl_entries_max: i64 = acl_entries_max
        # Invariant: 0 <= position <= end <= len(data).
        self.position: i64 = position
        self.end: i64 = len(data)

    def int32(self) -> int:
        position = self.position
        if position + 4 > self.end:
            raise DecodeError("truncated int")
        self.position = position + 4
        return read_i32_be(self.data, position)

    def int64(self) -> int:
        position = self.position
        if position + 8 > self.end:
            raise DecodeError("truncated long")
        self.position = position + 8
        return read_i64_be(self.data, position)

    def byte(self) -> int:
        position = self.position
        if position >= self.end:
            raise DecodeError("truncated byte")
        self.position = position + 1
        return self.data[position]

    def boolean(self) -> bool:
        return self.byte() != 0

    def buffer(self) -> bytes | None:
        """Take a buffer, or a string as its UTF-8 bytes; both look the same on the wire."""
        data = self.data
        start = self.position + 4
        if start > self.end:
            raise DecodeError("truncated length")
        # By way of an int: uncompiled, a conversion to i64 is a slow call.
        announced: int = read_i32_be(data, start - 4)
        length: i64 = announced
        if length < 0:
            if length == -1:
                self.position = start
                return None
            raise DecodeError("negative length")
        end = start + length
        if end > self.end:
            raise DecodeError("length past the end")
        self.position = end
        return data[start:end]

    def skip(self) -> None:
        """Pass over a string, which may be null."""
        length: i64 = self.int32()
        if length < -1 or self.position + length > self.end:
            raise DecodeError("length past the end")
        if length > 0:
            self.position += length

    def string(self) -> bytes:
        """Take a string that may not be null."""
        value = self.buffer()
        if value is None:
            raise DecodeError("null string")
        return value

    def text(self) -> str | None:
        """Take a string as `str`, with malformed UTF-8 replaced, as upstream does."""
        value = self.buffer()
        return None if value is None else value.decode("utf-8", "replace")

    def strings(self) -> list[bytes]:
        """Take a vector of strings; neither it nor any of them may be null."""
        count = self.int32()
        if count == -1:
            raise DecodeError("null vector")
        return [self.string() for _ in range(count)]

    def rest(self) -> bytes:
        return self.data[self.position : self.end]


def write_buffer(writer: BytesWriter, value: bytes | None) -> None:
    if value is None:
        write_i32_be(writer, -1)
    else:
        write_i32_be(writer, len(value))
        writer.write(value)


def write_text(writer: BytesWriter, value: str | None) -> None:
    write_buffer(writer, None if value is None else value.encode())


def write_boolean(writer: BytesWriter, value: bool) -> None:
    writer.append(1 if value else 0)


def write_strings(writer: BytesWriter, values: list[bytes]) -> None:
    write_i32_be(writer, len(values))
    for value in values:
        write_i32_be(writer, len(value))
        writer.write(value)


def to_int32(number: int) -> int:
    """Wrap a number around as a 32-bit counter does: after 2147483647 comes -2147483648."""
    return (number + 0x8000_0000) % 0x1_0000_0000 - 0x8000_0000


# How the values of a field are read and written, as the metadata of a dataclass field.
Codec: TypeAlias = Mapping[str, Callable[..., Any]]

INT: Final[Codec] = {"read": Reader.int32, "write": write_i32_be}
LONG: Final[Codec] = {"read": Reader.int64, "write": write_i64_be}
BOOLEAN: Final[Codec] = {"read": Reader.boolean, "write": write_boolean}
BUFFER: Final[Codec] = {"read": Reader.buffer, "write": write_buffer}
STRING: Final[Codec] = {"read": Reader.string, "write": write_buffer}
STRINGS: Final[Codec] = {"read": Reader.strings, "write": write_strings}
TEXT: Final[Codec] = {"read": Reader.text, "write": write_text}

# The fields of each kind of record.
_CODECS: Final[dict[type, list[tuple[str, Codec]]]] = {}


@mypyc_attr(acyclic=True)
@dataclass(slots=True)
class WritableRecord:
    """A record that is written by the codecs of its fields, in their order.

    To go by codecs takes about a microsecond more than a method of its own, which records have for
    what hot paths do.
    """

    def write(self, writer: BytesWriter) -> None:
        for name, codec in _codecs(type(self)):
            codec["write"](writer, getattr(self, name))


@mypyc_attr(acyclic=True)
@dataclass(slots=True)
class DeclaredRecord(WritableRecord):
    """A record that is read by them as well."""

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls(*[codec["read"](reader) for _, codec in _codecs(cls)])


def _codecs(kind: type[WritableRecord]) -> list[tuple[str, Codec]]:
    codecs = _CODECS.get(kind)
    if codecs is None:
        codecs = _CODECS[kind] = [(one.name, one.metadata) for one in fields(kind)]
    return codecs

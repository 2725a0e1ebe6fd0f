"""The bodies of the entries that servers with a shared log agree on.

`paddock.state.membership` says what becomes of them. LEAVE and EPOCH have none.
"""

from __future__ import annotations

from dataclasses import dataclass

from librt.strings import BytesWriter, write_i32_be, write_i64_be

from paddock.protocol.jute import Reader, write_buffer


@dataclass(slots=True)
class JoinRequest:
    """The body of JOIN."""

    # The index that the joiner had applied.
    applied: int
    # The highest rules that it knows.
    rules_max: int
    # Where clients reach it, `host:port`; empty if it does not say so.
    address: str
    # What has to be the same on all servers, in words; others warn of a difference.
    settings: str
    version: str
    # The former boot of the same server, which is over; empty if there is none.
    replaces: bytes
    # What its clock says, for the others to compare.
    time_ms: int

    def write(self, writer: BytesWriter) -> None:
        write_i64_be(writer, self.applied)
        write_i32_be(writer, self.rules_max)
        write_buffer(writer, self.address.encode())
        write_buffer(writer, self.settings.encode())
        write_buffer(writer, self.version.encode())
        write_buffer(writer, self.replaces)
        write_i64_be(writer, self.time_ms)

    @classmethod
    def read(cls, reader: Reader) -> JoinRequest:
        return cls(
            reader.int64(),
            reader.int32(),
            read_text(reader),
            read_text(reader),
            read_text(reader),
            reader.string(),
            reader.int64(),
        )

    def encode(self) -> bytes:
        writer = BytesWriter()
        self.write(writer)
        return writer.getvalue()

    @classmethod
    def decode(cls, body: bytes) -> JoinRequest:
        return cls.read(Reader(body))


@dataclass(slots=True)
class DeposeRequest:
    """The body of DEPOSE."""

    boot: bytes
    # The index of the last batch of that boot; void if there is a later one.
    last_index: int

    def write(self, writer: BytesWriter) -> None:
        write_buffer(writer, self.boot)
        write_i64_be(writer, self.last_index)

    @classmethod
    def read(cls, reader: Reader) -> DeposeRequest:
        return cls(reader.string(), reader.int64())

    def encode(self) -> bytes:
        writer = BytesWriter()
        self.write(writer)
        return writer.getvalue()

    @classmethod
    def decode(cls, body: bytes) -> DeposeRequest:
        return cls.read(Reader(body))


@dataclass(slots=True)
class BallotRequest:
    """The body of BALLOT."""

    # The index, and the digest after it; -1 if that is not known any more.
    index: int
    digest: int

    def encode(self) -> bytes:
        writer = BytesWriter()
        write_i64_be(writer, self.index)
        write_i64_be(writer, self.digest)
        return writer.getvalue()

    @classmethod
    def decode(cls, body: bytes) -> BallotRequest:
        reader = Reader(body)
        return cls(reader.int64(), reader.int64())


def rules_body(rules: int) -> bytes:
    """Return the body of RAISE_RULES."""
    return rules.to_bytes(4, "big", signed=True)


def clock_body(time_ms: int) -> bytes:
    """Return the body of CLOCK."""
    return time_ms.to_bytes(8, "big", signed=True)


def forget_body(address: str) -> bytes:
    """Return the body of FORGET."""
    writer = BytesWriter()
    write_buffer(writer, address.encode())
    return writer.getvalue()


def read_text(reader: Reader) -> str:
    """Read a text. What is not UTF-8 is replaced: every server reads the same."""
    return reader.string().decode("utf-8", "replace")

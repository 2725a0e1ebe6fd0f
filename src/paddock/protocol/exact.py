"""Exact sessions on the wire: what became of the writes whose replies were lost.

Upstream, a client whose connection is lost does not know which of its writes took effect. In an
exact session the service tells, when the client has come back. No other client reads or sends a
byte more for it. The rules:

* A client asks with the constant `ASKS_EXACT` as the password of a new session, which upstream
  overwrites. The request has its 45 bytes. A service that grants it answers with `ExactTerms`
  behind the ConnectResponse; any other one answers as always, and the session is an ordinary one.
* The client attaches the session again with `TERMS_VERSION` as the protocol version of its request.
  Only then the answer has terms: another client that was handed the session's id and password may
  be one that reads exactly 41 bytes of the answer.
* A write is known by two numbers that it has anyway: the generation of the session, which says
  which attachment it was sent after, and its xid, which goes up within a connection. Together they
  are the 64-bit number of the write.
* To attach is the fence. What was applied of the former connection is final, and what was not will
  never be: its generation is over, and it is answered SESSION_MOVED. So the terms list what was
  applied, with the replies, and the client sends the rest again, with new numbers.
* The service keeps the last replies of a session, as many as its window. A client has at most so
  many writes in flight: the one that was sent a window ago is answered, so its reply was received.
  Of a write up to `confirmed` the service has forgotten the reply.
* Replies are kept of one generation. A client that writes after an attachment has read its terms,
  so the older replies are not needed any more. A client that has lost the answer to its attachment
  has written nothing since, and the next one lists the same.
* Of a reply that is too large to be kept, what is left is the error and the zxid.
* The reply to a refused transaction says OK, and has an error for each operation. Kept is which one
  failed, and its error: from that the client makes the reply again.

The terms begin with flags: what the service can that upstream's cannot. A session that is not
exact, as on a server in read-only mode, may have terms of flags alone: the rest of them is 0.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_i32_be, write_i64_be

from paddock.errors import OK
from paddock.protocol import opcodes
from paddock.protocol.jute import DecodeError, Reader, write_buffer
from paddock.protocol.records import MultiHeader

# The password with which a new session is asked for.
ASKS_EXACT: Final = b"Paddock/exact/01"
# The protocol version with which an exact session is attached again.
TERMS_VERSION: Final = 1

# What the service can: the session is exact; it has change feeds (`paddock.protocol.changes`).
EXACT: Final = 1
CHANGES: Final = 2

# The length of a body that was not kept. Below it, from FIRST_FAILED down, it says which operation
# of a transaction failed.
NOT_KEPT: Final = -1
FIRST_FAILED: Final = -2


class KeptReply:
    """The reply to a write that was applied."""

    __slots__ = ("body", "error", "failed", "xid", "zxid")

    def __init__(
        self, xid: int, zxid: int, error: int, body: bytes | None, failed: int = -1
    ) -> None:
        self.xid = xid
        self.zxid = zxid
        self.error = error
        # None if it was not kept.
        self.body = body
        # Which operation of a transaction failed, from 0 on; -1 if none.
        self.failed = failed

    def write(self, writer: BytesWriter) -> None:
        write_i32_be(writer, self.xid)
        write_i64_be(writer, self.zxid)
        write_i32_be(writer, self.error)
        if self.failed >= 0:
            write_i32_be(writer, FIRST_FAILED - self.failed)
        else:
            write_buffer(writer, self.body)

    @classmethod
    def read(cls, reader: Reader) -> KeptReply:
        xid, zxid, error = reader.int32(), reader.int64(), reader.int32()
        length = reader.int32()
        if length <= FIRST_FAILED:
            return cls(xid, zxid, error, None, FIRST_FAILED - length)
        reader.position -= 4
        return cls(xid, zxid, error, reader.buffer())

    def refusal(self) -> bytes:
        """Return the reply to a refused transaction, up to the operation that failed."""
        writer = BytesWriter()
        for number in range(self.failed + 1):
            code = self.error if number == self.failed else OK
            MultiHeader(opcodes.ERROR, False, code).write(writer)
            write_i32_be(writer, code)
        MultiHeader(-1, True, -1).write(writer)
        return writer.getvalue()


class ExactTerms:
    """What the answer to a handshake says of an exact session, behind the ConnectResponse."""

    def __init__(
        self,
        window: int,
        generation: int,
        zxid: int,
        kept_generation: int,
        confirmed: int,
        count: int,
        replies: bytes,
        flags: int = EXACT,
    ) -> None:
        self.flags = flags
        # How many writes may be in flight.
        self.window = window
        # The generation of this attachment.
        self.generation = generation
        # The zxid of the state: in another epoch than before, it is another history.
        self.zxid = zxid
        # The generation under which the replies were given; 0 if there are none.
        self.kept_generation = kept_generation
        # The xid of the last write whose reply is forgotten; 0 if there is none.
        self.confirmed = confirmed
        # How many replies there are, and a `KeptReply` each, in the order of the log.
        self.count = count
        self._replies = replies

    def replies(self) -> list[KeptReply]:
        """Return the replies. Raises DecodeError."""
        reader = Reader(self._replies)
        return [KeptReply.read(reader) for _ in range(self.count)]

    def write(self, writer: BytesWriter) -> None:
        write_i32_be(writer, self.flags)
        write_i32_be(writer, self.window)
        write_i64_be(writer, self.generation)
        write_i64_be(writer, self.zxid)
        write_i64_be(writer, self.kept_generation)
        write_i32_be(writer, self.confirmed)
        write_i32_be(writer, self.count)
        write_buffer(writer, self._replies)

    @classmethod
    def read(cls, reader: Reader) -> ExactTerms:
        flags, window, generation = reader.int32(), reader.int32(), reader.int64()
        zxid, kept_generation, confirmed = reader.int64(), reader.int64(), reader.int32()
        count, replies = reader.int32(), reader.string()
        if flags & EXACT and window < 1:
            raise DecodeError(f"a window of {window} writes")
        return cls(window, generation, zxid, kept_generation, confirmed, count, replies, flags)

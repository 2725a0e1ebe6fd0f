"""What the log holds: requests, with everything stamped in that is not deterministic.

A batch is what one proposal carries: entries in order, and beside them the digest of the state
that its proposer had applied so far, so that a replay can be checked against it.

An entry names the version of the rules under which it is applied. Rules that change get a new
version, and the old ones stay until no log holds them any more.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i32_be, read_i64_be, write_i32_be, write_i64_be
from mypy_extensions import i32, i64, mypyc_attr, u8

from paddock.protocol.acl import read_identities
from paddock.protocol.jute import DecodeError, Reader
from paddock.state.access import Identities

# The rules of today, and those of entries that older versions have left in a log.
RULES: Final = 6
# No client had an identity by SASL, and ACLs could not name one.
NEVER_SASL: Final = 5
# No session was exact: what came of a write was told once, on its connection.
NEVER_EXACT: Final = 4
# What a quota had counted could be written so long that nobody could read it again: the server that
# had written it went on to count, and one that had restored it from a snapshot did not. And its
# numbers could have digits that are none in another version of Python.
LOOSE_QUOTAS: Final = 3
# Any member could end a session, and not only the one that owns it.
EXPIRED_BY_ANYBODY: Final = 3
# The proposer gave the id of a new session, and compared passwords: ATTACH has none.
SESSIONS_DECIDED_BEFORE: Final = 2
# The same, and without bounds on the ACLs of a request, and on the ephemeral nodes of a session.
UNBOUNDED: Final = 1

# How many entries the ACLs of one request may have.
ACL_ENTRIES_MAX: Final = 5_000

# Operations that no client can send; the server decides on them. They live beside the opcodes.
ATTACH: Final = -12
EXPIRE: Final = -13
REAP: Final = -14
# Those of servers that share a log; see `paddock.state.membership`.
JOIN: Final = -15
LEAVE: Final = -16
DEPOSE: Final = -17
RAISE_RULES: Final = -18
EPOCH: Final = -19
# A client's sync: takes no zxid, and answers with its body.
SYNC: Final = -20
FORGET: Final = -21
# The digest that its proposer had at an index: has no effect, and takes no zxid.
BALLOT: Final = -22
# What the clock of its proposer says: has no effect on nodes and sessions, and takes no zxid.
CLOCK: Final = -23

# What the server's configuration says, stamped so that a replay does not depend on it.
EXTENDED_TYPES: Final = 1
ENFORCE_QUOTA: Final = 2
# Clients may have certificates, so that ACLs may name them.
CERTIFICATES: Final = 4
# Clients may authenticate by SASL, so that ACLs may name them.
SASL: Final = 8

# What an entry begins with: see `Entry.write`.
_NUMBERS_BYTES: Final = 34

BATCH_BYTES_MAX: Final = 1 << 20
"""How much is gathered into one batch; a single large request may exceed it."""


class Refused(Exception):  # noqa: N818
    """The operation is refused with a result code, and has changed nothing that counts.

    It never leaves the state machine: `apply` undoes what was begun and answers with the code.
    """

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@mypyc_attr(acyclic=True)
class Entry:
    """One request in the log."""

    __slots__ = (
        "body",
        "flags",
        "generation",
        "identities",
        "operation",
        "rules",
        "session",
        "time_ms",
        "xid",
    )

    def __init__(
        self,
        operation: i32,
        body: bytes,
        session: i64 = 0,
        generation: i64 = 0,
        xid: i32 = 0,
        time_ms: i64 = 0,
        flags: u8 = 0,
        identities: Identities | None = None,
        rules: int = RULES,
    ) -> None:
        # Of any size, since it is compared with what other servers say. The numbers below are as
        # wide as in the log: compiled, they are the machine's own.
        self.rules = rules
        self.operation: i32 = operation
        # The request as the client sent it, behind its header.
        self.body = body
        # The session that asks; 0 for one that is to be opened.
        self.session: i64 = session
        # The session's generation when the request was received; apply refuses an older one.
        self.generation: i64 = generation
        self.xid: i32 = xid
        # Wall clock in ms. Invariant: never below that of the entry before it in the log.
        self.time_ms: i64 = time_ms
        self.flags: u8 = flags
        self.identities = identities

    def acl_entries_max(self) -> i64:
        """Return how many entries an ACL may have to be looked at."""
        return 1 << 31 if self.rules == UNBOUNDED else ACL_ENTRIES_MAX

    def size(self) -> i64:
        """Return the bytes it takes in a batch."""
        size: i64 = 42 + len(self.body)
        if self.identities is not None:
            size += len(self.identities.wire)
        return size

    def write(self, writer: BytesWriter) -> None:
        writer.append(self.rules)
        writer.append(self.flags)
        write_i32_be(writer, self.operation)
        write_i32_be(writer, self.xid)
        write_i64_be(writer, self.session)
        write_i64_be(writer, self.generation)
        write_i64_be(writer, self.time_ms)
        if self.identities is None:
            write_i32_be(writer, -1)
        else:
            write_i32_be(writer, len(self.identities.wire))
            writer.write(self.identities.wire)
        write_i32_be(writer, len(self.body))
        writer.write(self.body)

    @staticmethod
    def read(reader: Reader, known: dict[bytes, Identities]) -> Entry:
        """Read one entry. `known` spares decoding the same identities again and again."""
        data = reader.data
        start = reader.position
        if start + _NUMBERS_BYTES > len(data):
            raise DecodeError("truncated entry")
        reader.position = start + _NUMBERS_BYTES
        rules = data[start]
        if not UNBOUNDED <= rules <= RULES:
            raise DecodeError(f"entry under rules {rules}, which this version does not have")
        wire = reader.buffer()
        identities = None
        if wire is not None:
            identities = known.get(wire)
            if identities is None:
                identities = Identities(read_identities(Reader(wire)))
                known[wire] = identities
        # By its name and not as a class method's `cls`, which takes 0.5 µs longer in compiled code.
        return Entry(
            read_i32_be(data, start + 2),
            reader.string(),
            read_i64_be(data, start + 10),
            read_i64_be(data, start + 18),
            read_i32_be(data, start + 6),
            read_i64_be(data, start + 26),
            data[start + 1],
            identities,
            rules,
        )


class Batch:
    """Entries that are proposed together, and what their proposer knew."""

    def __init__(self, entries: list[Entry], digest_index: int, digest: int) -> None:
        self.entries = entries
        # The state after the batch `digest_index` had this digest.
        self.digest_index = digest_index
        self.digest = digest

    def encode(self) -> bytes:
        writer = BytesWriter()
        write_i64_be(writer, self.digest_index)
        write_i64_be(writer, self.digest)
        write_i32_be(writer, len(self.entries))
        for entry in self.entries:
            entry.write(writer)
        return writer.getvalue()

    @classmethod
    def decode(cls, payload: bytes, known: dict[bytes, Identities] | None = None) -> Batch:
        if known is None:
            known = {}
        reader = Reader(payload)
        digest_index = reader.int64()
        digest = reader.int64()
        count = reader.int32()
        if count < 0:
            raise DecodeError("a batch of a negative number of entries")
        return cls([Entry.read(reader, known) for _ in range(count)], digest_index, digest)

"""The roster: the servers that share a log, and which of their batches count.

A server proposes batches (boot, number) with the numbers 0, 1, 2 and so on; a boot is one
incarnation of it. The log orders them, not always by number, and may have one twice, late.
`Roster.take` decides on each record, by what came before it in the log alone:

* A boot that is not a member: void, unless it is number 0 and its only entry is a JOIN.
* A number below the next of its member: void. The next one: released, together with the held ones
  right behind it. Less than `HELD_MAX` ahead: held. Further ahead: void.
* A boot that has ended is void. It is remembered for `JOIN_AGE_MAX` records; after that its JOIN,
  which names the index that it had applied, is too old.

What was released is applied as a whole before the next record is taken. Only then are the digest
and, if nothing is held, a snapshot taken.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i64_be, write_i32_be, write_i64_be

from paddock.protocol.jute import DecodeError, Reader, write_buffer
from paddock.state.entry import JOIN, Batch
from paddock.state.roster_bodies import BallotRequest, JoinRequest, read_text

HELD_MAX: Final = 64
"""A number this far ahead of the next is void."""
JOIN_AGE_MAX: Final = 50_000
"""A JOIN that names an older index is void; boots that have ended are remembered as long."""
ADDRESSES_MAX: Final = 256
"""How many addresses are remembered, beside those of members."""

# What may become of the roster.
JOINED: Final = 1
LEFT: Final = 2
DEPOSED: Final = 3
# Of a JOIN; whatever else is refused is told to its submitter alone.
REFUSED: Final = 4
# Of a JOIN as well, but another one of the same server may be accepted: it came too late.
TOO_LATE: Final = 9
RULES_RAISED: Final = 5
EPOCH_BEGUN: Final = 6
FORGOTTEN: Final = 7
# Nothing became of it: a member tells the digest that it had, or what its clock says.
VOTED: Final = 8
CLOCK_STATED: Final = 10


class RosterChange:
    """What an entry made of the roster."""

    __slots__ = ("ballot", "boot", "heir", "kind", "number", "reason", "successor", "time_ms")

    def __init__(
        self,
        kind: int,
        boot: bytes,
        number: int,
        heir: int = 0,
        reason: str = "",
        time_ms: int = 0,
        ballot: BallotRequest | None = None,
        successor: bytes = b"",
    ) -> None:
        self.kind = kind
        # The member that it is about; 0 as number if it never became one.
        self.boot = boot
        self.number = number
        # The join number of the member that owns more sessions now; 0 if none does.
        self.heir = heir
        # Why, in words for an operator.
        self.reason = reason
        # What the clock of the member said, for the others to compare; 0 if it did not say.
        self.time_ms = time_ms
        # What the member has told; None if it is not that.
        self.ballot = ballot
        # The boot that replaces this one, of the same server; empty if there is none.
        self.successor = successor


class Member:
    """One server, from its JOIN to its end."""

    __slots__ = (
        "address",
        "boot",
        "held",
        "lag",
        "last_index",
        "next",
        "number",
        "rules_max",
        "settings",
        "time_ms",
        "version",
    )

    def __init__(
        self,
        number: int,
        boot: bytes,
        next: int,
        last_index: int,
        rules_max: int,
        address: str,
        settings: str,
        version: str,
        lag: int,
        time_ms: int,
    ) -> None:
        # The join number: 1 for the first that ever joined, and never given twice.
        self.number = number
        self.boot = boot
        # The number of the next batch to be applied. Invariant: at least 1, JOIN being 0.
        self.next = next
        # The index of its last batch that was released or held.
        self.last_index = last_index
        # Batches that came before their turn, and their indices. Invariant: their numbers are above
        # `next`, and below `next + HELD_MAX`.
        self.held: dict[int, tuple[bytes, int]] = {}
        self.rules_max = rules_max
        self.address = address
        self.settings = settings
        self.version = version
        # How many records its state was behind when its last batch arrived.
        self.lag = lag
        # What its clock said last, by itself and not raised to that of others; 0 if it never did.
        self.time_ms = time_ms


class Roster:
    """All members, and the last record that was taken."""

    def __init__(self, service: bytes) -> None:
        # The id of the service, by which a log is known to be the same one.
        self.service = service
        # By boot, in the order of their join numbers.
        self.members: dict[bytes, Member] = {}
        self.last_join = 0
        # The rules that entries are written under; 0 before the first JOIN.
        self.rules = 0
        # The last record that was taken, void or not.
        self.index = 0
        self.revision = 0
        self.last_boot = b""
        self.last_number = 0
        # Boots that are over, with the index of their end, in that order.
        self.ended: dict[bytes, int] = {}
        # Every address that a member ever had, until it is forgotten.
        self.addresses: list[str] = []
        # How many batches are held. Invariant: the sum over all members.
        self.held_count = 0

    def take(
        self, index: int, revision: int, boot: bytes, number: int, payload: bytes
    ) -> list[tuple[int, bytes, int]]:
        """Take the next record; return what is to be applied now, as (number, payload, index).

        The index is where it stands in the log: an earlier one than this record's if it was held.
        """
        assert index > self.index, "records are taken in the order of the log"
        self.index = index
        self.revision = revision
        self.last_boot = boot
        self.last_number = number
        if self.ended:
            self._forget_ended()
        member = self.members.get(boot)
        if member is None:
            if number == 0 and boot not in self.ended and _is_join(payload):
                return [(number, payload, index)]
            return []
        ahead = number - member.next
        if ahead < 0 or ahead >= HELD_MAX or number in member.held:
            return []
        member.last_index = index
        if len(payload) >= 8:
            # What a batch begins with: the index that its proposer had applied.
            member.lag = index - min(max(read_i64_be(payload, 0), 0), index)
        if ahead > 0:
            member.held[number] = payload, index
            self.held_count += 1
            return []
        released = [(number, payload, index)]
        number += 1
        while number in member.held:
            released.append((number, *member.held.pop(number)))
            self.held_count -= 1
            number += 1
        member.next = number
        return released

    def duty(self) -> Member | None:
        """Return the member with the lowest join number, which does what one server has to."""
        for member in self.members.values():
            return member
        return None

    def numbered(self, number: int) -> Member | None:
        """Return the member with a join number."""
        for member in self.members.values():
            if member.number == number:
                return member
        return None

    def admit(self, boot: bytes, request: JoinRequest) -> Member:
        """Add the proposer of the record that was taken last."""
        self.last_join += 1
        member = Member(
            self.last_join,
            boot,
            1,
            self.index,
            request.rules_max,
            request.address,
            request.settings,
            request.version,
            self.index - request.applied,
            request.time_ms,
        )
        self.members[boot] = member
        if not self.rules:
            self.rules = request.rules_max
        if request.address and request.address not in self.addresses:
            self.addresses.append(request.address)
            self._forget_addresses()
        return member

    def remove(self, boot: bytes) -> Member:
        """Remove a member with what it holds; its boot has ended."""
        member = self.members.pop(boot)
        self.held_count -= len(member.held)
        member.held = {}
        self.ended[boot] = self.index
        return member

    def has_address(self, address: str) -> bool:
        """Return whether a member has this address."""
        return any(member.address == address for member in self.members.values())

    def write_digest(self, writer: BytesWriter) -> None:
        """Write what two servers at the same record must agree on."""
        write_i64_be(writer, self.index)
        write_i64_be(writer, self.last_join)
        write_i32_be(writer, self.rules)
        for member in self.members.values():
            write_i64_be(writer, member.number)
            write_buffer(writer, member.boot)
            write_i64_be(writer, member.next)
            write_i64_be(writer, member.last_index)
            write_i32_be(writer, member.rules_max)

    def write(self, writer: BytesWriter) -> None:
        """Write everything, for a snapshot."""
        assert not self.held_count, "what is held is in no snapshot"
        write_buffer(writer, self.service)
        write_i64_be(writer, self.last_join)
        write_i32_be(writer, self.rules)
        write_i64_be(writer, self.index)
        write_i64_be(writer, self.revision)
        write_buffer(writer, self.last_boot)
        write_i64_be(writer, self.last_number)
        write_i32_be(writer, len(self.members))
        for member in self.members.values():
            write_i64_be(writer, member.number)
            write_buffer(writer, member.boot)
            write_i64_be(writer, member.next)
            write_i64_be(writer, member.last_index)
            write_i32_be(writer, member.rules_max)
            write_buffer(writer, member.address.encode())
            write_buffer(writer, member.settings.encode())
            write_buffer(writer, member.version.encode())
            write_i64_be(writer, member.lag)
            write_i64_be(writer, member.time_ms)
        write_i32_be(writer, len(self.ended))
        for boot, index in self.ended.items():
            write_buffer(writer, boot)
            write_i64_be(writer, index)
        write_i32_be(writer, len(self.addresses))
        for address in self.addresses:
            write_buffer(writer, address.encode())

    @classmethod
    def read(cls, reader: Reader) -> Roster:
        """Read what `write` has written. Raises DecodeError."""
        roster = cls(reader.string())
        roster.last_join = reader.int64()
        roster.rules = reader.int32()
        roster.index = reader.int64()
        roster.revision = reader.int64()
        roster.last_boot = reader.string()
        roster.last_number = reader.int64()
        for _ in range(reader.int32()):
            number, boot = reader.int64(), reader.string()
            next, last_index, rules_max = reader.int64(), reader.int64(), reader.int32()
            address, settings, version = read_text(reader), read_text(reader), read_text(reader)
            lag, time_ms = reader.int64(), reader.int64()
            roster.members[boot] = Member(
                number, boot, next, last_index, rules_max, address, settings, version, lag, time_ms
            )
        for _ in range(reader.int32()):
            boot = reader.string()
            roster.ended[boot] = reader.int64()
        for _ in range(reader.int32()):
            roster.addresses.append(read_text(reader))
        return roster

    def _forget_ended(self) -> None:
        """Forget the boots whose JOIN is too old by now: it named an index before their end."""
        while self.ended:
            boot = next(iter(self.ended))
            if self.index - self.ended[boot] <= JOIN_AGE_MAX:
                return
            del self.ended[boot]

    def _forget_addresses(self) -> None:
        """Forget the eldest addresses that no member has, if there are too many."""
        spare = len(self.addresses) - ADDRESSES_MAX
        for address in list(self.addresses):
            if spare <= 0:
                return
            if not self.has_address(address):
                self.addresses.remove(address)
                spare -= 1


def _is_join(payload: bytes) -> bool:
    try:
        entries = Batch.decode(payload).entries
    except DecodeError:
        return False
    return len(entries) == 1 and entries[0].operation == JOIN

"""What entries make of the roster: JOIN, LEAVE, DEPOSE, RAISE_RULES, EPOCH, FORGET, BALLOT, CLOCK.

An entry is carried out or refused as a whole; a refused one has no effect, and its answer says
why in words. EPOCH moves the zxid to the next epoch. A JOIN with a new address and a FORGET change
/zookeeper/config, and so take a zxid; the others take none.

The node is changed as upstream's reconfig does it: its data names the zxid as the version of the
list, its stat has the zxid and the version -1, and data watches on it fire. With a zxid of its own,
a client that was away at that moment finds out by `setWatches`. A JOIN with an address that is
listed already, a LEAVE and a DEPOSE change nothing: a client that has last seen one server alone
would never find the others again.

The sessions of a member that ends get another owner at once: duty after LEAVE, the proposer of
DEPOSE, the joiner that replaces it. With no member left it is 0, until the next JOIN.
"""

from __future__ import annotations

from typing import Final

from paddock.errors import BAD_ARGUMENTS, MARSHALLING_ERROR, OK
from paddock.protocol.jute import DecodeError, Reader
from paddock.state.entry import (
    BALLOT,
    CLOCK,
    DEPOSE,
    EPOCH,
    FORGET,
    JOIN,
    LEAVE,
    RAISE_RULES,
    Entry,
)
from paddock.state.epoch import next_epoch
from paddock.state.roster import (
    CLOCK_STATED,
    DEPOSED,
    EPOCH_BEGUN,
    FORGOTTEN,
    JOIN_AGE_MAX,
    JOINED,
    LEFT,
    REFUSED,
    RULES_RAISED,
    TOO_LATE,
    VOTED,
    Roster,
    RosterChange,
)
from paddock.state.roster_bodies import BallotRequest, DeposeRequest, JoinRequest
from paddock.state.sessions import Sessions

TEXT_LENGTH_MAX: Final = 4_096
"""How long each of the texts may be that a member joins with."""


class NotAllowed(Exception):  # noqa: N818
    """An entry is refused, with the reason. It never leaves this module."""

    def __init__(self, reason: str, kind: int = REFUSED) -> None:
        super().__init__(reason)
        # What is told of it if it is a JOIN.
        self.kind = kind


class Membership:
    """Applies the entries of one batch after another to a roster, and to the owners of sessions."""

    def __init__(self, roster: Roster, sessions: Sessions) -> None:
        self.roster = roster
        self.sessions = sessions
        # What happened, until it is taken.
        self.changes: list[RosterChange] = []
        # Whether the last entry has changed the addresses.
        self.has_new_addresses = False

    def apply(self, entry: Entry, boot: bytes, zxid: int) -> tuple[int, bytes, int]:
        """Apply an entry that `boot` has proposed; return the error, the reason and the zxid."""
        operation = entry.operation
        error = BAD_ARGUMENTS
        kind = REFUSED
        self.has_new_addresses = False
        try:
            if operation == JOIN:
                self._join(entry, boot)
            elif operation == LEAVE:
                self._leave(boot)
            elif operation == DEPOSE:
                self._depose(DeposeRequest.decode(entry.body), boot)
            elif operation == RAISE_RULES:
                self._raise_rules(Reader(entry.body).int32(), boot)
            elif operation == EPOCH:
                zxid = self._begin_epoch(boot, zxid)
            elif operation == BALLOT:
                self._vote(BallotRequest.decode(entry.body), boot)
            elif operation == CLOCK:
                self._state_clock(Reader(entry.body).int64(), boot)
            else:
                assert operation == FORGET
                self._forget(Reader(entry.body).string().decode("utf-8", "replace"), boot)
            return OK, b"", zxid
        except NotAllowed as refusal:
            reason = str(refusal)
            kind = refusal.kind
        except DecodeError as problem:
            error = MARSHALLING_ERROR
            reason = str(problem)
        if operation == JOIN:
            self.changes.append(RosterChange(kind, boot, 0, 0, reason))
        return error, reason.encode(), zxid

    def _join(self, entry: Entry, boot: bytes) -> None:
        roster = self.roster
        if boot in roster.members or boot in roster.ended:
            raise NotAllowed("this boot has joined before")
        if roster.last_boot != boot or roster.last_number != 0:
            raise NotAllowed("it is not the first batch of its boot")
        request = JoinRequest.decode(entry.body)
        if roster.rules and request.rules_max < roster.rules:
            raise NotAllowed(
                f"it knows the rules up to {request.rules_max}, and the service has"
                f" {roster.rules}: start a newer version"
            )
        if roster.rules and entry.rules > roster.rules:
            # Members that do not know these rules could not read it, and so must not count it.
            raise NotAllowed(
                f"it is under rules {entry.rules}, and the service has {roster.rules}: start it"
                " again"
            )
        if not 0 <= request.applied < roster.index:
            raise NotAllowed(
                f"it names index {request.applied}, which was not there before it: start it again"
            )
        if roster.index - request.applied > JOIN_AGE_MAX:
            raise NotAllowed(
                f"it has applied the log up to {request.applied}, and is committed at"
                f" {roster.index}: too late",
                TOO_LATE,
            )
        if max(len(request.address), len(request.settings), len(request.version)) > TEXT_LENGTH_MAX:
            raise NotAllowed(
                f"it has a text of more than {TEXT_LENGTH_MAX} characters: start it with a shorter"
                " address"
            )
        former = roster.members.get(request.replaces)
        if former is not None:
            roster.remove(former.boot)
        addresses = list(roster.addresses)
        member = roster.admit(boot, request)
        self.has_new_addresses = roster.addresses != addresses
        heir = 0
        if former is not None:
            self.sessions.hand_over(former.number, member.number)
            self.changes.append(
                RosterChange(
                    LEFT,
                    former.boot,
                    former.number,
                    member.number,
                    f"replaced by {member.number}",
                    successor=boot,
                )
            )
        if self.sessions.hand_over(0, member.number):
            heir = member.number
        self.changes.append(
            RosterChange(JOINED, boot, member.number, heir, time_ms=request.time_ms)
        )

    def _leave(self, boot: bytes) -> None:
        member = self.roster.remove(boot)
        duty = self.roster.duty()
        heir = 0 if duty is None else duty.number
        self.sessions.hand_over(member.number, heir)
        self.changes.append(RosterChange(LEFT, boot, member.number, heir))

    def _depose(self, request: DeposeRequest, boot: bytes) -> None:
        member = self.roster.members.get(request.boot)
        if member is None:
            raise NotAllowed("there is no such member")
        if request.boot == boot:
            raise NotAllowed("no member deposes itself")
        if member.last_index != request.last_index:
            raise NotAllowed(f"its last batch is {member.last_index}, and not {request.last_index}")
        heir = self.roster.members[boot].number
        self.roster.remove(member.boot)
        self.sessions.hand_over(member.number, heir)
        self.changes.append(
            RosterChange(
                DEPOSED,
                member.boot,
                member.number,
                heir,
                f"by {heir}: nothing was heard of it after batch {member.last_index}",
            )
        )

    def _raise_rules(self, rules: int, boot: bytes) -> None:
        roster = self.roster
        if rules <= roster.rules:
            raise NotAllowed(f"the service has rules {roster.rules} already")
        for member in roster.members.values():
            if member.rules_max < rules:
                raise NotAllowed(
                    f"member {member.number} ({member.address or member.boot.hex()}, version"
                    f" {member.version}) knows the rules up to {member.rules_max} only"
                )
        roster.rules = rules
        number = roster.members[boot].number
        self.changes.append(RosterChange(RULES_RAISED, boot, number, 0, f"rules {rules}"))

    def _begin_epoch(self, boot: bytes, zxid: int) -> int:
        if len(self.roster.members) > 1:
            raise NotAllowed("there are other members")
        begun = next_epoch(zxid, self.sessions.last_id)
        if begun is None:
            raise NotAllowed("the zxids, or the ids of sessions, are at their end")
        zxid, self.sessions.last_id = begun
        number = self.roster.members[boot].number
        self.changes.append(RosterChange(EPOCH_BEGUN, boot, number, 0, f"zxid 0x{zxid:x}"))
        return zxid

    def _vote(self, ballot: BallotRequest, boot: bytes) -> None:
        number = self.roster.members[boot].number
        self.changes.append(RosterChange(VOTED, boot, number, ballot=ballot))

    def _state_clock(self, time_ms: int, boot: bytes) -> None:
        member = self.roster.members[boot]
        member.time_ms = time_ms
        self.changes.append(RosterChange(CLOCK_STATED, boot, member.number, time_ms=time_ms))

    def _forget(self, address: str, boot: bytes) -> None:
        roster = self.roster
        if address not in roster.addresses:
            raise NotAllowed("no member ever had this address")
        if roster.has_address(address):
            raise NotAllowed("a member has this address: stop it first")
        roster.addresses.remove(address)
        self.has_new_addresses = True
        number = roster.members[boot].number
        self.changes.append(RosterChange(FORGOTTEN, boot, number, 0, address))


def config_data(addresses: list[str], version: int) -> bytes:
    """Return the data of /zookeeper/config: all servers, in upstream's format.

    There are no links between servers, so their ports for those mean nothing. They differ, since
    Java's clients refuse the whole list otherwise.
    """
    lines = []
    for number, address in enumerate(addresses, 1):
        host = address.rpartition(":")[0]
        lines.append(f"server.{number}={host}:0:1:participant;{address}\n")
    return f"{''.join(lines)}version={version:x}".encode() if lines else b""

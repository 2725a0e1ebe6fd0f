"""A state that servers share, driven record by record."""

from __future__ import annotations

from paddock.errors import OK
from paddock.protocol import opcodes
from paddock.state.entry import ATTACH, JOIN, RULES, Batch, Entry
from paddock.state.machine import Outcome, StateMachine, attach_body, session_body
from paddock.state.roster import Member, Roster, RosterChange
from paddock.state.roster_bodies import JoinRequest
from tests.unit.state.driver import PASSWORD

SERVICE = b"service!"
A, B, C = b"boot-aaa", b"boot-bbb", b"boot-ccc"


def join_entry(
    applied: int = 0,
    *,
    rules_max: int = RULES,
    address: str = "",
    replaces: bytes = b"",
    rules: int = RULES,
    time_ms: int = 0,
) -> Entry:
    request = JoinRequest(applied, rules_max, address, "tickTime=2000", "1.0", replaces, time_ms)
    return Entry(JOIN, request.encode(), time_ms=time_ms, rules=rules)


def payload_of(*entries: Entry, digest_index: int = 0) -> bytes:
    return Batch(list(entries), digest_index, 0).encode()


class SharedState:
    """A machine with a roster, and a log of which each record is applied at once."""

    def __init__(self, machine: StateMachine | None = None) -> None:
        self.machine = StateMachine() if machine is None else machine
        if self.machine.roster is None:
            self.machine.share(SERVICE)
        # The number that each boot proposes next.
        self.next: dict[bytes, int] = {}

    @property
    def roster(self) -> Roster:
        assert self.machine.roster is not None
        return self.machine.roster

    def commit(self, boot: bytes, *entries: Entry, number: int | None = None) -> list[Outcome]:
        """Commit a batch, by default under the next number of its boot; return all outcomes."""
        if number is None:
            number = self.next.get(boot, 0)
            self.next[boot] = number + 1
        index = self.roster.index + 1
        payload = payload_of(*entries, digest_index=index - 1)
        outcomes = []
        for _, released, _ in self.roster.take(index, 2 * index, boot, number, payload):
            self.machine.begin_batch(boot)
            outcomes += [self.machine.apply(entry) for entry in Batch.decode(released).entries]
        return outcomes

    def join(self, boot: bytes, address: str = "", replaces: bytes = b"") -> Member:
        """Have a server join, and forget what is told of it."""
        entry = join_entry(self.roster.index, address=address, replaces=replaces)
        (outcome,) = self.commit(boot, entry)
        assert outcome.error == OK, outcome.body
        self.changes()
        return self.roster.members[boot]

    def open(self, boot: bytes) -> int:
        """Open a session by way of a server; return its id."""
        entry = Entry(opcodes.CREATE_SESSION, session_body(30_000, PASSWORD))
        (outcome,) = self.commit(boot, entry)
        assert outcome.session is not None
        return outcome.session.session

    def attach(self, boot: bytes, session: int) -> Outcome:
        entry = Entry(ATTACH, attach_body(20_000, PASSWORD, 0), session)
        (outcome,) = self.commit(boot, entry)
        return outcome

    def owner(self, session: int) -> int:
        return self.machine.sessions.by_id[session].owner

    def changes(self) -> list[RosterChange]:
        """Take what became of the roster."""
        found = []
        while (change := self.machine.take_roster_change()) is not None:
            found.append(change)
        return found

"""Servers that share a log: what they may propose, in which order it is committed, and a follower.

A move names a server by its slot, and a batch by its place among those that wait, so that any part
of a list of moves makes sense. `write_log` plays the moves and returns the log that comes of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from hypothesis import strategies as st

from paddock.errors import OK, SESSION_MOVED
from paddock.log.interface import Record
from paddock.protocol import opcodes
from paddock.protocol.requests import CreateRequest, SetDataRequest
from paddock.state.entry import (
    ATTACH,
    CLOCK,
    DEPOSE,
    EPOCH,
    EXPIRE,
    FORGET,
    JOIN,
    LEAVE,
    RAISE_RULES,
    RULES,
    SYNC,
    Batch,
    Entry,
)
from paddock.state.machine import StateMachine, attach_body, session_body
from paddock.state.roster import HELD_MAX
from paddock.state.roster_bodies import (
    DeposeRequest,
    JoinRequest,
    clock_body,
    forget_body,
    rules_body,
)
from tests.property.spoiled import mostly
from tests.unit.state.driver import OPEN, PASSWORD, encode

SERVICE = b"service!"
SLOTS = 3


@dataclass(frozen=True)
class Start:
    """Begin a new boot on a server, with a JOIN."""

    slot: int
    replaces: bool
    rules_max: int
    # How far its state is behind the log.
    behind: int


@dataclass(frozen=True)
class Propose:
    """Seal a batch with some entries, each drawn as a kind and a number to choose with."""

    slot: int
    entries: list[tuple[str, int]]
    # Numbers left out before this one.
    skipped: int


@dataclass(frozen=True)
class Commit:
    """Commit a batch of those that wait: 0 is the eldest."""

    slot: int
    place: int


@dataclass(frozen=True)
class Repeat:
    """Commit again what was committed, at some place counted from the end."""

    place: int


@dataclass(frozen=True)
class Junk:
    """Commit bytes under the number 0 of a boot that never joined."""

    payload: bytes


@dataclass(frozen=True)
class Pass:
    """Let the index grow, by records that nobody here knows of."""

    records: int


Move: TypeAlias = Start | Propose | Commit | Repeat | Junk | Pass

_slots = st.integers(0, SLOTS - 1)
_kinds = st.sampled_from(
    [
        *(["open"] * 3 + ["attach"] * 3 + ["set"] * 3 + ["ephemeral"] * 2 + ["close", "expire"]),
        *(["depose"] * 2 + ["stale depose", "leave", "rules", "epoch", "forget", "sync", "join"]),
        "clock",
    ]
)
_entries = st.lists(st.tuples(_kinds, st.integers(0, 9)), max_size=4)
_proposals = st.builds(Propose, _slots, _entries, mostly(st.just(0), st.integers(1, HELD_MAX), 15))
_commits = st.builds(Commit, _slots, mostly(st.just(0), st.integers(1, 4), 2))
_move = st.sampled_from(
    [
        st.builds(
            Start,
            _slots,
            st.booleans(),
            mostly(st.just(RULES), st.sampled_from([RULES - 1, RULES + 1])),
            mostly(st.integers(0, 3), st.sampled_from([-1, 49_999, 50_000, 50_001]), 8),
        ),
        *([_proposals] * 4),
        *([_commits] * 6),
        st.builds(Repeat, st.integers(0, 30)),
        st.builds(Junk, st.binary(max_size=30)) | st.builds(Pass, st.sampled_from([1, 49_990])),
    ]
).flatmap(lambda strategy: strategy)
# A list of lists, since one list alone would be short.
moves = st.lists(st.lists(_move, min_size=8, max_size=25), min_size=1, max_size=5).map(
    lambda parts: [
        *(one for slot in range(SLOTS) for one in (Start(slot, False, RULES, 0), Commit(slot, 0))),
        *(one for part in parts for one in part),
    ]
)


class Follower:
    """A state on its way along the log, and what it has seen there."""

    def __init__(self, machine: StateMachine | None = None) -> None:
        if machine is None:
            machine = StateMachine()
            machine.share(SERVICE)
        self.machine = machine
        assert machine.roster is not None
        self.roster = machine.roster
        # What happened: a batch of a boot counted (0 and its number), or the roster changed (the
        # kind and 0).
        self.events: list[tuple[bytes, int, int]] = []

    def follow(self, record: Record) -> None:
        assert record.server is not None
        boot = record.server
        released = self.roster.take(
            record.index, record.revision, boot, record.number, record.payload
        )
        for number, payload, _ in released:
            entries = Batch.decode(payload).entries
            self.machine.begin_batch(boot)
            for entry in entries:
                was_member = boot in self.roster.members
                outcome = self.machine.apply(entry)
                if not was_member and not (entry.operation == JOIN and outcome.error == OK):
                    assert outcome.error != OK
                    assert entry.operation == JOIN or outcome.error == SESSION_MOVED
                    assert not outcome.changes
                    assert outcome.session is None
                while (change := self.machine.take_roster_change()) is not None:
                    self.events.append((change.boot, change.kind, 0))
            if boot in self.roster.members:
                self.events.append((boot, 0, number))
        self.check()

    def check(self) -> None:
        """See that the state is one that may be."""
        roster = self.roster
        members = list(roster.members.values())
        numbers = [member.number for member in members]
        assert numbers == sorted(set(numbers))
        assert not roster.members.keys() & roster.ended.keys()
        for member in members:
            assert all(0 < number - member.next < HELD_MAX for number in member.held)
            assert member.lag >= 0
            assert member.last_index <= roster.index
        owners = {session.owner for session in self.machine.sessions.by_id.values()}
        assert owners <= (set(numbers) or {0})


@dataclass
class _Server:
    boot: bytes
    next: int = 0
    waiting: list[tuple[int, bytes]] = field(default_factory=list)


def write_log(moves: list[Move]) -> list[Record]:
    """Play the moves, with a follower that says what makes sense to propose."""
    follower = Follower()
    machine = follower.machine
    log: list[Record] = []
    servers: dict[int, _Server] = {}
    time_ms = 1_000
    boots = 0
    index = 0
    for at, move in enumerate(moves):
        committed: tuple[bytes, int, bytes] | None = None
        time_ms += 1
        match move:
            case Start(slot, replaces, rules_max, behind):
                boots += 1
                former = servers.get(slot)
                server = servers[slot] = _Server(b"boot%04d" % boots)
                request = JoinRequest(
                    index - behind,
                    rules_max,
                    f"host{slot}:2181",
                    "tickTime=2000",
                    "1.0",
                    former.boot if former is not None and replaces else b"",
                    time_ms,
                )
                entry = Entry(JOIN, request.encode(), time_ms=time_ms, rules=min(rules_max, RULES))
                server.waiting.append((0, Batch([entry], index, 0).encode()))
                server.next = 1
            case Propose(slot, drawn, skipped) if slot in servers:
                server = servers[slot]
                # Clocks differ: not all stamps go up.
                stamp = time_ms - slot
                entries = [_entry(kind, number, machine, stamp) for kind, number in drawn]
                server.next += skipped
                digest_index = max(0, index - slot)
                payload = Batch(entries, digest_index, 0).encode()
                server.waiting.append((server.next, payload))
                server.next += 1
            case Commit(slot, place) if slot in servers and servers[slot].waiting:
                server = servers[slot]
                number, payload = server.waiting.pop(min(place, len(server.waiting) - 1))
                committed = server.boot, number, payload
            case Repeat(place) if place < len(log):
                again = log[-1 - place]
                assert again.server is not None
                committed = again.server, again.number, again.payload
            case Junk(payload):
                committed = b"junk%04d" % at, 0, payload
            case Pass(records):
                index += records
            case _:
                pass
        if committed is not None:
            index += 1
            boot, number, payload = committed
            record = Record(index, payload, boot, number, 3 * index)
            log.append(record)
            follower.follow(record)
    return log


def _entry(kind: str, number: int, machine: StateMachine, time_ms: int) -> Entry:
    """Return an entry that makes sense now, though maybe not when it is applied."""
    roster = machine.roster
    assert roster is not None
    sessions = list(machine.sessions.by_id.values())
    members = list(roster.members.values())
    if kind in ("attach", "set", "ephemeral", "close", "expire", "sync") and sessions:
        session = sessions[number % len(sessions)]
        operation, body = {
            "attach": (ATTACH, attach_body(1_000 + number, PASSWORD, 0)),
            "set": (opcodes.SET_DATA, encode(SetDataRequest(b"/", b"%d" % number, -1))),
            "ephemeral": (opcodes.CREATE, encode(CreateRequest(b"/e%d" % number, b"", OPEN, 1))),
            "close": (opcodes.CLOSE_SESSION, b""),
            "expire": (EXPIRE, b""),
            "sync": (SYNC, b"/path"),
        }[kind]
        return Entry(operation, body, session.id, session.generation, time_ms & 0xFFFF, time_ms)
    if kind in ("depose", "stale depose") and members:
        member = members[number % len(members)]
        request = DeposeRequest(member.boot, member.last_index - (kind == "stale depose"))
        return Entry(DEPOSE, request.encode(), time_ms=time_ms)
    operation, body = {
        "leave": (LEAVE, b""),
        "rules": (RAISE_RULES, rules_body(RULES + 1)),
        "epoch": (EPOCH, b""),
        "clock": (CLOCK, clock_body(time_ms)),
        "forget": (FORGET, forget_body(f"host{number % SLOTS}:2181")),
        "join": (JOIN, JoinRequest(0, RULES, "", "", "", b"", 0).encode()),
    }.get(kind, (opcodes.CREATE_SESSION, session_body(5_000 + number, PASSWORD, number % 3 > 0)))
    return Entry(operation, body, time_ms=time_ms)

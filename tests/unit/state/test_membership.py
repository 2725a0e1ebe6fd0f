"""What entries make of the roster, and of the owners of sessions."""

from __future__ import annotations

import pytest

from paddock.errors import (
    BAD_ARGUMENTS,
    MARSHALLING_ERROR,
    OK,
    SESSION_EXPIRED,
    SESSION_MOVED,
    SYSTEM_ERROR,
    UNIMPLEMENTED,
)
from paddock.protocol import opcodes
from paddock.protocol.requests import CreateRequest, PathRequest
from paddock.state.entry import (
    ATTACH,
    BALLOT,
    CLOCK,
    DEPOSE,
    EPOCH,
    EXPIRE,
    EXPIRED_BY_ANYBODY,
    FORGET,
    JOIN,
    LEAVE,
    RAISE_RULES,
    RULES,
    SYNC,
    Entry,
)
from paddock.state.machine import StateMachine, attach_body, session_body
from paddock.state.membership import TEXT_LENGTH_MAX
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
    RosterChange,
)
from paddock.state.roster_bodies import (
    BallotRequest,
    DeposeRequest,
    clock_body,
    forget_body,
    rules_body,
)
from tests.property.dump import dump
from tests.unit.state.driver import OPEN, PASSWORD, World, encode, sentence
from tests.unit.state.shared_state import A, B, C, SharedState, join_entry

OPENING = Entry(opcodes.CREATE_SESSION, session_body(30_000, PASSWORD))


@pytest.fixture
def state() -> SharedState:
    """Return a state with two members."""
    state = SharedState()
    state.join(A, "a:2181")
    state.join(B, "b:2181")
    return state


def told(change: RosterChange) -> tuple[int, bytes, int, int]:
    return change.kind, change.boot, change.number, change.heir


def depose(state: SharedState, boot: bytes) -> Entry:
    return Entry(DEPOSE, DeposeRequest(boot, state.roster.members[boot].last_index).encode())


class TestJoin:
    def test_the_first_one_sets_the_rules(self) -> None:
        state = SharedState()
        (outcome,) = state.commit(A, join_entry(rules_max=RULES - 1, rules=RULES - 1))
        assert (outcome.error, outcome.zxid, outcome.body) == (OK, 0, b"")
        assert [told(change) for change in state.changes()] == [(JOINED, A, 1, 0)]
        assert state.roster.rules == RULES - 1
        state.commit(B, join_entry(1, rules_max=RULES + 4, rules=RULES - 1))
        assert state.roster.rules == RULES - 1
        assert state.roster.members[B].rules_max == RULES + 4

    def test_a_member_has_what_it_joined_with(self, state: SharedState) -> None:
        member = state.join(C, "c:2181")
        assert (member.number, member.boot, member.next, member.rules_max) == (3, C, 1, RULES)
        assert (member.address, member.settings, member.version) == (
            *("c:2181", "tickTime=2000"),
            "1.0",
        )
        assert member.last_index == state.roster.index == 3
        assert member.lag == 1

    @pytest.mark.parametrize(
        ("entry", "reason"),
        [
            (join_entry(1, rules_max=RULES - 1), "start a newer version"),
            (join_entry(JOIN_AGE_MAX - 1), "too late"),
            (join_entry(2 * JOIN_AGE_MAX), "was not there"),
            (join_entry(-1), "was not there"),
            (join_entry(2 * JOIN_AGE_MAX - 1, address="x" * (TEXT_LENGTH_MAX + 1)), "a text of"),
        ],
    )
    def test_it_is_refused_with_a_reason_and_without_effect(
        self, state: SharedState, entry: Entry, reason: str
    ) -> None:
        state.roster.index = 2 * JOIN_AGE_MAX - 1
        entry.time_ms = 1 << 40
        (outcome,) = state.commit(C, entry)
        assert outcome.error == BAD_ARGUMENTS
        assert reason in outcome.body.decode()
        (change,) = state.changes()
        assert told(change) == (TOO_LATE if reason == "too late" else REFUSED, C, 0, 0)
        assert reason in change.reason
        assert list(state.roster.members) == [A, B]
        assert (state.roster.ended, state.roster.last_join, state.machine.time_ms) == ({}, 2, 0)

    def test_it_may_be_as_old_as_ended_boots_are_remembered(self, state: SharedState) -> None:
        state.roster.index = 2 * JOIN_AGE_MAX - 1
        assert state.commit(C, join_entry(JOIN_AGE_MAX))[0].error == OK

    def test_rules_that_other_members_may_not_know_do_not_count(self) -> None:
        state = SharedState()
        state.commit(A, join_entry(rules_max=RULES - 1, rules=RULES - 1))
        (outcome,) = state.commit(B, join_entry(1))
        assert (outcome.error, list(state.roster.members)) == (BAD_ARGUMENTS, [A])

    def test_bytes_that_are_none_are_refused(self, state: SharedState) -> None:
        (outcome,) = state.commit(C, Entry(JOIN, b"\0"))
        assert outcome.error == MARSHALLING_ERROR
        assert [told(change) for change in state.changes()] == [(REFUSED, C, 0, 0)]

    def test_a_member_cannot_join_again(self, state: SharedState) -> None:
        session = state.open(A)
        outcomes = state.commit(A, join_entry(state.roster.index), OPENING)
        assert [outcome.error for outcome in outcomes] == [BAD_ARGUMENTS, OK]
        assert state.roster.last_join == 2
        assert state.owner(session) == 1

    def test_a_boot_that_has_left_cannot_come_back(self, state: SharedState) -> None:
        outcomes = state.commit(A, Entry(LEAVE, b""), join_entry(state.roster.index))
        assert [outcome.error for outcome in outcomes] == [OK, BAD_ARGUMENTS]
        assert list(state.roster.members) == [B]

    def test_nor_within_its_first_batch(self, state: SharedState) -> None:
        """The fold would have voided it as a whole; the machine does not count on that."""
        state.commit(C, join_entry(1))
        repeated = [join_entry(1), Entry(LEAVE, b""), join_entry(1)]
        errors = [state.machine.apply(entry).error for entry in repeated]
        assert errors == [BAD_ARGUMENTS, OK, BAD_ARGUMENTS]
        assert list(state.roster.members) == [A, B]

    def test_it_counts_as_the_first_batch_of_a_boot_only(self, state: SharedState) -> None:
        state.commit(C, Entry(SYNC, b""), number=3)
        state.machine.begin_batch(C)
        assert state.machine.apply(join_entry(1)).error == BAD_ARGUMENTS

    def test_the_server_whose_boot_is_replaced_has_its_sessions_at_once(
        self, state: SharedState
    ) -> None:
        mine, others = state.open(A), state.open(B)
        state.commit(A, number=9)
        state.commit(C, join_entry(1, replaces=A))
        assert [told(change) for change in state.changes()] == [(LEFT, A, 1, 3), (JOINED, C, 3, 0)]
        assert (state.owner(mine), state.owner(others)) == (3, 2)
        assert list(state.roster.members) == [B, C]
        assert (state.roster.held_count, list(state.roster.ended)) == (0, [A])
        assert state.commit(A, OPENING) == []

    def test_one_that_replaces_nobody_joins_all_the_same(self, state: SharedState) -> None:
        state.commit(C, join_entry(1, replaces=b"no such!"))
        assert [told(change) for change in state.changes()] == [(JOINED, C, 3, 0)]

    def test_it_adopts_sessions_without_an_owner(self) -> None:
        world = World()
        kept = world.open(5).session
        state = SharedState(world.machine)
        (outcome,) = state.commit(A, join_entry())
        assert outcome.error == OK
        assert [told(change) for change in state.changes()] == [(JOINED, A, 1, 1)]
        assert state.owner(kept) == 1


class TestLeave:
    def test_duty_has_its_sessions(self, state: SharedState) -> None:
        state.join(C)
        session = state.open(C)
        (outcome,) = state.commit(C, Entry(LEAVE, b""))
        assert (outcome.error, outcome.zxid) == (OK, state.machine.zxid)
        assert [told(change) for change in state.changes()] == [(LEFT, C, 3, 1)]
        assert state.owner(session) == 1

    def test_duty_goes_to_the_next(self, state: SharedState) -> None:
        session = state.open(A)
        state.commit(A, Entry(LEAVE, b""))
        assert [told(change) for change in state.changes()] == [(LEFT, A, 1, 2)]
        assert state.owner(session) == 2

    def test_with_no_member_left_sessions_wait_for_the_next_one(self, state: SharedState) -> None:
        first, second = state.open(A), state.open(B)
        state.commit(A, Entry(LEAVE, b""))
        state.commit(B, Entry(LEAVE, b""))
        assert [change.heir for change in state.changes()] == [2, 0]
        assert (state.owner(first), state.owner(second)) == (0, 0)
        state.commit(C, join_entry(1))
        assert [told(change) for change in state.changes()] == [(JOINED, C, 3, 3)]
        assert (state.owner(first), state.owner(second)) == (3, 3)
        assert state.roster.rules == RULES

    def test_the_rest_of_its_batch_has_no_effect(self, state: SharedState) -> None:
        session = state.open(A)
        zxid = state.machine.zxid
        create = Entry(opcodes.CREATE, encode(CreateRequest(b"/x", b"", OPEN, 0)), session, 1)
        create.time_ms = 1 << 40
        outcomes = state.commit(
            *(A, Entry(LEAVE, b""), create, OPENING, Entry(SYNC, b"s"), Entry(LEAVE, b"")),
            Entry(ATTACH, attach_body(1000, PASSWORD, 0), session),
        )
        assert [outcome.error for outcome in outcomes] == [OK] + 5 * [SESSION_MOVED]
        assert [outcome.body for outcome in outcomes] == 6 * [b""]
        assert b"/x" not in state.machine.tree.nodes
        assert list(state.machine.sessions.by_id) == [session]
        assert (state.machine.zxid, state.machine.time_ms) == (zxid, 0)

    def test_nor_has_what_it_held_behind_it(self, state: SharedState) -> None:
        state.commit(A, OPENING, number=2)
        outcomes = state.commit(A, Entry(LEAVE, b""), number=1)
        assert [outcome.error for outcome in outcomes] == [OK, SESSION_MOVED]
        assert not state.machine.sessions.by_id


class TestDepose:
    def test_its_proposer_has_the_sessions(self, state: SharedState) -> None:
        state.join(C)
        mine, others = state.open(A), state.open(C)
        state.commit(B, depose(state, A))
        assert [told(change) for change in state.changes()] == [(DEPOSED, A, 1, 2)]
        assert (state.owner(mine), state.owner(others)) == (2, 3)
        assert list(state.roster.members) == [B, C]

    def test_it_is_void_if_there_is_a_later_batch(self, state: SharedState) -> None:
        entry = depose(state, A)
        session = state.open(A)
        (outcome,) = state.commit(B, entry)
        assert outcome.error == BAD_ARGUMENTS
        assert "its last batch is 3, and not 1" in outcome.body.decode()
        assert state.changes() == []
        assert state.owner(session) == 1

    def test_it_is_void_if_a_later_batch_is_held(self, state: SharedState) -> None:
        entry = depose(state, A)
        state.commit(A, OPENING, number=2)
        assert state.commit(B, entry)[0].error == BAD_ARGUMENTS

    def test_what_is_held_goes_with_it(self, state: SharedState) -> None:
        state.commit(A, OPENING, number=2)
        state.commit(B, depose(state, A))
        assert state.roster.held_count == 0
        assert state.commit(A, OPENING, number=1) == []
        assert not state.machine.sessions.by_id

    def test_nobody_deposes_itself_or_a_stranger(self, state: SharedState) -> None:
        index = state.roster.index + 1
        own = Entry(DEPOSE, DeposeRequest(A, index).encode())
        stranger = Entry(DEPOSE, DeposeRequest(C, index).encode())
        outcomes = state.commit(A, own, stranger)
        assert [outcome.body.decode() for outcome in outcomes] == [
            "no member deposes itself",
            "there is no such member",
        ]
        assert list(state.roster.members) == [A, B]


class TestRules:
    def test_they_are_raised_if_every_member_knows_them(self) -> None:
        state = SharedState()
        state.commit(A, join_entry(rules_max=RULES))
        state.commit(B, join_entry(1, rules_max=RULES + 2))
        state.changes()
        (outcome,) = state.commit(B, Entry(RAISE_RULES, rules_body(RULES + 2)))
        assert outcome.error == BAD_ARGUMENTS
        assert f"member 1 ({A.hex()}, version 1.0) knows" in outcome.body.decode()
        assert (state.roster.rules, state.changes()) == (RULES, [])
        state.commit(A, Entry(LEAVE, b""))
        state.changes()
        assert state.commit(B, Entry(RAISE_RULES, rules_body(RULES + 2)))[0].error == OK
        (change,) = state.changes()
        assert told(change) == (RULES_RAISED, B, 2, 0)
        assert (state.roster.rules, change.reason) == (RULES + 2, f"rules {RULES + 2}")

    @pytest.mark.parametrize("rules", [RULES, RULES - 1, -1])
    def test_they_never_fall(self, state: SharedState, rules: int) -> None:
        assert state.commit(A, Entry(RAISE_RULES, rules_body(rules)))[0].error == BAD_ARGUMENTS
        assert state.roster.rules == RULES


class TestEpoch:
    def test_it_begins_if_there_is_no_other_member(self, state: SharedState) -> None:
        session = state.open(A)
        before = state.machine.zxid
        assert state.commit(A, Entry(EPOCH, b""))[0].error == BAD_ARGUMENTS
        assert state.machine.zxid == before
        state.commit(B, Entry(LEAVE, b""))
        state.changes()
        (outcome,) = state.commit(A, Entry(EPOCH, b""))
        assert (outcome.error, outcome.zxid, state.machine.zxid) == (OK, 1 << 32, 1 << 32)
        assert state.machine.sessions.last_id == session + (1 << 20)
        assert [told(change) for change in state.changes()] == [(EPOCH_BEGUN, A, 1, 0)]

    def test_it_is_refused_at_the_end_of_all_zxids(self, state: SharedState) -> None:
        state.commit(B, Entry(LEAVE, b""))
        state.machine.zxid = (1 << 63) - 1
        assert state.commit(A, Entry(EPOCH, b""))[0].error == BAD_ARGUMENTS
        assert state.machine.zxid == (1 << 63) - 1


class TestForget:
    def test_an_address_stays_until_it_is_forgotten(self, state: SharedState) -> None:
        state.commit(B, Entry(LEAVE, b""))
        assert state.roster.addresses == ["a:2181", "b:2181"]
        state.changes()
        assert state.commit(A, Entry(FORGET, forget_body("b:2181")))[0].error == OK
        (change,) = state.changes()
        assert (*told(change), change.reason) == (FORGOTTEN, A, 1, 0, "b:2181")
        assert state.roster.addresses == ["a:2181"]

    def test_that_of_a_member_or_of_nobody_is_not(self, state: SharedState) -> None:
        outcomes = state.commit(
            A, Entry(FORGET, forget_body("b:2181")), Entry(FORGET, forget_body("x:2181"))
        )
        assert [outcome.error for outcome in outcomes] == 2 * [BAD_ARGUMENTS]
        assert state.roster.addresses == ["a:2181", "b:2181"]


class TestSync:
    def test_it_answers_with_its_body_and_takes_no_zxid(self, state: SharedState) -> None:
        session = state.open(A)
        path = encode(PathRequest(b"/a"))
        entries = [Entry(SYNC, path, session, 1, time_ms=7), Entry(SYNC, b"/b")]
        before = state.machine.zxid
        outcomes = state.commit(A, *entries)
        assert [(one.error, one.zxid, one.body) for one in outcomes] == [
            (OK, before, path),
            (OK, before, b"/b"),
        ]
        assert state.machine.time_ms == 7

    def test_a_clients_is_answered_with_its_path_if_that_can_be_read(
        self, state: SharedState
    ) -> None:
        session = state.open(A)
        path = encode(PathRequest(b"/a"))
        bodies = (path + b"more", path[:-1])
        outcomes = state.commit(A, *[Entry(SYNC, body, session, 1) for body in bodies])
        assert [(one.error, one.body) for one in outcomes] == [
            (OK, path),
            (MARSHALLING_ERROR, b""),
        ]

    def test_a_session_that_has_moved_or_is_over_is_told_so(self, state: SharedState) -> None:
        session = state.open(A)
        state.attach(B, session)
        outcomes = state.commit(A, Entry(SYNC, b"/a", session, 1), Entry(SYNC, b"/a", 99, 1))
        assert [(one.error, one.body) for one in outcomes] == [
            (SESSION_MOVED, b""),
            (SESSION_EXPIRED, b""),
        ]


class TestOwners:
    def test_who_attaches_a_session_owns_it(self, state: SharedState) -> None:
        session = state.open(A)
        assert state.owner(session) == 1
        state.attach(B, session)
        assert state.owner(session) == 2

    def test_nobody_else_says_that_it_was_silent_for_too_long(self, state: SharedState) -> None:
        session = state.open(A)
        (outcome,) = state.commit(B, Entry(EXPIRE, b"", session, 1))
        assert (outcome.error, outcome.session) == (SESSION_MOVED, None)
        assert state.owner(session) == 1
        # Under former rules it did not matter who said so.
        (outcome,) = state.commit(B, Entry(EXPIRE, b"", session, 1, rules=EXPIRED_BY_ANYBODY))
        assert outcome.error == OK
        assert state.machine.sessions.by_id == {}

    def test_its_owner_does(self, state: SharedState) -> None:
        session = state.open(A)
        state.attach(B, session)
        (outcome,) = state.commit(B, Entry(EXPIRE, b"", session, 2))
        assert outcome.error == OK
        assert state.machine.sessions.by_id == {}

    def test_an_attach_that_is_refused_changes_nothing(self, state: SharedState) -> None:
        session = state.open(A)
        entry = Entry(ATTACH, attach_body(1000, b"another", 0), session)
        assert state.commit(B, entry)[0].error == SESSION_EXPIRED
        assert state.owner(session) == 1

    def test_the_state_gives_the_id_of_a_session(self, state: SharedState) -> None:
        entry = Entry(opcodes.CREATE_SESSION, session_body(1000, PASSWORD), 77)
        (outcome,) = state.commit(A, entry)
        assert outcome.session is not None
        assert outcome.session.session == 1


def test_a_stamp_behind_the_time_of_the_state_is_raised_to_it(state: SharedState) -> None:
    session = state.open(A)
    body = encode(CreateRequest(b"/x", b"", OPEN, 0))
    state.commit(A, Entry(SYNC, b"", time_ms=5_000))
    state.commit(B, Entry(opcodes.CREATE, body, session, 1, time_ms=4_000))
    assert state.machine.tree.nodes[b"/x"].ctime == 5_000


@pytest.mark.parametrize("operation", range(FORGET, JOIN + 1))
def test_a_single_server_has_none_of_these(operation: int) -> None:
    world = World()
    before = dump(world.machine)
    outcome = world.apply(operation, join_entry().body)
    assert (outcome.error, outcome.zxid, outcome.body) == (UNIMPLEMENTED, 0, b"")
    assert world.machine.take_roster_change() is None
    assert dump(world.machine) == before


@pytest.mark.parametrize("operation", [DEPOSE, RAISE_RULES, FORGET])
def test_a_body_that_cannot_be_read_is_refused(state: SharedState, operation: int) -> None:
    (outcome,) = state.commit(A, Entry(operation, b"\0"))
    assert outcome.error == MARSHALLING_ERROR
    assert state.changes() == []


def test_what_nobody_has_foreseen_is_answered(state: SharedState) -> None:
    state.machine.begin_batch(A)
    del state.roster.members[A]
    outcome = state.machine.apply(Entry(LEAVE, b""))
    assert outcome.error == SYSTEM_ERROR
    assert sentence(outcome).startswith("applying leave failed")


class TestDigest:
    def test_it_covers_sessions_and_members(self, state: SharedState) -> None:
        """Each change makes another digest, also when no node has changed."""
        machine = state.machine
        session = state.open(A)
        digests = [machine.shared_digest()]
        found = machine.sessions.by_id[session]
        nodes = machine.digest()
        for name in ("owner", "generation", "timeout_ms"):
            machine.sessions.count_out(found)
            setattr(found, name, getattr(found, name) + 1)
            machine.sessions.count_in(found)
            digests.append(machine.shared_digest())
        for name in ("next", "last_index", "number", "rules_max"):
            setattr(state.roster.members[A], name, getattr(state.roster.members[A], name) + 1)
            digests.append(machine.shared_digest())
        machine.zxid += 1
        digests.append(machine.shared_digest())
        machine.time_ms += 1
        digests.append(machine.shared_digest())
        state.roster.rules += 1
        digests.append(machine.shared_digest())
        assert len(set(digests)) == len(digests)
        assert all(0 <= digest < 1 << 63 for digest in digests)
        assert machine.digest() == nodes

    def test_it_follows_every_session(self, state: SharedState) -> None:
        first, second = state.open(A), state.open(B)
        state.attach(B, first)
        state.commit(B, Entry(opcodes.CLOSE_SESSION, b"", first, 2))
        state.commit(B, Entry(EXPIRE, b"", second, 1))
        assert state.machine.sessions.digests == {}
        state.open(A)
        state.open(B)
        state.commit(A, Entry(LEAVE, b""))
        assert list(state.machine.sessions.digests) == [2]
        # Compares with the sum over all sessions.
        dump(state.machine)

    def test_sessions_are_handed_on_without_a_look_at_each(self, state: SharedState) -> None:
        """There may be 100,000, and while all servers hash them none renews its lease."""
        sessions = state.machine.sessions
        for _ in range(3):
            # Changed behind its back, so that another look would show.
            sessions.by_id[state.open(A)].generation += 1
        counted = sessions.digests[1]
        state.commit(A, Entry(LEAVE, b""))
        assert [one.owner for one in sessions.by_id.values()] == [2, 2, 2]
        assert sessions.digests == {2: counted}

    def test_a_single_server_keeps_none(self) -> None:
        world = World()
        client = world.open()
        world.attach(client.session)
        assert world.machine.sessions.digests == {}
        assert world.machine.sessions.by_id[client.session].owner == 0
        with pytest.raises(AssertionError):
            StateMachine().shared_digest()


class TestBallot:
    def test_it_is_told_and_changes_nothing(self, state: SharedState) -> None:
        before = state.machine.zxid
        ballot = BallotRequest(7, 1 << 62)
        (outcome,) = state.commit(B, Entry(BALLOT, ballot.encode()))
        assert (outcome.error, outcome.zxid, outcome.body) == (OK, before, b"")
        (change,) = state.changes()
        assert told(change) == (VOTED, B, 2, 0)
        assert change.ballot == ballot

    def test_one_that_cannot_be_read_is_refused(self, state: SharedState) -> None:
        (outcome,) = state.commit(B, Entry(BALLOT, b"\0"))
        assert outcome.error == MARSHALLING_ERROR
        assert state.changes() == []


class TestClock:
    def test_it_is_told_and_remembered_of_its_member(self, state: SharedState) -> None:
        before = state.machine.zxid
        entry = Entry(CLOCK, clock_body(77_000), time_ms=99_000)
        (outcome,) = state.commit(B, entry)
        assert (outcome.error, outcome.zxid, outcome.body) == (OK, before, b"")
        (change,) = state.changes()
        assert told(change) == (CLOCK_STATED, B, 2, 0)
        # What the member's own clock says, not the stamp, which is never below that of others.
        assert change.time_ms == state.roster.members[B].time_ms == 77_000
        assert state.machine.time_ms == 99_000
        assert state.roster.members[A].time_ms == 0

    def test_one_that_cannot_be_read_is_refused(self, state: SharedState) -> None:
        (outcome,) = state.commit(B, Entry(CLOCK, b"\0"))
        assert outcome.error == MARSHALLING_ERROR
        assert state.changes() == []

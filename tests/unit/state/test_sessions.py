"""Sessions and their generations, as the log decides on them."""

from __future__ import annotations

import struct

import pytest

from paddock.errors import OK, RUNTIME_INCONSISTENCY, SESSION_EXPIRED, SESSION_MOVED
from paddock.protocol import opcodes
from paddock.protocol.requests import CreateRequest
from paddock.state.entry import (
    ATTACH,
    RULES,
    SESSIONS_DECIDED_BEFORE,
    UNBOUNDED,
    Batch,
    Entry,
)
from paddock.state.machine import Outcome, session_body
from paddock.state.sessions import ATTACHED, ENDED, OPENED
from tests.property.dump import dump
from tests.unit.state.driver import OPEN, PASSWORD, Connection, World


def test_a_session_is_opened_in_its_first_generation_and_takes_a_zxid(world: World) -> None:
    connection = world.open(7, 4000)
    session = world.machine.sessions.by_id[7]
    assert (session.id, session.generation, session.timeout_ms) == (7, 1, 4000)
    assert session.password == PASSWORD
    assert world.machine.zxid == 1
    assert connection.create(b"/a").error == OK


def test_the_highest_id_is_remembered_beyond_the_session(world: World) -> None:
    world.open(9).close()
    world.open(4)
    assert world.machine.sessions.last_id == 9


def test_attaching_gives_the_next_generation_and_takes_no_zxid(world: World) -> None:
    old = world.open(7, 4000)
    zxid = world.machine.zxid
    outcome, new = world.attach(7, 9000)
    assert (outcome.error, outcome.zxid, new.generation) == (OK, zxid, old.generation + 1)
    assert world.machine.sessions.by_id[7].timeout_ms == 9000


def test_what_an_older_connection_sends_is_refused_and_takes_a_zxid(world: World) -> None:
    old = world.open()
    _, new = world.attach(old.session)
    zxid = world.machine.zxid
    for outcome in (
        old.create(b"/a"),
        old.multi((opcodes.CREATE, CreateRequest(b"/a", b"", OPEN, 0))),
        old.close(),
    ):
        zxid += 1
        assert (outcome.error, outcome.zxid, outcome.body) == (SESSION_MOVED, zxid, b"")
        assert outcome.changes == []
    assert new.create(b"/a").error == OK


def test_a_wrong_password_is_refused_as_expired_and_changes_nothing(world: World) -> None:
    old = world.open(7, 4000)
    before, zxid = dump(world.machine), world.machine.zxid
    world.time_ms -= 1
    outcome, _ = world.attach(7, 9000, b"another")
    assert (outcome.error, outcome.zxid, outcome.session) == (SESSION_EXPIRED, zxid, None)
    assert dump(world.machine) == before
    assert old.create(b"/a").error == OK


def test_a_client_that_is_ahead_of_the_log_is_not_attached(world: World) -> None:
    old = world.open(7, 4000)
    zxid = world.machine.zxid
    outcome, _ = world.attach(7, 9000, last_zxid_seen=zxid + 1)
    assert (outcome.error, outcome.zxid, outcome.session) == (RUNTIME_INCONSISTENCY, zxid, None)
    assert old.create(b"/a").error == OK
    assert world.attach(7, 9000, last_zxid_seen=zxid + 1)[0].error == OK


@pytest.mark.parametrize("rules", [UNBOUNDED, SESSIONS_DECIDED_BEFORE, RULES])
def test_an_attach_of_former_rules_has_no_password_to_compare(world: World, rules: int) -> None:
    world.open(7, 4000)
    entry = Entry(ATTACH, struct.pack(">i", 9000), 7, rules=rules)
    (entry,) = Batch.decode(Batch([entry], 0, 0).encode()).entries
    assert world.machine.apply(entry).error == OK
    session = world.machine.sessions.by_id[7]
    assert (session.generation, session.timeout_ms) == (2, 9000)


def test_the_id_of_a_session_comes_from_the_time_and_is_never_given_twice(world: World) -> None:
    def opened(time_ms: int) -> int:
        entry = Entry(opcodes.CREATE_SESSION, session_body(4000, PASSWORD), time_ms=time_ms)
        change = world.machine.apply(entry).session
        assert change is not None
        assert change.session in world.machine.sessions.by_id
        return change.session

    assert opened(0) == 1
    assert [opened(1000), opened(1000)] == [1000 << 16, (1000 << 16) + 1]
    # A stamp that goes back does not count.
    assert opened(999) == (1000 << 16) + 2
    assert opened(1001) == 1001 << 16
    assert opened((1 << 40) + 5) == (1001 << 16) + 1, "the upper bits have a meaning"
    world.open(1 << 50)
    assert opened(1002) == (1 << 50) + 1


def test_an_outcome_says_what_became_of_the_session(world: World) -> None:
    def told(outcome: Outcome) -> tuple[int, int, int, int] | None:
        change = outcome.session
        if change is None:
            return None
        return change.kind, change.session, change.generation, change.timeout_ms

    entry = Entry(opcodes.CREATE_SESSION, session_body(4000, PASSWORD), 7)
    assert told(world.machine.apply(entry)) == (OPENED, 7, 1, 4000)
    outcome, connection = world.attach(7, 9000)
    assert told(outcome) == (ATTACHED, 7, 2, 9000)
    assert told(connection.create(b"/a")) is None
    assert told(world.expire(7, 1)) is None
    assert told(world.expire(7, 2)) == (ENDED, 7, 2, 9000)
    assert told(world.attach(7)[0]) is None
    closed = world.open(8, 4000).close()
    assert told(closed) == (ENDED, 8, 1, 4000)


def test_nobody_attaches_to_a_session_that_is_over(world: World) -> None:
    connection = world.open()
    connection.close()
    outcome, _ = world.attach(connection.session)
    assert outcome.error == SESSION_EXPIRED
    assert connection.session not in world.machine.sessions.by_id


def test_a_write_right_behind_the_end_of_its_session_is_refused(world: World) -> None:
    mine, other = world.open(), world.open()
    assert mine.create(b"/a").error == OK
    mine.close()
    assert mine.create(b"/b").error == SESSION_EXPIRED
    assert other.create(b"/c").error == OK
    assert mine.create(b"/d").error == SESSION_EXPIRED


def test_a_session_that_replaces_another_of_its_id_is_the_one_that_counts(world: World) -> None:
    world.open(7)
    _, again = world.attach(7)
    assert again.create(b"/a").error == OK
    # Only former rules let the proposer give an id.
    new = world.open(7)
    assert again.create(b"/b").error == SESSION_MOVED
    assert new.create(b"/b").error == OK


def test_an_unknown_session_is_refused_as_expired(world: World) -> None:
    outcome = Connection(world, 99, 1).create(b"/a")
    assert (outcome.error, outcome.zxid) == (SESSION_EXPIRED, 1)


@pytest.mark.parametrize("how", ["close", "expire"])
def test_the_end_of_a_session_deletes_its_ephemerals_in_one_zxid(world: World, how: str) -> None:
    mine, other = world.open(), world.open()
    other.create(b"/dir")
    for path in (b"/dir/b", b"/dir/a", b"/z"):
        mine.create(path, flags=1)
    other.create(b"/dir/theirs", flags=1)
    other.add_watch(b"/", 1)
    parent = world.stat(b"/dir")
    outcome = mine.close() if how == "close" else world.expire(mine.session, mine.generation)
    assert (outcome.error, outcome.zxid) == (OK, world.machine.zxid)
    assert [change.path for change in outcome.changes] == [b"/dir/a", b"/dir/b", b"/z"]
    assert {change.zxid for change in outcome.changes} == {outcome.zxid}
    assert [path for _, path in other.told] == [b"/dir/a", b"/dir/b", b"/z"]
    after = world.stat(b"/dir")
    assert (after.cversion, after.pzxid) == (parent.cversion + 2, outcome.zxid)
    assert other.children(b"/dir") == [b"theirs"]
    assert mine.session not in world.machine.sessions.by_id
    assert mine.create(b"/late").error == SESSION_EXPIRED


def test_an_expiry_that_was_decided_before_the_session_moved_does_nothing(world: World) -> None:
    old = world.open()
    old.create(b"/mine", flags=1)
    world.attach(old.session)
    before = dump(world.machine)
    outcome = world.expire(old.session, old.generation)
    assert (outcome.error, outcome.changes) == (SESSION_MOVED, [])
    after = dump(world.machine)
    before.pop("time_ms")
    after.pop("time_ms")
    assert after == before


def test_an_expiry_of_a_session_that_is_over_does_nothing(world: World) -> None:
    connection = world.open()
    connection.close()
    zxid = world.machine.zxid
    assert world.expire(connection.session, 1).error == SESSION_MOVED
    assert world.machine.zxid == zxid


def test_the_end_of_a_session_without_ephemerals_takes_a_zxid_too(world: World) -> None:
    connection = world.open()
    zxid = world.machine.zxid
    assert connection.close().zxid == zxid + 1


def test_an_attach_that_cannot_be_read_changes_nothing(world: World) -> None:
    connection = world.open(timeout_ms=4000)
    outcome = world.apply(ATTACH, b"\0", connection.session)
    assert outcome.error != OK
    session = world.machine.sessions.by_id[connection.session]
    assert (session.generation, session.timeout_ms) == (1, 4000)

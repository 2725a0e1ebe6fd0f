"""Sessions and their generations, as the log decides on them."""

from __future__ import annotations

import pytest

from paddock.errors import OK, SESSION_EXPIRED, SESSION_MOVED
from paddock.protocol import opcodes
from paddock.protocol.requests import CreateRequest
from paddock.state.entry import ATTACH
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


def test_nobody_attaches_to_a_session_that_is_over(world: World) -> None:
    connection = world.open()
    connection.close()
    outcome, _ = world.attach(connection.session)
    assert outcome.error == SESSION_EXPIRED
    assert connection.session not in world.machine.sessions.by_id


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

"""setWatches: watches that are set again, and what was missed meanwhile."""

from __future__ import annotations

from paddock.errors import OK
from paddock.protocol import opcodes
from paddock.protocol.acl import ACL, READ
from paddock.protocol.events import (
    NODE_CHILDREN_CHANGED,
    NODE_CREATED,
    NODE_DELETED,
)
from tests.unit.state.driver import Connection, World, set_watches_body
from tests.unit.state.watch_words import BOB, CHILDREN_A, CREATED_C, DATA_A, DELETED_B, EACH_KIND


def test_set_watches_sets_modes_beside_each_other(watcher: Connection, writer: Connection) -> None:
    now = watcher.world.machine.zxid
    every = [[b"/a"], [], [b"/a"], [b"/a"], [b"/a"]]
    assert watcher.ask(opcodes.SET_WATCHES2, set_watches_body(now, *every)) == (OK, b"")
    for kind in EACH_KIND:
        assert watcher.check_watches(b"/a", kind) == OK
    writer.set(b"/a", b"1")
    writer.set(b"/a", b"2")
    writer.create(b"/a/c")
    writer.delete(b"/a/c")
    assert watcher.told == [
        *(DATA_A, DATA_A, CREATED_C, CHILDREN_A, (NODE_DELETED, b"/a/c"), CHILDREN_A)
    ]


def test_set_watches_tells_at_once_what_was_missed(watcher: Connection, writer: Connection) -> None:
    seen = watcher.world.machine.zxid
    writer.set(b"/a", b"1")
    writer.create(b"/a/c")
    writer.delete(b"/a/b")
    error, body = watcher.ask(
        opcodes.SET_WATCHES2,
        set_watches_body(
            seen, [b"/a", b"/a/b"], [b"/a/c", b"/a/d"], [b"/a", b"/a/c"], [b"/p"], [b"/r"]
        ),
    )
    assert (error, body) == (OK, b"")
    assert watcher.told == [
        DATA_A,
        DELETED_B,
        CREATED_C,
        CHILDREN_A,
        (NODE_CHILDREN_CHANGED, b"/a/c"),
    ]
    # They may stand for several changes, so they have no zxid.
    assert {zxid for _, _, zxid in watcher.events} == {-1}
    # The others stand.
    del watcher.told[:]
    writer.create(b"/a/d")
    writer.create(b"/p")
    writer.create(b"/p/x")
    writer.create(b"/r")
    writer.create(b"/r/x")
    assert watcher.told == [
        (NODE_CREATED, b"/a/d"),
        (NODE_CREATED, b"/p"),
        (NODE_CHILDREN_CHANGED, b"/p"),
        (NODE_CREATED, b"/r"),
        (NODE_CREATED, b"/r/x"),
    ]


def test_set_watches_without_changes_only_sets_them(
    watcher: Connection, writer: Connection
) -> None:
    now = watcher.world.machine.zxid
    body = set_watches_body(now, [b"/a"], [b"/new"], [b"/a"])
    assert watcher.ask(opcodes.SET_WATCHES, body) == (OK, b"")
    assert watcher.told == []
    writer.set(b"/a", b"1")
    writer.create(b"/new")
    writer.delete(b"/a/b")
    assert watcher.told == [DATA_A, (NODE_CREATED, b"/new"), CHILDREN_A]


def test_set_watches_tells_nothing_of_what_may_not_be_read(
    world: World, writer: Connection
) -> None:
    writer.be(BOB)
    writer.create(b"/secret", acls=[ACL(READ, BOB)])
    stranger = world.open()
    stranger.ask(opcodes.SET_WATCHES, set_watches_body(0, [b"/secret"], [b"/secret"], [b"/secret"]))
    assert stranger.told == []

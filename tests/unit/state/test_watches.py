"""Watches: every kind against every change, modes, removal, and what depth costs."""

from __future__ import annotations

from random import Random
from zlib import crc32

import pytest

from paddock.errors import MARSHALLING_ERROR, NO_NODE, NO_WATCHER, OK
from paddock.protocol import opcodes
from paddock.protocol.acl import ACL, ALL, ANYONE, READ, Identity
from paddock.protocol.events import (
    NODE_CHILDREN_CHANGED,
    NODE_CREATED,
    NODE_DATA_CHANGED,
    NODE_DELETED,
)
from paddock.protocol.requests import SetDataRequest, VersionRequest
from paddock.state.access import NodeACL
from paddock.state.watches import ONE_SHOT, Watcher, Watches
from tests.unit.state.driver import OPEN, Connection, World, set_watches_body

BOB = Identity("digest", "bob:hash")
PERSISTENT, RECURSIVE = 0, 1


@pytest.fixture
def writer(world: World) -> Connection:
    return world.open()


@pytest.fixture
def watcher(world: World, writer: Connection) -> Connection:
    writer.create(b"/a")
    writer.create(b"/a/b")
    return world.open()


CREATED_C = (NODE_CREATED, b"/a/c")
CHILDREN_A = (NODE_CHILDREN_CHANGED, b"/a")
CHILDREN_B = (NODE_CHILDREN_CHANGED, b"/a/b")
DELETED_B = (NODE_DELETED, b"/a/b")
DATA_A = (NODE_DATA_CHANGED, b"/a")
DATA_B = (NODE_DATA_CHANGED, b"/a/b")
DEEP = (NODE_CREATED, b"/a/b/x")


def change_everything(writer: Connection) -> None:
    """Do one change of each kind to `/a` and below it."""
    for outcome in (
        writer.set(b"/a", b"1"),
        writer.set(b"/a/b", b"1"),
        writer.create(b"/a/c"),
        writer.create(b"/a/b/x"),
        writer.set_acl(b"/a", OPEN),
        writer.delete(b"/a/b/x"),
        writer.delete(b"/a/b"),
    ):
        assert outcome.error == OK


@pytest.mark.parametrize(
    ("kind", "path", "told"),
    [
        ("get", b"/a", [DATA_A]),
        ("get", b"/a/b", [DATA_B]),
        ("exists", b"/a", [DATA_A]),
        ("exists", b"/a/c", [CREATED_C]),
        ("exists", b"/a/b/x", [DEEP]),
        ("exists", b"/nowhere", []),
        ("children", b"/a", [CHILDREN_A]),
        ("children", b"/a/b", [CHILDREN_B]),
        ("children", b"/", []),
        ("persistent", b"/a", [DATA_A, CHILDREN_A, CHILDREN_A]),
        ("persistent", b"/a/b", [DATA_B, CHILDREN_B, CHILDREN_B, DELETED_B]),
        ("persistent", b"/a/b/x", [DEEP, (NODE_DELETED, b"/a/b/x")]),
        (
            "recursive",
            b"/a",
            [DATA_A, DATA_B, CREATED_C, DEEP, (NODE_DELETED, b"/a/b/x"), DELETED_B],
        ),
        ("recursive", b"/a/b", [DATA_B, DEEP, (NODE_DELETED, b"/a/b/x"), DELETED_B]),
        (
            "recursive",
            b"/",
            [DATA_A, DATA_B, CREATED_C, DEEP, (NODE_DELETED, b"/a/b/x"), DELETED_B],
        ),
        # A path that only begins alike is no path below.
        ("recursive", b"/a/", []),
        ("recursive", b"/a/b/x/y", []),
    ],
)
def test_each_kind_of_watch_hears_of_its_changes(
    watcher: Connection, writer: Connection, kind: str, path: bytes, told: list[tuple[int, bytes]]
) -> None:
    match kind:
        case "get":
            watcher.get(path, watch=True)
        case "exists":
            watcher.exists(path, watch=True)
        case "children":
            watcher.children(path, watch=True)
        case "persistent":
            watcher.add_watch(path, PERSISTENT)
        case "recursive":
            watcher.add_watch(path, RECURSIVE)
    change_everything(writer)
    assert watcher.told == told


def test_a_recursive_watch_does_not_hear_of_a_path_that_only_begins_alike(
    watcher: Connection, writer: Connection
) -> None:
    watcher.add_watch(b"/a", RECURSIVE)
    writer.create(b"/ab")
    writer.create(b"/ab/c")
    assert watcher.told == []


def test_a_one_shot_watch_fires_once(watcher: Connection, writer: Connection) -> None:
    watcher.get(b"/a", watch=True)
    writer.set(b"/a", b"1")
    writer.set(b"/a", b"2")
    assert watcher.told == [DATA_A]


def test_an_event_is_told_once_to_a_client_with_a_data_and_a_child_watch(
    watcher: Connection, writer: Connection
) -> None:
    watcher.get(b"/a/b", watch=True)
    watcher.children(b"/a/b", watch=True)
    writer.delete(b"/a/b")
    assert watcher.told == [DELETED_B]
    assert watcher.check_watches(b"/a/b", 3) == NO_WATCHER


def test_a_client_hears_once_through_its_watches_at_several_paths(
    watcher: Connection, writer: Connection
) -> None:
    for path in (b"/", b"/a", b"/a/b"):
        watcher.add_watch(path, RECURSIVE)
    writer.set(b"/a/b", b"1")
    writer.delete(b"/a/b")
    assert watcher.told == [DATA_B, DELETED_B]


def test_everybody_who_watches_is_told(world: World, writer: Connection) -> None:
    writer.create(b"/a")
    others = [world.open() for _ in range(3)]
    for other in others:
        other.get(b"/a", watch=True)
    others[0].add_watch(b"/a", PERSISTENT)
    writer.set(b"/a", b"1")
    assert [other.told for other in others] == [[DATA_A]] * 3


def test_a_writer_hears_of_its_own_changes(writer: Connection) -> None:
    writer.add_watch(b"/", RECURSIVE)
    writer.create(b"/mine")
    assert writer.told == [(NODE_CREATED, b"/mine")]


def test_events_come_in_the_order_of_the_changes(watcher: Connection, writer: Connection) -> None:
    watcher.add_watch(b"/a", PERSISTENT)
    watcher.exists(b"/a/c", watch=True)
    writer.create(b"/a/c")
    writer.set(b"/a", b"1")
    writer.delete(b"/a/c")
    assert watcher.told == [CREATED_C, CHILDREN_A, DATA_A, CHILDREN_A]


def test_a_refused_change_is_told_to_nobody(watcher: Connection, writer: Connection) -> None:
    watcher.add_watch(b"/", RECURSIVE)
    watcher.get(b"/a", watch=True)
    writer.set(b"/a", b"1", version=7)
    writer.multi(
        (opcodes.SET_DATA, SetDataRequest(b"/a", b"1", -1)),
        (opcodes.DELETE, VersionRequest(b"/nowhere", -1)),
    )
    assert watcher.told == []


def test_setting_a_watch_again_replaces_its_mode(watcher: Connection, writer: Connection) -> None:
    watcher.add_watch(b"/a", RECURSIVE)
    watcher.add_watch(b"/a", PERSISTENT)
    writer.create(b"/a/c")
    assert watcher.told == [CHILDREN_A]
    # A one-shot watch in its place makes the data half fire once; the child half stays.
    watcher.get(b"/a", watch=True)
    writer.set(b"/a", b"1")
    writer.set(b"/a", b"2")
    writer.delete(b"/a/c")
    assert watcher.told == [CHILDREN_A, DATA_A, CHILDREN_A]
    watcher.add_watch(b"/a", RECURSIVE)
    writer.create(b"/a/c")
    assert watcher.told[3:] == [CREATED_C]


@pytest.mark.parametrize("mode", [PERSISTENT, RECURSIVE])
def test_one_half_of_a_persistent_watch_can_be_removed(
    watcher: Connection, writer: Connection, mode: int
) -> None:
    children, data, both = 1, 2, 3
    watcher.add_watch(b"/a", mode)
    assert watcher.remove_watches(b"/a", children) == OK
    assert watcher.check_watches(b"/a", children) == NO_WATCHER
    assert watcher.check_watches(b"/a", data) == OK
    assert watcher.check_watches(b"/a", both) == OK
    writer.set(b"/a", b"1")
    assert watcher.told == [DATA_A]
    assert watcher.remove_watches(b"/a", children) == NO_WATCHER
    assert watcher.remove_watches(b"/a", both) == OK
    writer.set(b"/a", b"1")
    assert watcher.told == [DATA_A]


def test_removing_or_checking_what_is_not_there_finds_no_watcher(watcher: Connection) -> None:
    other = watcher.world.open()
    other.add_watch(b"/a", PERSISTENT)
    for path in (b"/a", b"/b", b"", None):
        assert watcher.remove_watches(path, 3) == NO_WATCHER
    assert watcher.check_watches(b"/a", 3) == NO_WATCHER
    assert watcher.check_watches(None, 3) == MARSHALLING_ERROR
    assert watcher.remove_watches(b"/a", 4) == MARSHALLING_ERROR
    assert watcher.check_watches(b"/a", 0) == MARSHALLING_ERROR
    assert watcher.add_watch(b"/a", 2) == MARSHALLING_ERROR


def test_a_watcher_that_is_removed_leaves_nothing_behind(world: World, writer: Connection) -> None:
    writer.create(b"/a")
    watcher, other = world.open(), world.open()
    other.get(b"/a", watch=True)
    watcher.get(b"/a", watch=True)
    watcher.children(b"/a", watch=True)
    watcher.add_watch(b"/b", PERSISTENT)
    watcher.add_watch(b"/", RECURSIVE)
    world.watches.remove_watcher(watcher)
    world.watches.remove_watcher(watcher)
    writer.set(b"/a", b"1")
    assert watcher.told == []
    assert other.told == [DATA_A]
    for table in (world.watches.data, world.watches.child):
        assert (table.size, table.path_count(), table.watcher_count()) == (0, 0, 0)


def test_the_tables_know_their_size(watcher: Connection, writer: Connection) -> None:
    data, child = watcher.world.watches.data, watcher.world.watches.child
    watcher.get(b"/a", watch=True)
    watcher.get(b"/a", watch=True)
    writer.exists(b"/a", watch=True)
    watcher.add_watch(b"/a/b", RECURSIVE)
    assert (data.size, data.path_count(), data.watcher_count()) == (3, 2, 2)
    assert (child.size, child.path_count(), child.watcher_count()) == (1, 1, 1)
    writer.set(b"/a", b"1")
    assert (data.size, data.path_count(), data.watcher_count()) == (1, 1, 1)


def test_a_watch_on_what_cannot_be_read_is_not_set(world: World, writer: Connection) -> None:
    writer.be(BOB)
    writer.create(b"/secret", acls=[ACL(ALL, BOB)])
    stranger = world.open()
    with pytest.raises(AssertionError):
        stranger.get(b"/secret", watch=True)
    with pytest.raises(AssertionError):
        stranger.children(b"/nowhere", watch=True)
    assert world.watches.data.size == world.watches.child.size == 0
    # exists needs no permission, and waits for what is not there.
    assert stranger.exists(b"/nowhere", watch=True) == NO_NODE
    assert world.watches.data.size == 1


def test_events_are_withheld_from_those_who_may_not_read(world: World, writer: Connection) -> None:
    writer.be(BOB)
    writer.create(b"/secret", acls=[ACL(ALL, BOB)])
    stranger, friend = world.open(), world.open()
    friend.be(BOB)
    for one in (stranger, friend):
        one.add_watch(b"/", RECURSIVE)
        one.exists(b"/secret", watch=True)
        one.add_watch(b"/secret", PERSISTENT)
    writer.set(b"/secret", b"1")
    writer.create(b"/secret/open")
    writer.delete(b"/secret/open")
    writer.delete(b"/secret")
    # The child is open to all; that its parent has another child is not.
    assert stranger.told == [(NODE_CREATED, b"/secret/open"), (NODE_DELETED, b"/secret/open")]
    assert [kind for kind, path in friend.told if path == b"/secret"] == [
        *(NODE_DATA_CHANGED, NODE_CHILDREN_CHANGED, NODE_CHILDREN_CHANGED, NODE_DELETED)
    ]


def test_a_one_shot_watch_is_used_up_by_an_event_that_is_withheld(
    world: World, writer: Connection
) -> None:
    writer.create(b"/a")
    stranger = world.open()
    stranger.get(b"/a", watch=True)
    writer.be(BOB)
    writer.set_acl(b"/a", [ACL(ALL, BOB)])
    writer.set(b"/a", b"1")
    assert stranger.told == []
    assert world.watches.data.size == 0


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


@pytest.mark.parametrize("lengths", [0, 50])
def test_recursive_watches_are_found_among_many_of_other_lengths(
    world: World, writer: Connection, lengths: int
) -> None:
    watchers = [world.open() for _ in range(4)]
    for watcher, path in zip(watchers, (b"/", b"/a", b"/a/b", b"/a/b/c"), strict=True):
        watcher.add_watch(path, RECURSIVE)
    for length in range(lengths):
        watchers[0].add_watch(b"/x" + b"x" * length, RECURSIVE)
    for path in (b"/a", b"/a/b", b"/a/bc", b"/a/b/c"):
        writer.create(path)
    told = [[path for _, path in watcher.told] for watcher in watchers]
    assert told == [
        [b"/a", b"/a/b", b"/a/bc", b"/a/b/c"],
        [b"/a", b"/a/b", b"/a/bc", b"/a/b/c"],
        [b"/a/b", b"/a/b/c"],
        [b"/a/b/c"],
    ]


@pytest.mark.parametrize("where", ["at the root", "elsewhere", "on every level"])
def test_a_deep_tree_under_recursive_watches_costs_its_depth_once(
    world: World, writer: Connection, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apache took 55 ms for each of these deletes, and others waited for 24 s."""
    looked_at = 0

    def counted(data: bytes, value: int = 0) -> int:
        nonlocal looked_at
        looked_at += len(data)
        return crc32(data, value)

    levels = 600
    watcher = world.open()
    paths = [b"/d" * depth for depth in range(1, levels + 1)]
    watcher.add_watch(b"/", RECURSIVE)
    for number, path in enumerate(paths):
        if where != "at the root":
            watcher.add_watch(b"/x/%d" % number if where == "elsewhere" else path, RECURSIVE)
    # Compiled code does not notice; it is the same code.
    monkeypatch.setattr("paddock.state.watches.crc32", counted)
    for path in paths:
        writer.create(path)
    for path in reversed(paths):
        writer.delete(path)
    assert [path for _, path in watcher.told] == paths + paths[::-1]
    # No byte of a path more than once for each table that is asked.
    assert looked_at <= 3 * sum(len(path) for path in paths)


def test_watchers_hear_of_an_event_in_the_order_in_which_they_came() -> None:
    """And not by where they are in memory, which is another order in every run."""
    told: list[int] = []

    class Numbered(Watcher):
        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

        def notify(self, event: bytes) -> None:
            told.append(self.number)

    watches = Watches()
    order = [*range(50)]
    Random(1).shuffle(order)
    # Made in one order, set in another.
    watchers = [Numbered(number) for number in range(50)]
    for number in order:
        watches.data.add(b"/a", watchers[number], ONE_SHOT)
    watches.data.trigger(NODE_CREATED, b"/a", NodeACL((ACL(ALL, ANYONE),), b""), None)
    assert told == order

"""Watches: every kind against every change, modes, removal, and what depth costs."""

from __future__ import annotations

import tracemalloc
from random import Random

import pytest

from paddock.errors import MARSHALLING_ERROR, NO_AUTH, NO_NODE, NO_WATCHER, OK
from paddock.protocol import opcodes
from paddock.protocol.acl import ACL, ALL, ANYONE
from paddock.protocol.events import (
    NODE_CHILDREN_CHANGED,
    NODE_CREATED,
    NODE_DATA_CHANGED,
    NODE_DELETED,
)
from paddock.protocol.requests import SetDataRequest, VersionRequest
from paddock.state.access import NodeACL
from paddock.state.watcher import ONE_SHOT, Watcher
from paddock.state.watches import Watches
from tests.unit.state.driver import OPEN, Connection, World, set_watches_body
from tests.unit.state.watch_words import (
    ANY_KIND,
    BOB,
    CHILD_KIND,
    CHILDREN_A,
    CHILDREN_B,
    CREATED_C,
    DATA_A,
    DATA_B,
    DATA_KIND,
    DEEP,
    DELETED_B,
    EACH_KIND,
    PERSISTENT,
    PERSISTENT_KIND,
    RECURSIVE,
    RECURSIVE_KIND,
)


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


def test_a_one_shot_watch_that_fires_leaves_a_persistent_one(
    watcher: Connection, writer: Connection
) -> None:
    watcher.add_watch(b"/a", PERSISTENT)
    watcher.get(b"/a", watch=True)
    watcher.children(b"/a", watch=True)
    writer.set(b"/a", b"1")
    writer.set(b"/a", b"2")
    assert watcher.told == [DATA_A, DATA_A]
    writer.create(b"/a/c")
    writer.delete(b"/a/c")
    assert watcher.told[2:] == [CHILDREN_A, CHILDREN_A]
    assert watcher.check_watches(b"/a", DATA_KIND) == NO_WATCHER
    assert watcher.check_watches(b"/a", CHILD_KIND) == NO_WATCHER
    assert watcher.check_watches(b"/a", PERSISTENT_KIND) == OK
    assert watcher.watch_count == 2


def test_a_one_shot_watch_that_fires_leaves_a_recursive_one(
    watcher: Connection, writer: Connection
) -> None:
    watcher.add_watch(b"/a", RECURSIVE)
    watcher.get(b"/a", watch=True)
    watcher.children(b"/a", watch=True)
    writer.set(b"/a", b"1")
    writer.set(b"/a/b", b"1")
    writer.set(b"/a", b"2")
    assert watcher.told == [DATA_A, DATA_B, DATA_A]
    writer.create(b"/a/c")
    assert watcher.told[3:] == [CREATED_C, CHILDREN_A]
    writer.delete(b"/a/c")
    assert watcher.told[5:] == [(NODE_DELETED, b"/a/c")]


@pytest.mark.parametrize("modes", [(PERSISTENT, RECURSIVE), (RECURSIVE, PERSISTENT)])
def test_a_persistent_and_a_recursive_watch_stand_beside_each_other(
    watcher: Connection, writer: Connection, modes: tuple[int, int]
) -> None:
    for mode in modes:
        watcher.add_watch(b"/a", mode)
    writer.create(b"/a/c")
    writer.set(b"/a", b"1")
    writer.set(b"/a/c", b"1")
    assert watcher.told == [CREATED_C, CHILDREN_A, DATA_A, (NODE_DATA_CHANGED, b"/a/c")]
    del watcher.told[:]
    # All three hear of it, and it is told once.
    watcher.get(b"/a/b", watch=True)
    writer.delete(b"/a/b")
    writer.delete(b"/a/c")
    writer.delete(b"/a")
    assert watcher.told == [
        *(DELETED_B, CHILDREN_A, (NODE_DELETED, b"/a/c"), CHILDREN_A),
        (NODE_DELETED, b"/a"),
    ]


def watch_in_every_mode(watcher: Connection) -> None:
    watcher.get(b"/a", watch=True)
    watcher.children(b"/a", watch=True)
    watcher.add_watch(b"/a", PERSISTENT)
    watcher.add_watch(b"/a", RECURSIVE)


@pytest.mark.parametrize("kind", EACH_KIND)
def test_removing_one_kind_leaves_the_others(watcher: Connection, kind: int) -> None:
    watch_in_every_mode(watcher)
    assert watcher.remove_watches(b"/a", kind) == OK
    assert watcher.remove_watches(b"/a", kind) == NO_WATCHER
    for other in EACH_KIND:
        assert watcher.check_watches(b"/a", other) == (NO_WATCHER if other == kind else OK)
    assert watcher.check_watches(b"/a", ANY_KIND) == OK


def test_removing_any_kind_takes_all(watcher: Connection, writer: Connection) -> None:
    watch_in_every_mode(watcher)
    assert watcher.remove_watches(b"/a", ANY_KIND) == OK
    for kind in (*EACH_KIND, ANY_KIND):
        assert watcher.check_watches(b"/a", kind) == NO_WATCHER
        assert watcher.remove_watches(b"/a", kind) == NO_WATCHER
    change_everything(writer)
    assert watcher.told == []
    assert (watcher.watch_count, watcher.watch_bytes) == (0, 0)


@pytest.mark.parametrize(
    ("kind", "left"),
    [
        (CHILD_KIND, [DATA_A, DATA_B, CREATED_C, CHILDREN_A, DEEP]),
        (DATA_KIND, [DATA_A, DATA_B, CREATED_C, CHILDREN_A, DEEP]),
        (PERSISTENT_KIND, [DATA_A, DATA_B, CREATED_C, CHILDREN_A, DEEP]),
        (RECURSIVE_KIND, [DATA_A, CHILDREN_A]),
        (ANY_KIND, []),
    ],
)
def test_what_was_not_removed_still_fires(
    watcher: Connection, writer: Connection, kind: int, left: list[tuple[int, bytes]]
) -> None:
    watch_in_every_mode(watcher)
    watcher.remove_watches(b"/a", kind)
    writer.set(b"/a", b"1")
    writer.set(b"/a/b", b"1")
    writer.create(b"/a/c")
    writer.create(b"/a/b/x")
    assert watcher.told == left


@pytest.mark.parametrize(
    ("mode", "kind"), [(PERSISTENT, PERSISTENT_KIND), (RECURSIVE, RECURSIVE_KIND)]
)
def test_a_lasting_watch_is_found_by_its_own_kind_only(
    watcher: Connection, mode: int, kind: int
) -> None:
    watcher.add_watch(b"/a", mode)
    for other in EACH_KIND:
        assert watcher.check_watches(b"/a", other) == (OK if other == kind else NO_WATCHER)
        if other != kind:
            assert watcher.remove_watches(b"/a", other) == NO_WATCHER
    assert watcher.check_watches(b"/a/b", kind) == NO_WATCHER
    assert watcher.remove_watches(b"/a", kind) == OK
    assert watcher.world.watches.data.size == watcher.world.watches.child.size == 0


def test_each_mode_counts_in_each_table_until_it_is_gone(
    watcher: Connection, writer: Connection
) -> None:
    counts: list[tuple[int, int]] = []

    def note() -> None:
        counts.append((watcher.watch_count, watcher.watch_bytes))

    for _ in range(2):
        # What stands already is not counted again.
        watch_in_every_mode(watcher)
        note()
    writer.set(b"/a", b"1")
    note()
    writer.create(b"/a/c")
    note()
    for kind in (RECURSIVE_KIND, PERSISTENT_KIND):
        watcher.remove_watches(b"/a", kind)
        note()
    assert counts == [(5, 10), (5, 10), (4, 8), (3, 6), (2, 4), (0, 0)]


def test_removing_or_checking_what_is_not_there_finds_no_watcher(watcher: Connection) -> None:
    other = watcher.world.open()
    other.add_watch(b"/a", PERSISTENT)
    for kind in (*EACH_KIND, ANY_KIND):
        for path in (b"/a", b"/b", b"", None):
            assert watcher.remove_watches(path, kind) == NO_WATCHER
            assert watcher.check_watches(path, kind) == NO_WATCHER
    for kind in (-1, 0, 6):
        assert watcher.remove_watches(b"/a", kind) == MARSHALLING_ERROR
        assert watcher.check_watches(b"/a", kind) == MARSHALLING_ERROR
    assert watcher.add_watch(b"/a", 2) == MARSHALLING_ERROR
    assert watcher.add_watch(b"/a", -1) == MARSHALLING_ERROR


def test_an_event_has_the_zxid_of_its_change(watcher: Connection, writer: Connection) -> None:
    watcher.add_watch(b"/a", PERSISTENT)
    watcher.add_watch(b"/a", RECURSIVE)
    data = writer.set(b"/a", b"1").zxid
    created = writer.create(b"/a/c").zxid
    deleted = writer.delete(b"/a/c").zxid
    both = writer.multi(
        (opcodes.SET_DATA, SetDataRequest(b"/a", b"1", -1)),
        (opcodes.DELETE, VersionRequest(b"/a/b", -1)),
    ).zxid
    assert data < created < deleted < both
    assert watcher.events == [
        (*DATA_A, data),
        (*CREATED_C, created),
        (*CHILDREN_A, created),
        (NODE_DELETED, b"/a/c", deleted),
        (*CHILDREN_A, deleted),
        (*DATA_A, both),
        (*DELETED_B, both),
        (*CHILDREN_A, both),
    ]


def test_the_events_of_a_sessions_end_have_its_zxid(world: World, writer: Connection) -> None:
    writer.create(b"/mine", flags=1)
    watcher = world.open()
    watcher.add_watch(b"/", RECURSIVE)
    assert watcher.events == []
    zxid = world.expire(writer.session, writer.generation).zxid
    assert watcher.events == [(NODE_DELETED, b"/mine", zxid)]


def test_a_watcher_that_is_removed_leaves_nothing_behind(world: World, writer: Connection) -> None:
    writer.create(b"/a")
    watcher, other = world.open(), world.open()
    other.get(b"/a", watch=True)
    watcher.get(b"/a", watch=True)
    watcher.children(b"/a", watch=True)
    watcher.add_watch(b"/b", PERSISTENT)
    watcher.add_watch(b"/", RECURSIVE)
    world.watches.remove_some(watcher, 1 << 30)
    world.watches.remove_some(watcher, 1 << 30)
    writer.set(b"/a", b"1")
    assert watcher.told == []
    assert other.told == [DATA_A]
    for table in (world.watches.data, world.watches.child):
        assert (table.size, table.path_count(), table.watcher_count()) == (0, 0, 0)
    assert (watcher.watch_count, watcher.watch_bytes) == (0, 0)


@pytest.mark.parametrize("limit", [1, 3, 1000])
def test_a_watcher_can_be_removed_in_parts(world: World, writer: Connection, limit: int) -> None:
    leaving = world.open()
    paths = [b"/n%d" % number for number in range(7)]
    for path in paths:
        writer.create(path)
        leaving.get(path, watch=True)
        leaving.children(path, watch=True)
        leaving.add_watch(path, RECURSIVE)
    standing = [world.watches.data.size + world.watches.child.size]
    while world.watches.remove_some(leaving, limit):
        standing.append(world.watches.data.size + world.watches.child.size)
    standing.append(world.watches.data.size + world.watches.child.size)
    assert standing == [*range(14, 0, -limit), 0]
    assert (leaving.watch_count, leaving.watch_bytes) == (0, 0)
    assert not world.watches.remove_some(leaving, limit)


def test_a_watcher_that_leaves_is_told_nothing_and_sets_nothing(
    world: World, writer: Connection
) -> None:
    writer.create(b"/a")
    leaving, other = world.open(), world.open()
    for one in (leaving, other):
        one.add_watch(b"/", RECURSIVE)
        one.add_watch(b"/a", PERSISTENT)
        one.get(b"/a", watch=True)
    assert world.watches.remove_some(leaving, 1)
    left = leaving.watch_count
    leaving.get(b"/a", watch=True)
    leaving.exists(b"/b", watch=True)
    leaving.add_watch(b"/c", RECURSIVE)
    leaving.ask(opcodes.SET_WATCHES, set_watches_body(0, [b"/a", b"/gone"], [], [b"/a"]))
    assert leaving.watch_count == left
    writer.set(b"/a", b"1")
    writer.create(b"/a/b")
    writer.delete(b"/a/b")
    assert leaving.told == []
    assert other.told == [DATA_A, (NODE_CREATED, b"/a/b"), CHILDREN_A, DELETED_B, CHILDREN_A]


def test_a_table_that_was_large_does_not_stay_so(world: World) -> None:
    """Dictionaries do not shrink by themselves, and there is always some watch left."""
    table, one, many = world.watches.data, world.open(), world.open()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        table.add(b"/kept", one, ONE_SHOT)
        for number in range(20_000):
            table.add(b"/%d" % number, many, ONE_SHOT)
        world.watches.remove_some(many, 1 << 30)
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert table.paths() == [b"/kept"]
    assert after - before < 100_000


def test_the_tables_know_their_size(watcher: Connection, writer: Connection) -> None:
    data, child = watcher.world.watches.data, watcher.world.watches.child
    watcher.get(b"/a", watch=True)
    watcher.get(b"/a", watch=True)
    writer.exists(b"/a", watch=True)
    watcher.add_watch(b"/a/b", RECURSIVE)
    assert (data.size, data.path_count(), data.watcher_count()) == (3, 2, 2)
    # As in 3.9: a recursive watch is one of data only, and modes at one path are one watch.
    assert (child.size, child.path_count(), child.watcher_count()) == (0, 0, 0)
    watcher.add_watch(b"/a", PERSISTENT)
    assert (data.size, child.size) == (3, 1)
    writer.set(b"/a", b"1")
    assert (data.size, data.path_count(), data.watcher_count()) == (2, 2, 1)


def test_a_watch_on_what_cannot_be_read_is_not_set(world: World, writer: Connection) -> None:
    writer.be(BOB)
    writer.create(b"/secret", acls=[ACL(ALL, BOB)])
    stranger = world.open()
    with pytest.raises(AssertionError):
        stranger.get(b"/secret", watch=True)
    with pytest.raises(AssertionError):
        stranger.children(b"/nowhere", watch=True)
    assert stranger.exists(b"/secret", watch=True) == NO_AUTH
    assert world.watches.data.size == world.watches.child.size == 0
    # What is not there can be waited for, also below what cannot be read.
    assert stranger.exists(b"/nowhere", watch=True) == NO_NODE
    assert stranger.exists(b"/secret/nothing", watch=True) == NO_NODE
    assert world.watches.data.size == 2


def test_events_are_withheld_from_those_who_may_not_read(world: World, writer: Connection) -> None:
    writer.be(BOB)
    writer.create(b"/secret", acls=[ACL(ALL, BOB)])
    stranger, friend = world.open(), world.open()
    friend.be(BOB)
    for one in (stranger, friend):
        one.add_watch(b"/", RECURSIVE)
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
    watches.data.trigger(NODE_CREATED, b"/a", NodeACL((ACL(ALL, ANYONE),), b""), 1, None)
    assert told == order


def test_the_watchers_of_each_kind_of_event_are_counted(world: World, writer: Connection) -> None:
    writer.create(b"/a")
    fan_outs = world.watches.fan_outs
    # Nobody watches: that does not count.
    writer.set(b"/a", b"1")
    for number in range(5):
        one = world.open()
        one.get(b"/a", watch=True)
        if number < 2:
            one.children(b"/a", watch=True)
    writer.set(b"/a", b"2")
    writer.create(b"/a/b")
    world.open().get(b"/a", watch=True)
    writer.set(b"/a", b"3")
    changed, children = fan_outs[NODE_DATA_CHANGED], fan_outs[NODE_CHILDREN_CHANGED]
    assert (changed.events, changed.watchers, changed.least, changed.most) == (2, 6, 1, 5)
    # One event with one watcher, and one with five to eight.
    assert changed.buckets()[:5] == [1, 0, 0, 1, 0]
    assert (children.events, children.watchers) == (1, 2)
    assert fan_outs[NODE_DELETED].events == 0
    world.watches.reset()
    assert (fan_outs[NODE_DATA_CHANGED].events, sum(fan_outs[NODE_DATA_CHANGED].buckets())) == (
        0,
        0,
    )
    world.open().get(b"/a", watch=True)
    writer.set(b"/a", b"4")
    assert fan_outs[NODE_DATA_CHANGED].events == 1

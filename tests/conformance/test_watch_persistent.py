"""Persistent and recursive watches: how they mix with each other and are taken away."""

from __future__ import annotations

import pytest

from tests.conformance.conftest import Connect
from tests.conformance.differences import (
    CHECK_WATCHES_OF_OTHERS,
    WATCH_MODES_ARE_INDEPENDENT,
    WATCHES_ARE_REMOVED_BY_MODE,
)
from tests.support import requests as rq
from tests.support.records import Code, EventType
from tests.support.server import Server
from tests.support.wire import Client, events

CREATED, DELETED = EventType.CREATED, EventType.DELETED
CHANGED, CHILDREN = EventType.DATA_CHANGED, EventType.CHILDREN_CHANGED

PERSISTENT, RECURSIVE = 0, 1
CHILD_KIND, DATA_KIND, ANY_KIND = 1, 2, 3
#: The kind that means a mode, since 3.9.
KIND_OF = {PERSISTENT: 4, RECURSIVE: 5}


def changes(client: Client, node: str) -> None:
    """A change of data, a child that comes and goes, and a change below the child."""
    client.call(rq.set_data(node, b"x"))
    client.call(rq.create(f"{node}/c"))
    client.call(rq.set_data(f"{node}/c", b"x"))
    client.call(rq.delete(f"{node}/c"))


def persistent_events(node: str) -> list[tuple[int, str]]:
    return [(CHANGED, node), (CHILDREN, node), (CHILDREN, node)]


def recursive_events(node: str) -> list[tuple[int, str]]:
    return [(CHANGED, node), (CREATED, f"{node}/c"), (CHANGED, f"{node}/c"), (DELETED, f"{node}/c")]


def events_of_both(node: str) -> list[tuple[int, str]]:
    """What is told of a persistent and a recursive watch at once: each event once."""
    return [
        (CHANGED, node),
        (CREATED, f"{node}/c"),
        (CHILDREN, node),
        (CHANGED, f"{node}/c"),
        (DELETED, f"{node}/c"),
        (CHILDREN, node),
    ]


def test_add_watch_answers_an_empty_error(client: Client, base: str) -> None:
    before = client.call(rq.exists("/")).zxid
    reply = client.call(rq.add_watch(base, PERSISTENT))
    assert (reply.err, reply.number, reply.zxid) == (Code.OK, 0, before)


def test_a_persistent_watch_keeps_firing(client: Client, other: Client, base: str) -> None:
    other.call(rq.add_watch(base, PERSISTENT))
    for _ in range(3):
        changes(client, base)
        assert other.drain() == events(*persistent_events(base))


def test_a_recursive_watch_keeps_firing(client: Client, other: Client, base: str) -> None:
    other.call(rq.add_watch(base, RECURSIVE))
    for _ in range(3):
        changes(client, base)
        assert other.drain() == events(*recursive_events(base))


@pytest.mark.parametrize("first", [PERSISTENT, RECURSIVE])
def test_a_persistent_and_a_recursive_watch_stand_beside_each_other(
    server: Server, client: Client, other: Client, base: str, first: int
) -> None:
    second = RECURSIVE if first == PERSISTENT else PERSISTENT
    other.call(rq.add_watch(base, first))
    other.call(rq.add_watch(base, second))
    if WATCH_MODES_ARE_INDEPENDENT.on(server):
        expected = events_of_both
    else:
        expected = recursive_events if second == RECURSIVE else persistent_events
    for _ in range(2):
        changes(client, base)
        assert other.drain() == events(*expected(base))
    assert other.call(rq.remove_watches(base, ANY_KIND)).err == Code.OK
    changes(client, base)
    assert other.drain() == []


def test_a_delete_is_told_once_to_watches_of_all_modes(
    client: Client, other: Client, base: str
) -> None:
    node = f"{base}/n"
    client.call(rq.create(node))
    other.call(rq.add_watch(node, RECURSIVE))
    other.call(rq.add_watch(node, PERSISTENT))
    other.call(rq.get_data(node, watch=True))
    other.call(rq.get_children(node, watch=True))
    client.call(rq.delete(node))
    assert other.drain() == events((DELETED, node))


def test_a_recursive_watch_on_the_root_sees_everything(
    client: Client, other: Client, base: str
) -> None:
    other.call(rq.add_watch("/", RECURSIVE))
    changes(client, base)
    seen = [event for event in other.drain() if event.path.startswith(base)]
    assert seen == events(*recursive_events(base))


def test_overlapping_recursive_watches_of_one_session_fire_once(
    client: Client, other: Client, base: str
) -> None:
    client.call(rq.create(f"{base}/n"))
    other.call(rq.add_watch(base, RECURSIVE))
    other.call(rq.add_watch(f"{base}/n", RECURSIVE))
    other.call(rq.get_data(f"{base}/n/c", watch=True))
    changes(client, f"{base}/n")
    assert other.drain() == events(*recursive_events(f"{base}/n"))


def test_a_recursive_watch_does_not_see_siblings_with_its_prefix(
    client: Client, other: Client, base: str
) -> None:
    other.call(rq.add_watch(f"{base}/a", RECURSIVE))
    client.call(rq.create(f"{base}/ab"))
    client.call(rq.create(f"{base}/a"))
    assert other.drain() == events((CREATED, f"{base}/a"))


def test_a_child_watch_beside_a_recursive_one_adds_the_children_event(
    client: Client, other: Client, base: str
) -> None:
    client.call(rq.create(f"{base}/n"))
    other.call(rq.add_watch(base, RECURSIVE))
    other.call(rq.get_children(f"{base}/n", watch=True))
    client.call(rq.create(f"{base}/n/c"))
    client.call(rq.create(f"{base}/n/d"))
    assert other.drain() == events(
        (CREATED, f"{base}/n/c"), (CHILDREN, f"{base}/n"), (CREATED, f"{base}/n/d")
    )


def test_a_read_watch_leaves_a_persistent_one(
    server: Server, client: Client, other: Client, base: str
) -> None:
    other.call(rq.add_watch(base, PERSISTENT))
    other.call(rq.get_data(base, watch=True))
    changes(client, base)
    changes(client, base)
    if WATCH_MODES_ARE_INDEPENDENT.on(server):
        second = persistent_events(base)
    else:
        # The data half had become a one-shot.
        second = [(CHILDREN, base), (CHILDREN, base)]
    assert other.drain() == events(*persistent_events(base), *second)


def test_a_children_read_watch_leaves_a_persistent_one(
    server: Server, client: Client, other: Client, base: str
) -> None:
    other.call(rq.add_watch(base, PERSISTENT))
    other.call(rq.get_children(base, watch=True))
    changes(client, base)
    changes(client, base)
    if WATCH_MODES_ARE_INDEPENDENT.on(server):
        expected = [*persistent_events(base), *persistent_events(base)]
    else:
        # The child half had become a one-shot.
        expected = [(CHANGED, base), (CHILDREN, base), (CHANGED, base)]
    assert other.drain() == events(*expected)


def test_a_read_watch_leaves_a_recursive_one(
    server: Server, client: Client, other: Client, base: str
) -> None:
    other.call(rq.add_watch(base, RECURSIVE))
    other.call(rq.get_data(base, watch=True))
    changes(client, base)
    changes(client, base)
    if WATCH_MODES_ARE_INDEPENDENT.on(server):
        expected = [*recursive_events(base), *recursive_events(base)]
    else:
        # The data half had become a one-shot on the node; the child half still sees deletes below.
        expected = [(CHANGED, base), (DELETED, f"{base}/c"), (DELETED, f"{base}/c")]
    assert other.drain() == events(*expected)


def test_a_children_read_watch_beside_a_recursive_one_fires_once(
    server: Server, client: Client, other: Client, base: str
) -> None:
    other.call(rq.add_watch(base, RECURSIVE))
    other.call(rq.get_children(base, watch=True))
    changes(client, base)
    changes(client, base)
    first = recursive_events(base)
    # It is told of the new child, which comes second.
    first.insert(2, (CHILDREN, base))
    assert other.drain() == events(*first, *recursive_events(base))


def test_add_watch_after_a_one_shot_is_persistent(client: Client, other: Client, base: str) -> None:
    other.call(rq.get_data(base, watch=True))
    other.call(rq.add_watch(base, PERSISTENT))
    changes(client, base)
    changes(client, base)
    assert other.drain() == events(*persistent_events(base), *persistent_events(base))


@pytest.mark.parametrize("mode", [PERSISTENT, RECURSIVE])
@pytest.mark.parametrize("kind", [CHILD_KIND, DATA_KIND])
def test_removing_data_or_children_leaves_a_lasting_watch_alone(
    server: Server, client: Client, other: Client, base: str, mode: int, kind: int
) -> None:
    other.call(rq.add_watch(base, mode))
    first = other.call(rq.remove_watches(base, kind)).err
    assert other.call(rq.remove_watches(base, kind)).err == Code.NO_WATCHER
    changes(client, base)
    if WATCH_MODES_ARE_INDEPENDENT.on(server):
        assert first == Code.NO_WATCHER
        left = persistent_events(base) if mode == PERSISTENT else recursive_events(base)
    else:
        # Half of it was taken away.
        assert first == Code.OK
        halves: dict[tuple[int, int], list[tuple[int, str]]] = {
            (PERSISTENT, CHILD_KIND): [(CHANGED, base)],
            (PERSISTENT, DATA_KIND): [(CHILDREN, base), (CHILDREN, base)],
            (RECURSIVE, CHILD_KIND): recursive_events(base),
            (RECURSIVE, DATA_KIND): [(DELETED, f"{base}/c")],
        }
        left = halves[mode, kind]
    assert other.drain() == events(*left)


@pytest.mark.parametrize("mode", [PERSISTENT, RECURSIVE])
def test_removing_any_kind_takes_a_lasting_watch(
    client: Client, other: Client, base: str, mode: int
) -> None:
    other.call(rq.add_watch(base, mode))
    other.call(rq.get_data(base, watch=True))
    other.call(rq.get_children(base, watch=True))
    assert other.call(rq.remove_watches(base, ANY_KIND)).err == Code.OK
    assert other.call(rq.remove_watches(base, ANY_KIND)).err == Code.NO_WATCHER
    changes(client, base)
    assert other.drain() == []


@pytest.mark.parametrize("mode", [PERSISTENT, RECURSIVE])
def test_a_lasting_watch_is_removed_by_its_own_kind(
    server: Server, client: Client, other: Client, base: str, mode: int
) -> None:
    code = WATCHES_ARE_REMOVED_BY_MODE.on(server)
    kind, other_kind = KIND_OF[mode], KIND_OF[1 - mode]
    other.call(rq.add_watch(base, mode))
    assert other.call(rq.check_watches(base, kind)).err == code
    if code == Code.OK:
        for wrong in (rq.check_watches(base, other_kind), rq.remove_watches(base, other_kind)):
            assert other.call(wrong).err == Code.NO_WATCHER
    reply = other.call(rq.remove_watches(base, kind))
    assert (reply.err, reply.body) == (code, b"")
    changes(client, base)
    assert bool(other.drain()) == (code != Code.OK)
    if code == Code.OK:
        assert other.call(rq.check_watches(base, kind)).err == Code.NO_WATCHER
        assert other.call(rq.remove_watches(base, kind)).err == Code.NO_WATCHER


@pytest.mark.parametrize("mode", [PERSISTENT, RECURSIVE])
def test_removing_one_mode_leaves_the_others(
    server: Server, client: Client, other: Client, base: str, mode: int
) -> None:
    if WATCHES_ARE_REMOVED_BY_MODE.on(server) != Code.OK:
        # There is nothing to ask for.
        assert other.call(rq.remove_watches(base, KIND_OF[mode])).err == Code.MARSHALLING_ERROR
        return
    other.call(rq.add_watch(base, PERSISTENT))
    other.call(rq.add_watch(base, RECURSIVE))
    other.call(rq.get_data(base, watch=True))
    assert other.call(rq.remove_watches(base, KIND_OF[mode])).err == Code.OK
    for kind in (DATA_KIND, KIND_OF[1 - mode]):
        assert other.call(rq.check_watches(base, kind)).err == Code.OK
    changes(client, base)
    left = recursive_events if mode == PERSISTENT else persistent_events
    assert other.drain() == events(*left(base))


@pytest.mark.parametrize(
    ("watch", "kinds"),
    [
        (rq.get_data, {DATA_KIND, ANY_KIND}),
        (rq.exists, {DATA_KIND, ANY_KIND}),
        (rq.get_children, {CHILD_KIND, ANY_KIND}),
    ],
)
@pytest.mark.parametrize("kind", [CHILD_KIND, DATA_KIND, ANY_KIND])
def test_removing_a_one_shot_needs_its_kind(
    client: Client, other: Client, base: str, watch: type, kinds: set[int], kind: int
) -> None:
    other.call(watch(base, watch=True))
    reply = other.call(rq.remove_watches(base, kind))
    assert (reply.err, reply.body) == (Code.OK if kind in kinds else Code.NO_WATCHER, b"")
    changes(client, base)
    assert bool(other.drain()) == (kind not in kinds)


def test_a_fired_one_shot_cannot_be_removed(client: Client, other: Client, base: str) -> None:
    other.call(rq.get_data(base, watch=True))
    client.call(rq.set_data(base, b"x"))
    assert other.call(rq.remove_watches(base, ANY_KIND)).err == Code.NO_WATCHER


def test_removing_leaves_others_their_watches(
    connect: Connect, client: Client, other: Client, base: str
) -> None:
    third = connect()
    other.call(rq.add_watch(base, PERSISTENT))
    third.call(rq.add_watch(base, PERSISTENT))
    assert other.call(rq.remove_watches(base, ANY_KIND)).err == Code.OK
    client.call(rq.set_data(base, b"x"))
    assert third.drain() == events((CHANGED, base))


@pytest.mark.parametrize("kind", [CHILD_KIND, DATA_KIND, ANY_KIND])
def test_check_watches_finds_ones_own(client: Client, base: str, kind: int) -> None:
    assert client.call(rq.check_watches(base, kind)).err == Code.NO_WATCHER
    client.call(rq.get_data(base, watch=True))
    expected = Code.NO_WATCHER if kind == CHILD_KIND else Code.OK
    reply = client.call(rq.check_watches(base, kind))
    assert (reply.err, reply.body) == (expected, b"")
    client.call(rq.get_children(base, watch=True))
    assert client.call(rq.check_watches(base, kind)).err == Code.OK
    # Looking takes nothing away.
    assert client.call(rq.remove_watches(base, ANY_KIND)).err == Code.OK
    assert client.call(rq.check_watches(base, kind)).err == Code.NO_WATCHER


@pytest.mark.parametrize("mode", [PERSISTENT, RECURSIVE])
@pytest.mark.parametrize("kind", [CHILD_KIND, DATA_KIND, ANY_KIND])
def test_check_watches_of_one_shots_does_not_find_lasting_ones(
    server: Server, client: Client, base: str, mode: int, kind: int
) -> None:
    client.call(rq.add_watch(base, mode))
    hidden = WATCH_MODES_ARE_INDEPENDENT.on(server) and kind != ANY_KIND
    assert client.call(rq.check_watches(base, kind)).err == (Code.NO_WATCHER if hidden else Code.OK)
    assert client.call(rq.check_watches(f"{base}/below", kind)).err == Code.NO_WATCHER


def test_check_watches_of_another_session(
    server: Server, client: Client, other: Client, base: str
) -> None:
    other.call(rq.get_data(base, watch=True))
    reply = client.call(rq.check_watches(base, DATA_KIND))
    assert reply.err == CHECK_WATCHES_OF_OTHERS.on(server)
    assert client.call(rq.remove_watches(base, DATA_KIND)).err == Code.NO_WATCHER

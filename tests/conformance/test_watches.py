"""Every kind of watch against every kind of change: the exact events."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.conftest import Connect
from tests.support import requests as rq
from tests.support.records import OPEN, Code, EventType, Mode, Request
from tests.support.wire import Client, events

CREATED, DELETED = EventType.CREATED, EventType.DELETED
CHANGED, CHILDREN = EventType.DATA_CHANGED, EventType.CHILDREN_CHANGED

#: How each kind of watch is set on a path.
KINDS: dict[str, Callable[[str], Request]] = {
    "data": lambda path: rq.get_data(path, watch=True),
    "exists": lambda path: rq.exists(path, watch=True),
    "child": lambda path: rq.get_children(path, watch=True),
    "child2": lambda path: rq.get_children2(path, watch=True),
    "persistent": lambda path: rq.add_watch(path, 0),
    "recursive": lambda path: rq.add_watch(path, 1),
}

#: Changes to an existing node `n` that has a child `n/c`, as requests on `n`.
CHANGES: dict[str, Callable[[str], list[Request]]] = {
    "set": lambda n: [rq.set_data(n, b"x")],
    "set twice": lambda n: [rq.set_data(n, b"x"), rq.set_data(n, b"y")],
    "acl": lambda n: [rq.set_acl(n, OPEN)],
    "create child": lambda n: [rq.create(f"{n}/d")],
    "create two children": lambda n: [rq.create(f"{n}/d"), rq.create(f"{n}/e")],
    "delete child": lambda n: [rq.delete(f"{n}/c")],
    "set child": lambda n: [rq.set_data(f"{n}/c", b"x")],
    "create grandchild": lambda n: [rq.create(f"{n}/c/g")],
    "delete": lambda n: [rq.delete(f"{n}/c"), rq.delete(n)],
    "delete and create": lambda n: [rq.delete(f"{n}/c"), rq.delete(n), rq.create(n)],
    "sibling": lambda n: [rq.create(f"{n}x"), rq.set_data(f"{n}x", b""), rq.delete(f"{n}x")],
    "failures": lambda n: [rq.delete(n), rq.create(n), rq.set_data(n, b"", 9), rq.check(n, 9)],
    "reads": lambda n: [rq.get_data(n), rq.get_children(n), rq.exists(n), rq.sync(n)],
}

#: What a watch on `n` sees; paths are relative to `n`.
EXPECTED: dict[str, dict[str, list[tuple[int, str]]]] = {
    "data": {
        "set": [(CHANGED, "")],
        "set twice": [(CHANGED, "")],
        "delete": [(DELETED, "")],
        "delete and create": [(DELETED, "")],
    },
    "child": {
        "create child": [(CHILDREN, "")],
        "create two children": [(CHILDREN, "")],
        "delete child": [(CHILDREN, "")],
        "delete": [(CHILDREN, "")],
        "delete and create": [(CHILDREN, "")],
    },
    "persistent": {
        "set": [(CHANGED, "")],
        "set twice": [(CHANGED, ""), (CHANGED, "")],
        "create child": [(CHILDREN, "")],
        "create two children": [(CHILDREN, ""), (CHILDREN, "")],
        "delete child": [(CHILDREN, "")],
        "delete": [(CHILDREN, ""), (DELETED, "")],
        "delete and create": [(CHILDREN, ""), (DELETED, ""), (CREATED, "")],
    },
    "recursive": {
        "set": [(CHANGED, "")],
        "set twice": [(CHANGED, ""), (CHANGED, "")],
        "create child": [(CREATED, "/d")],
        "create two children": [(CREATED, "/d"), (CREATED, "/e")],
        "delete child": [(DELETED, "/c")],
        "set child": [(CHANGED, "/c")],
        "create grandchild": [(CREATED, "/c/g")],
        "delete": [(DELETED, "/c"), (DELETED, "")],
        "delete and create": [(DELETED, "/c"), (DELETED, ""), (CREATED, "")],
    },
}
EXPECTED["exists"] = EXPECTED["data"]
EXPECTED["child2"] = EXPECTED["child"]


@pytest.mark.parametrize("change", list(CHANGES))
@pytest.mark.parametrize("kind", list(KINDS))
def test_each_watch_sees_what_it_should(
    client: Client, other: Client, base: str, kind: str, change: str
) -> None:
    node = f"{base}/n"
    client.call(rq.create(node))
    client.call(rq.create(f"{node}/c"))
    assert other.call(KINDS[kind](node)).err == Code.OK
    for request in CHANGES[change](node):
        client.call(request)
    expected = [(type_, node + path) for type_, path in EXPECTED[kind].get(change, [])]
    assert other.drain() == events(*expected)


@pytest.mark.parametrize("kind", ["exists", "persistent", "recursive"])
@pytest.mark.parametrize(
    "make",
    [
        rq.create,
        rq.create2,
        rq.create_container,
        lambda path: rq.create_ttl(path, 3_600_000),
        lambda path: rq.create(path, flags=Mode.EPHEMERAL),
        lambda path: rq.multi(rq.create(path)),
    ],
    ids=["create", "create2", "container", "ttl", "ephemeral", "multi"],
)
def test_a_watch_on_nothing_sees_the_creation(
    client: Client, other: Client, base: str, kind: str, make: Callable[[str], Request]
) -> None:
    node = f"{base}/n"
    assert other.call(KINDS[kind](node)).err == (Code.NO_NODE if kind == "exists" else Code.OK)
    client.call(make(node))
    assert other.drain() == events((CREATED, node))
    client.call(rq.set_data(node, b"x"))
    again = [] if kind == "exists" else events((CHANGED, node))
    assert other.drain() == again


@pytest.mark.parametrize("read", [rq.get_data, rq.get_children, rq.get_children2])
def test_a_failed_read_leaves_no_watch(
    client: Client, other: Client, base: str, read: Callable[..., Request]
) -> None:
    node = f"{base}/n"
    assert other.call(read(node, watch=True)).err == Code.NO_NODE
    client.call(rq.create(node))
    client.call(rq.create(f"{node}/c"))
    assert other.drain() == []
    assert other.call(rq.remove_watches(node, 3)).err == Code.NO_WATCHER


def test_a_one_shot_watch_set_twice_fires_once(client: Client, other: Client, base: str) -> None:
    for _ in range(2):
        other.call(rq.get_data(base, watch=True))
        other.call(rq.exists(base, watch=True))
    client.call(rq.set_data(base, b"1"))
    client.call(rq.set_data(base, b"2"))
    assert other.drain() == events((CHANGED, base))


def test_a_one_shot_watch_can_be_set_again(client: Client, other: Client, base: str) -> None:
    for _ in range(3):
        other.call(rq.get_data(base, watch=True))
        client.call(rq.set_data(base, b"x"))
        assert other.drain() == events((CHANGED, base))


def test_a_delete_is_told_once_to_data_and_child_watches_together(
    client: Client, other: Client, base: str
) -> None:
    node = f"{base}/n"
    client.call(rq.create(node))
    other.call(rq.get_data(node, watch=True))
    other.call(rq.get_children(node, watch=True))
    client.call(rq.delete(node))
    client.call(rq.create(node))
    client.call(rq.create(f"{node}/c"))
    assert other.drain() == events((DELETED, node))


def test_a_child_watch_alone_sees_the_delete_of_its_node(
    client: Client, other: Client, base: str
) -> None:
    node = f"{base}/n"
    client.call(rq.create(node))
    other.call(rq.get_children(node, watch=True))
    client.call(rq.delete(node))
    assert other.drain() == events((DELETED, node))


def test_a_delete_is_told_to_the_node_before_the_parent(
    client: Client, other: Client, base: str
) -> None:
    node = f"{base}/n"
    client.call(rq.create(node))
    for watch in (
        rq.get_children(base, watch=True),
        rq.get_children(node, watch=True),
        rq.get_data(node, watch=True),
    ):
        other.call(watch)
    client.call(rq.delete(node))
    assert other.drain() == events((DELETED, node), (CHILDREN, base))


def test_a_create_is_told_to_the_node_before_the_parent(
    client: Client, other: Client, base: str
) -> None:
    node = f"{base}/n"
    other.call(rq.get_children(base, watch=True))
    other.call(rq.exists(node, watch=True))
    client.call(rq.create(node))
    assert other.drain() == events((CREATED, node), (CHILDREN, base))


def test_children_of_the_root_are_told_to_the_root(
    client: Client, other: Client, base: str
) -> None:
    other.call(rq.get_children("/", watch=True))
    client.call(rq.create(f"{base}x"))
    assert other.drain() == events((CHILDREN, "/"))
    other.call(rq.get_children("/", watch=True))
    client.call(rq.delete(f"{base}x"))
    assert other.drain() == events((CHILDREN, "/"))


@pytest.mark.parametrize("mode", [0, 1])
def test_a_persistent_watch_on_the_empty_path_never_fires(
    client: Client, other: Client, base: str, mode: int
) -> None:
    """The empty path means the root for reads, and nothing at all for watches."""
    assert other.call(rq.add_watch("", mode)).err == Code.OK
    client.call(rq.create(f"{base}/n"))
    client.call(rq.create(f"{base}x"))
    client.call(rq.set_data("/", b""))
    client.call(rq.delete(f"{base}x"))
    assert other.drain() == []
    assert other.call(rq.remove_watches("/", 3)).err == Code.NO_WATCHER
    assert other.call(rq.remove_watches("", 3)).err == Code.OK


def test_a_watch_on_the_empty_path_never_fires(client: Client, other: Client, base: str) -> None:
    other.call(rq.get_children("", watch=True))
    other.call(rq.get_data("", watch=True))
    client.call(rq.create(f"{base}x"))
    client.call(rq.set_data("/", b""))
    assert other.drain() == []


def test_every_session_gets_its_own_event(connect: Connect, client: Client, base: str) -> None:
    watchers = [connect() for _ in range(5)]
    for watcher in watchers:
        watcher.call(rq.get_data(base, watch=True))
    client.call(rq.set_data(base, b"x"))
    for watcher in watchers:
        assert watcher.drain() == events((CHANGED, base))


def test_watches_end_with_their_connection(connect: Connect, client: Client, base: str) -> None:
    first = connect()
    first.call(rq.get_data(base, watch=True))
    first.call(rq.add_watch(base, 1))
    first.disconnect()
    second = connect(session_id=first.session_id, password=first.password)
    client.call(rq.set_data(base, b"x"))
    assert second.drain() == []
    assert second.call(rq.remove_watches(base, 3)).err == Code.NO_WATCHER

"""Events and permissions: who may not read a node is not told of its changes."""

from __future__ import annotations

import pytest

from tests.conformance.differences import SET_WATCHES_SHOWS_THE_UNREADABLE
from tests.support import requests as rq
from tests.support.records import OPEN, Acl, Code, EventType, Perm
from tests.support.server import Server, digest
from tests.support.wire import Client, events

CREATED, DELETED = EventType.CREATED, EventType.DELETED
CHANGED, CHILDREN = EventType.DATA_CHANGED, EventType.CHILDREN_CHANGED

ANN = b"ann:secret"
#: Anybody may do all but read; Ann may read.
HIDDEN = (
    Acl(Perm.ALL & ~Perm.READ, "world", "anyone"),
    Acl(Perm.READ, "digest", digest(ANN)),
)


@pytest.mark.parametrize("may_read", [False, True])
@pytest.mark.parametrize(
    "watch", [rq.exists, lambda path, watch: rq.add_watch(path, 0)], ids=["exists", "persistent"]
)
def test_creation_of_an_unreadable_node_is_withheld(
    client: Client, other: Client, base: str, may_read: bool, watch: type
) -> None:
    if may_read:
        other.call(rq.auth("digest", ANN))
    other.call(watch(f"{base}/n", watch=True))
    client.call(rq.create(f"{base}/n", acl=HIDDEN))
    assert other.drain() == (events((CREATED, f"{base}/n")) if may_read else [])


@pytest.mark.parametrize("may_read", [False, True])
def test_changes_of_an_unreadable_node_are_withheld(
    client: Client, other: Client, base: str, may_read: bool
) -> None:
    node = f"{base}/n"
    client.call(rq.create(node, acl=HIDDEN))
    if may_read:
        other.call(rq.auth("digest", ANN))
    other.call(rq.add_watch(node, 0))
    client.call(rq.set_data(node, b"x"))
    client.call(rq.create(f"{node}/c"))
    client.call(rq.delete(f"{node}/c"))
    client.call(rq.delete(node))
    everything = events((CHANGED, node), (CHILDREN, node), (CHILDREN, node), (DELETED, node))
    assert other.drain() == (everything if may_read else [])


def test_a_withheld_event_uses_up_a_one_shot_watch(
    client: Client, other: Client, base: str
) -> None:
    other.call(rq.exists(f"{base}/n", watch=True))
    client.call(rq.create(f"{base}/n", acl=HIDDEN))
    client.call(rq.set_acl(f"{base}/n", OPEN))
    client.call(rq.set_data(f"{base}/n", b"x"))
    assert other.drain() == []
    assert other.call(rq.remove_watches(f"{base}/n", 3)).err == Code.NO_WATCHER


def test_the_acl_at_the_time_of_the_change_counts(client: Client, other: Client, base: str) -> None:
    other.call(rq.add_watch(base, 0))
    client.call(rq.set_acl(base, HIDDEN))
    client.call(rq.set_data(base, b"1"))
    client.call(rq.set_acl(base, OPEN))
    client.call(rq.set_data(base, b"2"))
    assert other.drain() == events((CHANGED, base))


def test_the_identities_at_the_time_of_the_change_count(
    client: Client, other: Client, base: str
) -> None:
    client.call(rq.create(f"{base}/n", acl=HIDDEN))
    other.call(rq.add_watch(f"{base}/n", 0))
    client.call(rq.set_data(f"{base}/n", b"1"))
    other.call(rq.auth("digest", ANN))
    client.call(rq.set_data(f"{base}/n", b"2"))
    assert other.drain() == events((CHANGED, f"{base}/n"))


def test_a_children_event_asks_for_read_on_the_parent_only(
    client: Client, other: Client, base: str
) -> None:
    other.call(rq.get_children(base, watch=True))
    client.call(rq.create(f"{base}/n", acl=HIDDEN))
    assert other.drain() == events((CHILDREN, base))


def test_a_recursive_watch_asks_for_read_on_each_changed_node(
    client: Client, other: Client, base: str
) -> None:
    other.call(rq.add_watch(base, 1))
    client.call(rq.create(f"{base}/hidden", acl=HIDDEN))
    client.call(rq.create(f"{base}/hidden/open"))
    client.call(rq.set_data(f"{base}/hidden", b"x"))
    client.call(rq.set_data(f"{base}/hidden/open", b"x"))
    client.call(rq.delete(f"{base}/hidden/open"))
    client.call(rq.delete(f"{base}/hidden"))
    assert other.drain() == events(
        (CREATED, f"{base}/hidden/open"),
        (CHANGED, f"{base}/hidden/open"),
        (DELETED, f"{base}/hidden/open"),
    )


def test_ones_own_writes_are_withheld_too(client: Client, base: str) -> None:
    client.call(rq.create(f"{base}/n", acl=HIDDEN))
    client.call(rq.add_watch(f"{base}/n", 0))
    client.call(rq.set_data(f"{base}/n", b"x"))
    assert client.drain() == []


def test_a_data_and_child_watch_together_are_not_told_of_a_hidden_delete(
    client: Client, other: Client, base: str
) -> None:
    node = f"{base}/n"
    client.call(rq.create(node))
    other.call(rq.get_data(node, watch=True))
    other.call(rq.get_children(node, watch=True))
    client.call(rq.set_acl(node, HIDDEN))
    client.call(rq.delete(node))
    assert other.drain() == []


def test_the_event_of_an_ephemerals_end_is_withheld_too(
    client: Client, other: Client, base: str
) -> None:
    other.call(rq.add_watch(base, 1))
    client.call(rq.create(f"{base}/e", acl=HIDDEN, flags=1))
    client.call(rq.create(f"{base}/f", flags=1))
    client.close()
    assert other.drain() == events((CREATED, f"{base}/f"), (DELETED, f"{base}/f"))


def test_what_set_watches_fires_at_once(
    server: Server, client: Client, other: Client, base: str
) -> None:
    node = f"{base}/n"
    client.call(rq.create(node, acl=HIDDEN))
    reply = other.call(rq.set_watches(0, [node], [node], [node]))
    assert reply.err == Code.OK
    shown = events((CHANGED, node), (CREATED, node), (CHILDREN, node))
    assert other.drain() == (shown if SET_WATCHES_SHOWS_THE_UNREADABLE.on(server) else [])


def test_set_watches_tells_anybody_that_a_node_is_gone(
    client: Client, other: Client, base: str
) -> None:
    """A node that is not there has no ACL to ask."""
    assert other.call(rq.set_watches(0, [f"{base}/n"])).err == Code.OK
    assert other.drain() == events((DELETED, f"{base}/n"))

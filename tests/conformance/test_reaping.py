"""Containers and TTL nodes: when the server removes them by itself, and when not.

The servers under test look every 200 ms. That a node stays is shown beside one that is taken: the
server has looked at both.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.conftest import Connect, is_delete_container_refused
from tests.conformance.differences import DELETE_CONTAINER_NEEDS_DELETE, DELETE_CONTAINER_WORKS
from tests.support import requests as rq
from tests.support.records import OPEN, READ_ONLY, Code, EventType, Mode, Op, Request
from tests.support.server import Server
from tests.support.wire import Client, events


def empty_container(client: Client, path: str) -> None:
    """Make a container that had a child and has none now."""
    client.call(rq.create_container(path))
    client.call(rq.create(f"{path}/child"))
    client.call(rq.delete(f"{path}/child"))


def wait_reaped(client: Client, path: str) -> None:
    """Wait until the server has taken the node."""
    if client.call(rq.exists(path, watch=True)).err == Code.OK:
        event = client.next_event()
        assert (event.type, event.path) == (EventType.DELETED, path)
    assert client.call(rq.exists(path)).err == Code.NO_NODE


def test_an_emptied_container_is_reaped(client: Client, base: str) -> None:
    empty_container(client, f"{base}/c")
    wait_reaped(client, f"{base}/c")
    assert client.call(rq.get_children(base)).names == set()


def test_a_container_that_never_had_a_child_stays(client: Client, base: str) -> None:
    client.call(rq.create_container(f"{base}/fresh"))
    for name in ("first", "second"):
        empty_container(client, f"{base}/{name}")
        wait_reaped(client, f"{base}/{name}")
    assert client.call(rq.exists(f"{base}/fresh")).err == Code.OK


@pytest.mark.parametrize("op", [Op.CREATE, Op.CREATE2])
def test_a_plain_create_with_container_flags_makes_no_container(
    client: Client, base: str, op: int
) -> None:
    client.call(rq.create(f"{base}/plain", flags=Mode.CONTAINER, op=op))
    client.call(rq.create(f"{base}/plain/child"))
    client.call(rq.delete(f"{base}/plain/child"))
    for name in ("first", "second"):
        empty_container(client, f"{base}/{name}")
        wait_reaped(client, f"{base}/{name}")
    assert client.call(rq.exists(f"{base}/plain")).err == Code.OK


def test_a_container_with_a_child_stays(client: Client, base: str) -> None:
    client.call(rq.create_container(f"{base}/full"))
    client.call(rq.create(f"{base}/full/child"))
    client.call(rq.create(f"{base}/full/gone"))
    client.call(rq.delete(f"{base}/full/gone"))
    for name in ("first", "second"):
        empty_container(client, f"{base}/{name}")
        wait_reaped(client, f"{base}/{name}")
    assert client.call(rq.get_children(f"{base}/full")).names == {"child"}


def test_a_container_is_reaped_when_its_ephemerals_session_ends(
    connect: Connect, client: Client, base: str
) -> None:
    client.call(rq.create_container(f"{base}/c"))
    owner = connect()
    owner.call(rq.create(f"{base}/c/e", flags=Mode.EPHEMERAL))
    owner.close()
    wait_reaped(client, f"{base}/c")


def test_reaping_is_a_full_delete_of_one_zxid(client: Client, base: str) -> None:
    empty_container(client, f"{base}/c")
    before = client.call(rq.get_children2(base)).stat
    wait_reaped(client, f"{base}/c")
    after = client.call(rq.get_children2(base)).stat
    assert after.pzxid > before.pzxid
    assert (after.cversion, after.num_children) == (before.cversion + 1, before.num_children - 1)


def test_reaping_fires_the_watches_of_a_delete(connect: Connect, client: Client, base: str) -> None:
    client.call(rq.create_ttl(f"{base}/t", 600))
    data, child, parent, recursive = connect(), connect(), connect(), connect()
    data.call(rq.get_data(f"{base}/t", watch=True))
    child.call(rq.get_children(f"{base}/t", watch=True))
    parent.call(rq.get_children(base, watch=True))
    recursive.call(rq.add_watch(base, 1))
    wait_reaped(client, f"{base}/t")
    deleted = events((EventType.DELETED, f"{base}/t"))
    assert data.drain() == deleted
    assert child.drain() == deleted
    assert parent.drain() == events((EventType.CHILDREN_CHANGED, base))
    assert recursive.drain() == deleted


def test_reaping_asks_no_permission(client: Client, base: str) -> None:
    client.call(rq.create_container(f"{base}/c", acl=OPEN))
    client.call(rq.create(f"{base}/c/child"))
    client.call(rq.delete(f"{base}/c/child"))
    client.call(rq.set_acl(base, READ_ONLY))
    wait_reaped(client, f"{base}/c")


def test_a_ttl_node_is_reaped_after_its_ttl(client: Client, base: str) -> None:
    stat = client.call(rq.create_ttl(f"{base}/t", 300)).stat
    wait_reaped(client, f"{base}/t")
    marker = client.call(rq.create2(f"{base}/marker")).stat
    assert marker.ctime - stat.mtime > 300


def test_a_ttl_node_with_children_stays_until_they_are_gone(client: Client, base: str) -> None:
    client.call(rq.create_ttl(f"{base}/t", 1))
    client.call(rq.create(f"{base}/t/child"))
    for name in ("first", "second"):
        client.call(rq.create_ttl(f"{base}/{name}", 1))
        wait_reaped(client, f"{base}/{name}")
    assert client.call(rq.exists(f"{base}/t")).err == Code.OK
    client.call(rq.delete(f"{base}/t/child"))
    wait_reaped(client, f"{base}/t")


def test_setting_data_gives_a_ttl_node_its_whole_ttl_again(client: Client, base: str) -> None:
    client.call(rq.create_ttl(f"{base}/t", 500))
    client.call(rq.create_ttl(f"{base}/other", 100))
    wait_reaped(client, f"{base}/other")
    touched = client.call(rq.set_data(f"{base}/t", b"again")).stat
    wait_reaped(client, f"{base}/t")
    marker = client.call(rq.create2(f"{base}/marker")).stat
    assert marker.ctime - touched.mtime > 500


def test_a_sequential_ttl_node_is_reaped_too(client: Client, base: str) -> None:
    path = client.call(rq.create_ttl(f"{base}/t", 100, flags=Mode.SEQUENTIAL_TTL)).path
    wait_reaped(client, path)


def test_a_container_made_in_a_multi_is_reaped_too(client: Client, base: str) -> None:
    container = rq.create_container(f"{base}/c")
    client.call(rq.multi(container, rq.create(f"{base}/c/child"), rq.delete(f"{base}/c/child")))
    wait_reaped(client, f"{base}/c")


@pytest.mark.parametrize(
    "make",
    [rq.create_container, lambda path: rq.create_ttl(path, 3_600_000), rq.create],
    ids=["container", "ttl", "plain"],
)
def test_delete_container_deletes_what_is_empty_and_no_ephemeral(
    server: Server, client: Client, other: Client, base: str, make: Callable[[str], Request]
) -> None:
    """In 3.9 it is a delete without a version; that it is a container is not asked."""
    client.call(make(f"{base}/c"))
    if is_delete_container_refused(server, client, f"{base}/c"):
        assert other.call(rq.exists(f"{base}/c")).err == Code.OK
        return
    reply = client.call(rq.delete_container(f"{base}/c"))
    if not DELETE_CONTAINER_WORKS.on(server):
        assert reply.err == Code.BAD_ARGUMENTS
        return
    assert (reply.err, reply.body) == (Code.OK, b"")
    assert client.call(rq.exists(f"{base}/c")).err == Code.NO_NODE
    assert client.call(rq.exists(base)).stat.pzxid == reply.zxid


def test_delete_container_refuses_all_else(server: Server, client: Client, base: str) -> None:
    client.call(rq.create_container(f"{base}/full"))
    client.call(rq.create(f"{base}/full/child"))
    client.call(rq.create(f"{base}/ephemeral", flags=Mode.EPHEMERAL))
    client.call(rq.create_container(f"{base}/kept"))
    expected = {
        f"{base}/full": Code.NOT_EMPTY,
        f"{base}/ephemeral": Code.BAD_VERSION,
        f"{base}/none": Code.NO_NODE,
        "/": Code.BAD_ARGUMENTS,
        "/zookeeper": Code.BAD_ARGUMENTS,
    }
    if is_delete_container_refused(server, client, f"{base}/kept"):
        return
    for path, code in expected.items():
        before = client.call(rq.exists("/")).zxid
        reply = client.call(rq.delete_container(path))
        assert reply.err == (code if DELETE_CONTAINER_WORKS.on(server) else Code.BAD_ARGUMENTS), (
            path
        )
        assert reply.zxid > before


def test_delete_container_needs_delete_on_the_parent(
    server: Server, client: Client, base: str
) -> None:
    client.call(rq.create_container(f"{base}/c"))
    client.call(rq.set_acl(base, READ_ONLY))
    if is_delete_container_refused(server, client, f"{base}/c"):
        return
    reply = client.call(rq.delete_container(f"{base}/c"))
    if not DELETE_CONTAINER_WORKS.on(server):
        assert reply.err == Code.BAD_ARGUMENTS
    else:
        needs_it = DELETE_CONTAINER_NEEDS_DELETE.on(server)
        assert reply.err == (Code.NO_AUTH if needs_it else Code.OK)

"""delete: versions, children, and what it leaves behind."""

from __future__ import annotations

import pytest

from tests.support import requests as rq
from tests.support.records import OPEN, Code, Mode
from tests.support.wire import Client


def test_delete_removes_the_node(client: Client, base: str) -> None:
    client.call(rq.create(f"{base}/n"))
    reply = client.call(rq.delete(f"{base}/n"))
    assert (reply.err, reply.body) == (Code.OK, b"")
    assert client.call(rq.exists(f"{base}/n")).err == Code.NO_NODE
    assert client.call(rq.get_children(base)).names == set()


def test_delete_of_nothing_is_no_node(client: Client, base: str) -> None:
    assert client.call(rq.delete(f"{base}/none")).err == Code.NO_NODE
    assert client.call(rq.delete(f"{base}/none/none")).err == Code.NO_NODE


def test_delete_of_a_parent_is_not_empty(client: Client, base: str) -> None:
    client.call(rq.create(f"{base}/p"))
    client.call(rq.create(f"{base}/p/c"))
    assert client.call(rq.delete(f"{base}/p")).err == Code.NOT_EMPTY
    assert client.call(rq.delete(f"{base}/p", 7)).err == Code.BAD_VERSION
    client.call(rq.delete(f"{base}/p/c"))
    assert client.call(rq.delete(f"{base}/p")).err == Code.OK


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (-1, Code.OK),
        (2, Code.OK),
        (0, Code.BAD_VERSION),
        (1, Code.BAD_VERSION),
        (3, Code.BAD_VERSION),
        (-2, Code.BAD_VERSION),
        ((1 << 31) - 1, Code.BAD_VERSION),
        (-(1 << 31), Code.BAD_VERSION),
    ],
)
def test_delete_compares_the_data_version(
    client: Client, base: str, version: int, code: int
) -> None:
    path = f"{base}/n"
    client.call(rq.create(path))
    client.call(rq.set_data(path, b"1"))
    client.call(rq.set_data(path, b"2"))
    client.call(rq.set_acl(path, OPEN))
    assert client.call(rq.delete(path, version)).err == code
    assert client.call(rq.exists(path)).err == (Code.NO_NODE if code == Code.OK else Code.OK)


@pytest.mark.parametrize("path", ["/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config", ""])
def test_the_servers_own_nodes_cannot_be_deleted(client: Client, path: str) -> None:
    assert client.call(rq.delete(path)).err == Code.BAD_ARGUMENTS


def test_anybody_may_delete_anothers_ephemeral(client: Client, other: Client, base: str) -> None:
    client.call(rq.create(f"{base}/e", flags=Mode.EPHEMERAL))
    assert other.call(rq.delete(f"{base}/e")).err == Code.OK
    assert client.call(rq.get_ephemerals(base)).names == set()


def test_a_node_made_again_starts_anew(client: Client, base: str) -> None:
    path = f"{base}/n"
    first = client.call(rq.create2(path, b"one")).stat
    client.call(rq.set_data(path, b"two"))
    client.call(rq.set_acl(path, OPEN))
    client.call(rq.create(f"{path}/child"))
    client.call(rq.delete(f"{path}/child"))
    client.call(rq.delete(path))
    second = client.call(rq.create2(path, None)).stat
    assert second.czxid > first.czxid
    assert (second.version, second.cversion, second.aversion) == (0, 0, 0)
    assert second.pzxid == second.czxid
    assert client.call(rq.create(f"{path}/n", flags=2)).path == f"{path}/n0000000000"

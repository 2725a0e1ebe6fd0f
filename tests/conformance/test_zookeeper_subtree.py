"""`/` and `/zookeeper` on a server where nothing has happened yet, and afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.conftest import another
from tests.support import requests as rq
from tests.support import wire
from tests.support.records import OPEN, READ_ONLY, Code, EventType, Stat
from tests.support.server import SUPER_CREDENTIALS, Server
from tests.support.wire import Client, events


@pytest.fixture(scope="module")
def fresh(server: Server) -> Iterator[Client]:
    """A session on a new server of the same kind."""
    with another(server) as own, wire.connect(own.address) as client:
        yield client


def first_stat(cversion: int, num_children: int, aversion: int = 0) -> Stat:
    return Stat(0, 0, 0, 0, 0, cversion, aversion, 0, 0, num_children, 0)


@pytest.mark.parametrize(
    ("path", "stat", "children"),
    [
        ("/", first_stat(-1, 1), {"zookeeper"}),
        ("", first_stat(-1, 1), {"zookeeper"}),
        ("/zookeeper", first_stat(-2, 2), {"config", "quota"}),
        ("/zookeeper/quota", first_stat(0, 0), set()),
        ("/zookeeper/config", first_stat(0, 0, aversion=-1), set()),
    ],
)
def test_a_new_server_has_these_nodes(
    fresh: Client, path: str, stat: Stat, children: set[str]
) -> None:
    reply = fresh.call(rq.get_children2(path))
    assert (reply.stat, reply.names) == (stat, children)
    assert fresh.call(rq.get_data(path)).data == b""
    acl = READ_ONLY if path == "/zookeeper/config" else OPEN
    assert fresh.call(rq.get_acl(path)).acl == acl


def test_a_new_server_counts_three_nodes_below_the_root(fresh: Client) -> None:
    assert fresh.call(rq.get_all_children_number("/")).number == 3
    assert fresh.call(rq.get_all_children_number("")).number == 4
    assert fresh.call(rq.get_all_children_number("/zookeeper")).number == 2


def test_the_first_sequence_number_under_the_root_is_zero(fresh: Client) -> None:
    """The server's own nodes do not count: nobody created them."""
    assert fresh.call(rq.create("/n", flags=2)).path == "/n0000000000"
    stat = fresh.call(rq.exists("/")).stat
    assert (stat.cversion, stat.num_children) == (0, 2)
    assert fresh.call(rq.create("/zookeeper/n", flags=2)).path == "/zookeeper/n0000000000"
    assert fresh.call(rq.exists("/zookeeper")).stat.cversion == -1


def test_the_roots_data_can_be_set(client: Client, other: Client) -> None:
    other.call(rq.get_data("/", watch=True))
    before = client.call(rq.exists("/")).stat
    after = client.call(rq.set_data("/", b"root")).stat
    assert (after.version, after.data_length) == (before.version + 1, 4)
    assert client.call(rq.get_data("")).data == b"root"
    assert other.drain() == events((EventType.DATA_CHANGED, "/"))
    client.call(rq.set_data("/", b""))


def test_nodes_can_be_made_below_zookeeper(client: Client) -> None:
    assert client.call(rq.create("/zookeeper/own")).err == Code.OK
    assert client.call(rq.create("/zookeeper/own/child")).err == Code.OK
    assert client.call(rq.set_data("/zookeeper", b"x")).err == Code.OK
    assert client.call(rq.set_data("/zookeeper", b"")).err == Code.OK
    assert client.call(rq.delete("/zookeeper/own/child")).err == Code.OK
    assert client.call(rq.delete("/zookeeper/own")).err == Code.OK


def test_the_configuration_is_read_only_and_empty(client: Client) -> None:
    assert client.call(rq.get_data("/zookeeper/config")).data == b""
    assert client.call(rq.set_data("/zookeeper/config", b"x")).err == Code.NO_AUTH
    assert client.call(rq.create("/zookeeper/config/n")).err == Code.NO_AUTH
    assert client.call(rq.set_acl("/zookeeper/config", OPEN)).err == Code.NO_AUTH
    assert client.call(rq.delete("/zookeeper/config")).err == Code.BAD_ARGUMENTS


def test_the_super_user_may_write_the_configuration(fresh: Client) -> None:
    assert fresh.call(rq.auth("digest", SUPER_CREDENTIALS)).err == Code.OK
    assert fresh.call(rq.set_data("/zookeeper/config", b"x")).stat.version == 1
    assert fresh.call(rq.delete("/zookeeper/config")).err == Code.BAD_ARGUMENTS
    assert fresh.call(rq.set_acl("/zookeeper/config", OPEN)).stat.aversion == 0


@pytest.mark.parametrize("path", ["/zookeeper/quota/none", "/zookeeper/none", "/zookeeper/"])
def test_only_four_paths_are_protected(client: Client, path: str) -> None:
    assert client.call(rq.delete(path)).err == Code.NO_NODE


def test_creating_the_servers_own_nodes_again(client: Client) -> None:
    for path in ("/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"):
        assert client.call(rq.create(path)).err == Code.NODE_EXISTS

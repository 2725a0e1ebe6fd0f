"""The bystander of the benchmark sees how long its requests wait, beside whatever goes on."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace

import pytest

from bench import programs, servers, zkload
from bench.servers import Server, running
from bench.zkload import Cell
from paddock.testing import FaultProxy
from tests.support import requests as rq
from tests.support.wire import connect

PROBED = "/zkload/probed"
HELD_S = 0.25
HELD_MS = HELD_S * 1000
EPHEMERALS = 1_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if shutil.which("gcc") is None:
        missing = "gcc is missing (Debian: apt-get install gcc)"
        pytest.skip(missing)
    programs.build()
    server = servers.paddock(tmp_path_factory.mktemp("tails") / "paddock")
    with running(server):
        yield server


@pytest.fixture
def proxy(server: Server) -> Iterator[FaultProxy]:
    with FaultProxy(("127.0.0.1", server.port), seen_max=1) as proxy:
        yield proxy


def test_a_get_that_is_held_beside_a_load_is_the_longest_wait(
    server: Server, proxy: FaultProxy
) -> None:
    proxy.when(operation="get", path=PROBED, nth=3).delay(HELD_S)
    behind = replace(server, port=proxy.address[1])
    found = zkload.load(behind, Cell("exists", 2, 2), 0.05, 0, beside_s=0.3)
    assert found.bystander is not None
    assert found.bystander.longest_ms >= found.bystander.p999_ms
    assert found.bystander.longest_ms >= HELD_MS
    # The load has other connections.
    assert found.ops_per_s > 0
    assert zkload.load(server, Cell("exists", 2, 2), 0.05, 0).bystander is None


@pytest.mark.parametrize("op", ["get", "set"])
def test_what_is_held_beside_watchers_is_the_longest_wait_of_its_operation(
    server: Server, proxy: FaultProxy, op: str
) -> None:
    proxy.when(operation=op, path=PROBED, nth=3).delay(HELD_S)
    found = zkload.probe_watched(replace(server, port=proxy.address[1]), 5, 0.3)
    waits = {"get": found.get, "set": found.set}
    assert waits[op].longest_ms >= HELD_MS
    assert found.longest_ms == max(one.longest_ms for one in waits.values())
    assert min(one.longest_ms for one in waits.values()) > 0


def test_watchers_are_told_for_as_long_as_the_bystander_asks(server: Server) -> None:
    with connect(("127.0.0.1", server.port)) as client:
        before = client.call(rq.exists("/zkload/d")).stat.version
        zkload.probe_watched(server, 5, 0.3)
        # One set of the preparation, one for each round.
        assert client.call(rq.exists("/zkload/d")).stat.version > before + 2


def test_an_expiry_is_over_when_all_nodes_are_gone(server: Server) -> None:
    with connect(("127.0.0.1", server.port)) as client:
        before = client.call(rq.get_children("/zkload")).names
        found = zkload.probe_expiry(server, EPHEMERALS, 0.05)
        assert found.get.longest_ms > 0
        [new] = client.call(rq.get_children("/zkload")).names - before
        stat = client.call(rq.exists(f"/zkload/{new}")).stat
        assert (stat.num_children, stat.cversion) == (0, 2 * EPHEMERALS)

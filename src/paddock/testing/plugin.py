"""The fixtures that pytest has wherever Paddock is installed. `pytest --fixtures` lists them.

    def test_a_lock_is_lost_with_its_session(paddock_server, paddock_kazoo):
        holder, other = paddock_kazoo(), paddock_kazoo()
        holder.Lock("/lock").acquire()
        paddock_server.expire(holder)
        assert other.Lock("/lock").acquire(timeout=10)

pytest imports this module in every run; `paddock` and `paddock.testing` import the rest when it is
first used. It has fixtures only, no hooks: other tests are not affected.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import paddock
from paddock import testing

# What the proxy of the shared server remembers: it is there for the whole run.
_SEEN_MAX = 1000


@pytest.fixture
def paddock_server(request: pytest.FixtureRequest) -> Iterator[testing.FaultyServer]:
    """A server of this test's own, empty and in memory: `paddock.testing.FaultyServer`.

    `paddock_server.hosts` is what clients connect to, those of kazoo as well. `expire(session)`,
    `partition(client)`, `drop_reply(operation)` and `heal()` are what can be done to them.
    """
    with testing.FaultyServer() as server:
        yield server
        _tell(request, server)


@pytest.fixture
def paddock_hosts(paddock_server: testing.FaultyServer) -> str:
    """The connection string of `paddock_server`."""
    return paddock_server.hosts


@pytest.fixture
def paddock_connect(
    paddock_server: testing.FaultyServer,
) -> Iterator[Callable[..., paddock.sync.Client]]:
    """A function that gives a new blocking client of `paddock_server`, connected.

    It takes what `paddock.sync.connect` takes but the hosts. They are closed with the test.
    """
    with contextlib.ExitStack() as clients:
        yield lambda **options: clients.enter_context(
            paddock.sync.connect(paddock_server.hosts, **options)
        )
        _let_back(paddock_server)


@pytest.fixture
def paddock_client(paddock_connect: Callable[..., paddock.sync.Client]) -> paddock.sync.Client:
    """A blocking client of `paddock_server`, connected."""
    return paddock_connect()


@pytest.fixture
def paddock_kazoo(paddock_server: testing.FaultyServer) -> Iterator[Callable[..., Any]]:
    """A function that gives a new `KazooClient` of `paddock_server`, started.

    It takes what `KazooClient` takes but the hosts. They are stopped with the test.
    """
    from kazoo.client import KazooClient

    with contextlib.ExitStack() as clients:

        def start(**options: Any) -> Any:
            client = KazooClient(paddock_server.hosts, **options)
            clients.callback(client.close)
            clients.callback(client.stop)
            client.start()
            return client

        yield start
        _let_back(paddock_server)


@pytest.fixture(scope="session")
def paddock_shared_server() -> Iterator[testing.FaultyServer]:
    """A server for the whole run, for fixtures that live longer than a test.

    In a run of several processes each has its own. `paddock_shared_hosts` keeps tests apart.
    """
    with testing.FaultyServer(seen_max=_SEEN_MAX) as server:
        yield server


@pytest.fixture(scope="session")
def _paddock_numbers() -> Iterator[int]:
    return itertools.count(1)


@pytest.fixture
def paddock_shared_hosts(
    request: pytest.FixtureRequest,
    paddock_shared_server: testing.FaultyServer,
    _paddock_numbers: Iterator[int],
) -> Iterator[str]:
    """The connection string of `paddock_shared_server`, with a chroot of this test's own.

    It is an empty node, which is deleted with all that is in it after the test.
    """
    chroot = f"/test-{next(_paddock_numbers)}"
    earlier = max((one.number for one in paddock_shared_server.proxy.requests), default=0)
    with paddock.sync.connect(paddock_shared_server.hosts) as client:
        client.create(chroot)
    yield paddock_shared_server.hosts + chroot
    _tell(request, paddock_shared_server, after=earlier)
    paddock_shared_server.heal()
    with paddock.sync.connect(paddock_shared_server.hosts) as client:
        client.delete_tree(chroot)


@pytest.fixture
def paddock_virtual_time(request: pytest.FixtureRequest) -> Iterator[testing.VirtualTime]:
    """An event loop in virtual time: `paddock_virtual_time.run(scenario())` waits for nothing.

    A test that is itself an `async def` runs in it with `paddock.testing.in_virtual_time`.
    """
    if inspect.iscoroutinefunction(request.function):
        pytest.fail(
            f"{request.node.nodeid}: time is real here;"
            " put @paddock.testing.in_virtual_time on the test",
            pytrace=False,
        )
    time = testing.VirtualTime()
    try:
        yield time
    finally:
        time.close()


@pytest.fixture
def paddock_virtual_server(
    request: pytest.FixtureRequest, paddock_virtual_time: testing.VirtualTime
) -> Iterator[testing.VirtualServer]:
    """A server of this test's own in virtual time: `paddock.testing.VirtualServer`."""
    server = testing.VirtualServer()
    paddock_virtual_time.run(server.start())
    yield server
    _tell(request, server)
    paddock_virtual_time.run(server.stop())


def _let_back(server: testing.FaultyServer) -> None:
    """Let all clients reach the server: without it they are slow to close."""
    server.heal()
    if not server.is_running:
        server.start()


def _tell(
    request: pytest.FixtureRequest,
    server: testing.FaultyServer | testing.VirtualServer,
    *,
    after: int = 0,
) -> None:
    """Have pytest show what came by, should the test have failed."""
    if recent := server.recent(after):
        request.node.add_report_section("teardown", "paddock", recent)

"""The servers under test, and fresh ground for every test.

A test gets `server`, `base` (an empty node of its own below the root) and `connect`, which opens
sessions that end with the test. Without Apache ZooKeeper its part is skipped, on CI it fails.

`apache` is Debian's Apache ZooKeeper, of whichever release. Three more servers: the one of 3.9 that
is fetched, in `make test-all`; a member of an ensemble of Debian's; and a member of three Paddocks.
`on_ensemble.py` says of the last two for which tests, and when.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Final

import pytest

from tests.conformance import on_ensemble
from tests.conformance.differences import DELETE_CONTAINER_IS_ANSWERED, LONE_CHECK_IS_KNOWN
from tests.conformance.on_ensemble import When
from tests.support import requests as rq
from tests.support import wire
from tests.support.apache import ApacheServer
from tests.support.apache39 import ApacheServer39
from tests.support.curator import DEBIANS, FETCHED, compiled
from tests.support.members import Ensemble
from tests.support.paddock_cluster import PaddockCluster, PaddockMember
from tests.support.paddock_server import PaddockServer
from tests.support.records import Code
from tests.support.server import Options, Server, ServerFailedError, ServerMissingError

SERVERS: Final[dict[str, type[Server]]] = {
    "paddock": PaddockServer,
    "apache": ApacheServer,
    "apache-3.9": ApacheServer39,
}

_FOREIGN: Final = (pytest.mark.judge, pytest.mark.foreign)
_CLUSTER: Final = (pytest.mark.judge, pytest.mark.cluster)
_MARKS: Final[Mapping[str, tuple[pytest.MarkDecorator, ...]]] = {
    "paddock": (),
    "apache": _FOREIGN,
    "apache-3.9": (*_FOREIGN, pytest.mark.long),
}
#: For fixtures that start servers of their own.
ONE_SERVER_EACH: Final = [pytest.param(name, marks=marks) for name, marks in _MARKS.items()]

Connect = Callable[..., wire.Client]

_ENSEMBLES: Final = pytest.StashKey[dict[str, Ensemble]]()

_numbers = itertools.count()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every test that asks for `server` runs on each, with the Curator that goes with it."""
    if "server" not in metafunc.fixturenames:
        return
    marks = dict(_MARKS)
    module = metafunc.module.__name__.rpartition(".")[2]
    for service, lists in on_ensemble.SERVICES.items():
        when = lists.when(module, metafunc.function.__name__)
        if when is not When.NEVER:
            long = [pytest.mark.long] if when is When.LONG_RUNS else []
            marks[service] = (*(_FOREIGN if service == "ensemble" else _CLUSTER), *long)
    if "curator" not in metafunc.fixturenames:
        servers = [pytest.param(name, marks=each) for name, each in marks.items()]
        metafunc.parametrize("server", servers, indirect=True, scope="session")
        return
    # Each server with the Curator of its time, and ours with both.
    pairs = [
        pytest.param(name, FETCHED if name == "apache-3.9" else DEBIANS, marks=each)
        for name, each in marks.items()
    ]
    new = pytest.param("paddock", FETCHED, marks=[pytest.mark.judge, pytest.mark.long])
    metafunc.parametrize(("server", "curator"), [*pairs, new], indirect=True, scope="session")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Function, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Begin with a new ensemble behind a test that failed on it.

    There are requests after which a follower answers nobody any more, and some that end the whole
    ensemble at each start: every later test would fail as well, many of them after a deadline.
    Once in a long while one answers nothing for no such reason; its threads are to tell why.
    """
    report = yield
    name = item.callspec.params.get("server") if "callspec" in vars(item) else None
    ensemble = item.session.stash.get(_ENSEMBLES, {}).get(str(name))
    if ensemble is not None and report.failed and report.when != "teardown":
        for member in ensemble.members:
            if member.running:
                report.sections.append((f"what {member!r} does", member.thread_dump()))
        # If even that fails, the next test says so.
        with contextlib.suppress(ServerFailedError):
            ensemble.renew()
    return report


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """The server under test, one after the other."""
    shared = request.param.replace("-", "_").replace(".", "")
    running = request.getfixturevalue(f"shared_{shared}")
    if isinstance(running, Ensemble):
        request.session.stash.setdefault(_ENSEMBLES, {})[running.name] = running
        # Behind a follower is the longer way: its writes pass through the leader.
        running = running.followers()[0]
    assert isinstance(running, Server)
    yield running
    assert running.alive, f"{running.name} died during the run:\n{running.log_tail()}"


@pytest.fixture(scope="session")
def curator(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that runs one of Curator's programs, without its name and what it takes."""
    try:
        return compiled(tmp_path_factory.mktemp("curator"), request.param)
    except ServerMissingError as missing:
        pytest.skip(str(missing))


@pytest.fixture
def connect(server: Server) -> Iterator[Connect]:
    """Open sessions; they are closed when the test is over."""
    clients: list[wire.Client] = []

    def open_session(**options: object) -> wire.Client:
        client = wire.connect(server.address, **options)  # type: ignore[arg-type]
        clients.append(client)
        return client

    yield open_session
    for client in clients:
        with contextlib.suppress(OSError, wire.ConnectionClosedError, AssertionError):
            client.close()
        client.disconnect()


@pytest.fixture
def addresses(server: Server, request: pytest.FixtureRequest) -> list[tuple[str, int]]:
    """Where clients connect whose recipe works across servers: to any of a cluster."""
    if isinstance(server, PaddockMember):
        cluster: PaddockCluster = request.getfixturevalue("shared_cluster")
        return cluster.addresses
    return [server.address]


@contextlib.contextmanager
def another(server: Server, options: Options | None = None) -> Iterator[Server]:
    """Start one of the same kind for a test alone; of several, it is a follower of others."""
    if isinstance(server, PaddockMember):
        with PaddockCluster(options or Options()) as cluster:
            yield cluster.followers()[0]
    else:
        with SERVERS[server.name](options) as own:
            yield own


def is_lone_check_refused(server: Server, client: wire.Client) -> bool:
    """Return whether a check outside a multi is an unknown request, having seen that it is."""
    if LONE_CHECK_IS_KNOWN.on(server):
        return False
    assert client.call(rq.check("/")).err == Code.UNIMPLEMENTED
    client.wait_closed()
    return True


def is_delete_container_refused(server: Server, client: wire.Client, path: str) -> bool:
    """Return whether no client may delete a container as servers do, having seen that it is so."""
    if DELETE_CONTAINER_IS_ANSWERED.on(server):
        return False
    client.send(rq.delete_container(path))
    client.wait_closed()
    return True


@pytest.fixture
def client(connect: Connect) -> wire.Client:
    """One session."""
    return connect()


@pytest.fixture
def other(connect: Connect) -> wire.Client:
    """A second session."""
    return connect()


@pytest.fixture
def base(server: Server) -> str:
    """A fresh node that anybody may do anything with."""
    path = f"/case{next(_numbers):04d}"
    with wire.connect(server.address) as client:
        assert client.call(rq.create(path)).path == path
        client.close()
    return path

"""The servers under test, each started once a run, and fresh ground for every test.

A test gets `server`, `base` (an empty node of its own below the root) and `connect`, which opens
sessions that end with the test. Without Apache ZooKeeper its half is skipped, on CI it fails.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from tests.support import requests as rq
from tests.support import wire
from tests.support.apache import ApacheServer
from tests.support.paddock_server import PaddockServer
from tests.support.server import Server, ServerMissingError

SERVERS: Final[dict[str, type[Server]]] = {"paddock": PaddockServer, "apache": ApacheServer}

Connect = Callable[..., wire.Client]

_numbers = itertools.count()


@pytest.fixture(
    scope="session", params=["paddock", pytest.param("apache", marks=pytest.mark.judge)]
)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """The server under test, one after the other."""
    try:
        running = SERVERS[request.param]()
        running.__enter__()
    except ServerMissingError as missing:
        if os.environ.get("CI"):
            pytest.fail(str(missing))
        pytest.skip(str(missing))
    with contextlib.ExitStack() as stack:
        stack.push(running)
        yield running
        assert running.alive, f"{running.name} died during the run:\n{running.log_tail()}"


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

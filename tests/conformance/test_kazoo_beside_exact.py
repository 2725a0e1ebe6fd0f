"""kazoo beside a client that asks for exact sessions: it is sent not a byte more.

It goes on with sessions of that client, by id and password, and that client learns of it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient, KazooState

import paddock
from paddock.sync import Client, connect
from paddock.testing import FaultProxy
from tests.support.exact_neighbour import ANSWER_BYTES, THEIRS, ExactNeighbour, answers
from tests.support.kazoo_clients import DEADLINE_S, KazooClients, watch_states
from tests.support.paddock_server import PaddockServer
from tests.support.server import Server


@pytest.fixture
def neighbour(server: Server) -> Iterator[ExactNeighbour]:
    with ExactNeighbour(server.address) as neighbour:
        assert neighbour.is_exact == isinstance(server, PaddockServer)
        yield neighbour


@pytest.fixture
def way(server: Server) -> Iterator[FaultProxy]:
    """The way of kazoo to the server."""
    with FaultProxy(server.address) as way:
        yield way


@pytest.fixture
def clients(way: FaultProxy) -> Iterator[KazooClients]:
    with KazooClients(way.address) as clients:
        yield clients
    assert {len(answer) for answer in answers(way)} == {ANSWER_BYTES}


@pytest.fixture
def ours_way(server: Server) -> Iterator[FaultProxy]:
    with FaultProxy(server.address) as way:
        yield way


@pytest.fixture
def ours(ours_way: FaultProxy) -> Iterator[Client]:
    """A session of our client, exact where there are such."""
    with connect(ours_way.hosts, exact=True, session_timeout=60) as client:
        yield client


def heir_of(clients: KazooClients, ours: Client) -> KazooClient:
    heir = clients.connect(client_id=(ours.session_id, ours.session_password))
    assert heir.client_id == (ours.session_id, ours.session_password)
    return heir


def test_sessions_are_opened_attached_again_and_written_in(
    clients: KazooClients, neighbour: ExactNeighbour, way: FaultProxy, base: str
) -> None:
    client = clients.connect()
    session = client.client_id
    states = watch_states(client)
    for version in range(3):
        assert client.set(base, b"", version=version).version == version + 1
        way.cut()
        states.take_until(lambda state: state == KazooState.CONNECTED)
    assert client.client_id == session
    assert len(answers(way)) >= 4


def test_an_exact_session_goes_on_in_kazoo_and_there_again(
    clients: KazooClients, neighbour: ExactNeighbour
) -> None:
    number, password, path = neighbour.hand_over().split()
    session = int(number, 16), bytes.fromhex(password)
    heir = clients.connect(client_id=session)
    assert heir.client_id == session
    assert heir.exists(path).owner_session_id == session[0]
    assert heir.set(path, b"once", version=1).version == 2
    states = watch_states(heir)
    clients.cut(heir)
    states.take_until(lambda state: state == KazooState.CONNECTED)
    assert heir.client_id == session
    assert heir.set(path, THEIRS, version=2).version == 3
    clients.cut_off(heir)
    assert neighbour.take_back() == "done"


def test_who_takes_an_exact_session_over_and_writes_nothing_hides_no_outcome(
    clients: KazooClients, ours: Client, ours_way: FaultProxy, base: str
) -> None:
    fault = ours_way.when(operation="set").cut_after(stay_away=True)
    writing = clients.run(ours.set, base, b"ours", version=0)
    fault.wait()
    heir = heir_of(clients, ours)
    assert heir.get(base)[0] == b"ours"
    clients.cut_off(heir)
    ours_way.heal()
    if ours.is_exact:
        assert writing.result(DEADLINE_S).version == 1
    else:
        assert isinstance(writing.exception(DEADLINE_S), paddock.ConnectionLostError)
    assert ours.set(base, b"ours", version=1).version == 2


def test_who_ends_an_exact_session_ends_it_for_its_owner(
    clients: KazooClients, ours: Client, ours_way: FaultProxy, base: str
) -> None:
    ours.create(f"{base}/e", ephemeral=True)
    ours_way.refuse()
    heir_of(clients, ours).stop()
    ours_way.heal()
    with pytest.raises(paddock.SessionExpiredError):
        ours.exists(base)
    assert clients.connect().exists(f"{base}/e") is None

"""A client that asks for an exact session, on Apache ZooKeeper: it has an ordinary one.

On one server and on an ensemble, each with both of upstream's connection factories: they read the
handshake in different ways.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from random import Random
from typing import Final

import pytest

from paddock import Client, ConnectionLostError, NoNodeError, connect
from paddock.protocol import opcodes
from paddock.protocol.exact import ASKS_EXACT
from paddock.protocol.jute import Reader
from paddock.protocol.records import ConnectRequest
from paddock.testing import FaultProxy
from tests.support.apache import ApacheServer
from tests.support.ensemble import ENSEMBLE_OPTIONS, ApacheEnsemble
from tests.support.judges import skipped_where_missing
from tests.support.members import Ensemble
from tests.support.recipes import run
from tests.support.server import Options, Server

pytestmark = pytest.mark.judge

REQUEST_BYTES: Final = 45
REPLY_BYTES: Final = 37

# A thread of each factory.
NIO: Final = "NIOServerCxnFactory"
NETTY: Final = "EventLoopGroup"

_NETTY: Final = (("serverCnxnFactory", "org.apache.zookeeper.server.NettyServerCnxnFactory"),)

_numbers = itertools.count()


@dataclasses.dataclass(frozen=True, slots=True)
class Service:
    """Where its members are, or one server twice; and what tells of its factory."""

    addresses: list[tuple[str, int]]
    thread: str
    dump: Callable[[], str]


@contextlib.contextmanager
def started(kind: str, request: pytest.FixtureRequest) -> Iterator[Service]:
    if kind == "apache":
        server: Server = request.getfixturevalue("shared_apache")
        assert isinstance(server, ApacheServer)
        yield Service([server.address] * 2, NIO, server.thread_dump)
    elif kind == "apache-netty":
        with ApacheServer(Options(extra=_NETTY)) as server:
            yield Service([server.address] * 2, NETTY, server.thread_dump)
    elif kind == "ensemble":
        ensemble: Ensemble = request.getfixturevalue("shared_ensemble")
        yield Service(ensemble.addresses, NIO, ensemble.members[0].thread_dump)
    else:
        with ApacheEnsemble(dataclasses.replace(ENSEMBLE_OPTIONS, extra=_NETTY)) as ensemble:
            yield Service(ensemble.addresses, NETTY, ensemble.members[0].thread_dump)


@pytest.fixture(
    scope="module",
    params=[
        "apache",
        "apache-netty",
        "ensemble",
        pytest.param("ensemble-netty", marks=pytest.mark.long),
    ],
)
def service(request: pytest.FixtureRequest) -> Iterator[Service]:
    with skipped_where_missing(), started(request.param, request) as found:
        yield found


@asynccontextmanager
async def opened(service: Service) -> AsyncIterator[tuple[Client, list[FaultProxy], str]]:
    """A client on its way to each member, in their order, and a node of its own."""
    async with contextlib.AsyncExitStack() as stack:
        ways = [
            await stack.enter_async_context(FaultProxy(address)) for address in service.addresses
        ]
        hosts = ",".join(way.hosts for way in ways)
        client = connect(hosts, exact=True, random=Random(1), session_timeout=30)
        await stack.enter_async_context(client)
        path = f"/exact{next(_numbers)}"
        await client.create(path)
        # The client tries them in an order of its own.
        ways.sort(key=lambda way: not handshakes(way))
        yield client, ways, path


def handshakes(*ways: FaultProxy) -> list[ConnectRequest]:
    return [
        ConnectRequest.read(Reader(seen.payload))
        for way in ways
        for seen in way.requests
        if seen.operation == opcodes.CREATE_SESSION
    ]


def test_the_servers_have_the_connection_factory_that_is_meant(service: Service) -> None:
    dump = service.dump()
    assert [name for name in (NIO, NETTY) if name in dump] == [service.thread]


def test_the_session_is_an_ordinary_one_from_the_first_attempt(service: Service) -> None:
    async def scenario() -> None:
        async with opened(service) as (client, ways, _):
            assert not client.is_exact
            (asked,) = handshakes(*ways)
            assert (asked.session_id, asked.password) == (0, ASKS_EXACT)
            (answer,) = (
                one for one in ways[0].replies if one.request.operation == opcodes.CREATE_SESSION
            )
            assert (len(answer.request.payload), len(answer.payload)) == (
                REQUEST_BYTES,
                REPLY_BYTES,
            )
            assert client.session_password not in (ASKS_EXACT, bytes(16))

    run(scenario)


def test_it_is_attached_again_to_the_same_member_and_to_another(service: Service) -> None:
    async def scenario() -> None:
        async with opened(service) as (client, ways, path):
            session, password = client.session_id, client.session_password
            await client.create(f"{path}/e", ephemeral=True)
            first, *others = ways
            for way in others:
                way.refuse()
            first.cut()
            await client.sync()
            assert (await client.set(path, b"here")).version == 1
            assert handshakes(*others) == []
            first.refuse()
            for way in others:
                way.heal()
            await client.sync()
            assert (await client.set(path, b"there")).version == 2
            again = handshakes(*ways)[1:]
            assert len(again) >= 2
            for asked in again:
                # As any client asks.
                assert (asked.protocol_version, asked.session_id) == (0, session)
                assert asked.password == password
            assert (client.session_id, client.is_exact) == (session, False)
            stat = await client.exists(f"{path}/e")
            assert stat is not None
            assert stat.ephemeral_owner == session

    run(scenario)


def test_its_writes_are_those_of_an_ordinary_session(service: Service) -> None:
    async def scenario() -> None:
        async with opened(service) as (client, ways, path):
            assert await client.create(f"{path}/n-", sequential=True) == f"{path}/n-0000000000"
            stats = [client.set(path, b"%d" % number) for number in range(300)]
            assert [(await stat).version for stat in stats] == list(range(1, 301))
            made, written = await (
                client.transaction().create(f"{path}/a").set(path, b"", version=300).commit()
            )
            assert (made, written.version) == (f"{path}/a", 301)
            await client.delete(f"{path}/a")
            with pytest.raises(NoNodeError):
                await client.delete(f"{path}/a")
            # A lost reply is lost: the write is not sent again.
            ways[0].when(operation="set").cut_after()
            with pytest.raises(ConnectionLostError, match="outcome is unknown"):
                await client.set(path, b"lost")
            assert (await client.get(path)).stat.version == 302

    run(scenario)

"""A client that can do with a read-only server for a while. In virtual time."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from paddock import ConnectionLostError, SessionState, connect
from paddock.client.session.hosts import Host, HostRing
from paddock.client.session.reconnector import find_read_write, is_read_write
from paddock.protocol import opcodes
from paddock.protocol.records import ConnectRequest
from paddock.server.config.config import ServerConfig
from paddock.testing import EmbeddedServer, FaultProxy, run_virtually
from tests.support.scripted import ScriptedServer, Talk
from tests.unit.client.session.test_session import wait_for

CONFIG = ServerConfig(port=0, four_letter_words=frozenset({"isro"}))
READ_ONLY = SessionState.CONNECTED_READ_ONLY


def read_only_server(
    asked: list[ConnectRequest], session_id: int | None = None
) -> Callable[[Talk], Awaitable[None]]:
    """Lead conversations as a server does that lost its peers: it answers, and knows nobody else.

    A client that comes with a session keeps it.
    """

    async def lead(talk: Talk) -> None:
        request = await talk.grant(session_id=session_id, read_only=True)
        asked.append(request)
        while True:
            xid, operation, _ = await talk.hear_request()
            talk.answer(xid)
            if operation == opcodes.CLOSE_SESSION:
                return

    return lead


def test_a_session_of_a_read_only_server_is_exchanged_for_one_of_the_service() -> None:
    async def scenario() -> None:
        asked: list[ConnectRequest] = []
        lead = read_only_server(asked, session_id=99)
        async with EmbeddedServer(config=CONFIG) as server, ScriptedServer(lead) as lonely:
            await server.stop()
            hosts = f"{lonely.hosts},{server.hosts}"
            async with connect(hosts, read_only=True, random=Random(1)) as client:
                assert client.state is READ_ONLY
                assert client.session_id == 99
                assert client.session_valid_until == -math.inf
                # It goes on as long as it must.
                await asyncio.sleep(300)
                assert client.state is READ_ONLY
                await server.start()
                await wait_for(client, SessionState.CONNECTED)
                # Nobody else has heard of that session, so a new one was asked for.
                assert client.session_id != 99
                assert client.session_valid_until > asyncio.get_running_loop().time()
                await client.create("/written")
            assert [one.read_only for one in asked] == [True]

    run_virtually(scenario())


def test_a_session_of_the_service_survives_a_read_only_server_that_cannot_vouch_for_it() -> None:
    async def scenario() -> None:
        asked: list[ConnectRequest] = []
        loop = asyncio.get_running_loop()
        async with (
            EmbeddedServer(config=CONFIG) as server,
            FaultProxy(server.address) as proxy,
            ScriptedServer(read_only_server(asked)) as lonely,
        ):
            # With this seed the proxy is tried first.
            hosts = f"{proxy.hosts},{lonely.hosts}"
            async with connect(hosts, read_only=True, session_timeout=30, random=Random(3)) as one:
                assert one.state is SessionState.CONNECTED
                session_id = one.session_id
                await asyncio.sleep(1)
                before = one.session_valid_until
                proxy.refuse()
                await wait_for(one, READ_ONLY)
                assert asked[0].session_id == session_id == one.session_id
                await asyncio.sleep(15)
                assert one.state is READ_ONLY
                assert one.session_valid_until == before
                proxy.heal()
                await wait_for(one, SessionState.CONNECTED)
                assert one.session_id == session_id
                assert one.session_valid_until > loop.time()

    run_virtually(scenario())


def test_whoever_may_want_to_write_does_not_stay_with_a_read_only_server() -> None:
    async def scenario() -> None:
        asked: list[ConnectRequest] = []
        async with ScriptedServer(read_only_server(asked, session_id=99)) as lonely:
            client = connect(lonely.hosts, random=Random(1))
            with pytest.raises(ConnectionLostError, match="it is in read-only mode"):
                await client.start()
            assert asked
            assert not asked[0].read_only

    run_virtually(scenario())


def test_servers_are_asked_ever_more_rarely() -> None:
    async def scenario() -> None:
        asked_at: list[float] = []

        async def lead(talk: Talk) -> None:
            assert await talk.reader.readexactly(4) == b"isro"
            asked_at.append(asyncio.get_running_loop().time())
            talk.writer.write(b"ro")

        async with ScriptedServer(lead) as server:
            host, port = server.hosts.split(":")
            ring = HostRing([Host(host, int(port)), Host("127.0.0.1", 1)], Random(1))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(3600):
                    await find_read_write(ring, Random(1), None, session_timeout=80)
        # Every ten seconds at most, five on average, and each of the two in turn.
        assert asked_at[2] < 2
        assert 3600 / 13 < len(asked_at) < 3600 / 8

    run_virtually(scenario())


def test_a_server_that_does_not_answer_the_question_cannot_be_written_to() -> None:
    async def scenario() -> None:
        async def say_nothing(talk: Talk) -> None:
            await talk.reader.read()

        async def hang_up(talk: Talk) -> None:
            return

        for lead in (say_nothing, hang_up):
            async with ScriptedServer(lead) as server:
                host, port = server.hosts.split(":")
                assert not await is_read_write(Host(host, int(port)))

    run_virtually(scenario())

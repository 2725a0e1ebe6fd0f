"""Connections that are lost again and again: what is repeated, how often, and with which pauses."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from paddock import Client, ConnectionLostError, ServiceError, SessionState, connect
from paddock.protocol import opcodes
from paddock.testing import Direction, EmbeddedServer, FaultProxy, run_virtually
from tests.support.scripted import ScriptedServer, Talk


def test_a_request_that_loses_its_connection_each_time_fails_in_the_end() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            fault = proxy.when(operation="get", path="/poison", times=None).cut_before()
            async with connect(proxy.hosts, random=Random(1)) as client:
                before = client.exists("/")
                poison = client.get("/poison")
                with pytest.raises(ConnectionLostError, match=r"\(so were 9 before it\)"):
                    await poison
                assert len(fault.hits) == 10
                # Nobody else is hurt.
                assert await before is not None
                assert await client.exists("/") is not None

    run_virtually(scenario())


def test_a_request_that_is_too_large_for_the_server_is_not_sent_for_ever() -> None:
    async def scenario() -> None:
        async with (
            EmbeddedServer() as server,
            connect(server.hosts, random=Random(1), max_request_bytes=1 << 21) as client,
        ):
            too_much = b"x" * (1 << 20)
            with pytest.raises(ConnectionLostError, match=r"which may be more than the server"):
                await client.create("/large", too_much)
            with pytest.raises(ConnectionLostError, match=r"which may be more than the server"):
                await client.exists("/" + "x" * (1 << 20))
            assert await client.exists("/large") is None

    run_virtually(scenario())


def test_of_what_was_not_sent_it_is_known_that_it_did_not_happen() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with connect(proxy.hosts, random=Random(1)) as client:
                proxy.when(operation="set").cut_before(stay_away=True)
                with pytest.raises(
                    ConnectionLostError, match=r"set /: .* outcome is unknown"
                ) as sent:
                    await client.set("/", b"sent")
                assert sent.value.may_be_applied
                for _ in range(2):
                    # The first waits for a server; when the second comes, the session may be over.
                    with pytest.raises(ConnectionLostError, match="it was not sent") as unsent:
                        await client.set("/", b"never sent")
                    assert not unsent.value.may_be_applied
                    assert unsent.value.session_may_be_over
                proxy.heal()

    run_virtually(scenario())


def test_a_call_while_the_session_may_be_over_pauses_before_it_fails() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with connect(proxy.hosts, random=Random(1), session_timeout=20) as client:
                proxy.refuse()
                await _until(client, SessionState.OVERDUE)
                loop = asyncio.get_running_loop()
                end, calls = loop.time() + 60, 0
                while loop.time() < end:
                    calls += 1
                    with pytest.raises(ConnectionLostError):
                        await client.get("/")
                assert calls == 60
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await client.get("/")
                proxy.heal()

    run_virtually(scenario())


def test_a_call_that_pauses_is_sent_if_a_server_comes_meanwhile() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server:
            async with connect(server.hosts, random=Random(1), session_timeout=20) as client:
                transport = client._session.dispatcher.transport
                assert transport is not None
                # The session may be over by our clock, and lives on the server.
                client._session._clock.is_overdue = True
                transport.abort()
                await transport.lost
                await asyncio.sleep(0)
                assert client._session.dispatcher.refusal is not None
                asked = client.set("/", b"late")
                given_up = client.set("/", b"given up")
                given_up.cancel()
                assert (await asked).version == 1

    run_virtually(scenario())


def test_calls_that_paused_and_failed_are_not_kept() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with connect(proxy.hosts, random=Random(1)) as client:
                proxy.refuse()
                await _until(client, SessionState.OVERDUE)
                for _ in range(1000):
                    with pytest.raises(ConnectionLostError):
                        await client.get("/")
                assert len(client._session.in_flight.unsent) < 100
                proxy.heal()

    run_virtually(scenario())


def test_a_write_in_flight_when_its_session_ends_may_be_applied_and_one_behind_it_is_not() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with connect(proxy.hosts, random=Random(1), session_timeout=4) as client:
                proxy.when(operation="set").blackhole(Direction.TO_CLIENT)
                sent = client.set("/", b"1")
                await asyncio.sleep(0)
                proxy.blackhole(Direction.TO_CLIENT)
                await client._session.abandon()
                late = client.set("/", b"2")
                for one, may_be in ((sent, True), (late, False)):
                    with pytest.raises(ServiceError) as error:
                        await one
                    assert error.value.may_be_applied == may_be
                proxy.heal()

    run_virtually(scenario())


async def _until(client: Client, wanted: SessionState) -> None:
    async for state in client.states():
        if state is wanted:
            return


def test_a_server_that_takes_us_and_drops_us_is_asked_with_growing_pauses() -> None:
    async def scenario() -> None:
        arrivals: list[float] = []

        async def lead(talk: Talk) -> None:
            arrivals.append(asyncio.get_running_loop().time())
            await talk.grant()
            if len(arrivals) > 1000:
                # Without pauses no time would ever pass.
                await talk.hear()

        async with ScriptedServer(lead) as server:
            async with connect(server.hosts, random=Random(1)):
                await asyncio.sleep(120)
        assert len(arrivals) < 120
        assert arrivals[-1] - arrivals[-10] > 5

    run_virtually(scenario())


def test_a_server_that_was_of_use_is_asked_again_at_once() -> None:
    async def scenario() -> None:
        arrivals: list[float] = []

        async def lead(talk: Talk) -> None:
            arrivals.append(asyncio.get_running_loop().time())
            await talk.grant()
            xid, operation, _ = await talk.hear_request()
            assert operation in (opcodes.SYNC, opcodes.CLOSE_SESSION)
            talk.answer(xid, b"\0\0\0\1/")

        async with ScriptedServer(lead) as server:
            async with connect(server.hosts, random=Random(1)) as client:
                for _ in range(4):
                    await asyncio.sleep(1)
                    await client.sync()
        assert arrivals == [0, 1, 2, 3, 4]

    run_virtually(scenario())

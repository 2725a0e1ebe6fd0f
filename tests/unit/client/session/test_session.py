"""A session over time: its states, and when it may be over. In virtual time."""

from __future__ import annotations

import asyncio
import math
from random import Random
from typing import Any

import pytest

import paddock
from paddock import (
    Client,
    ConnectionLostError,
    Event,
    SessionExpiredError,
    SessionState,
    UsageError,
)
from paddock.errors import SESSION_EXPIRED
from paddock.testing import (
    Direction,
    EmbeddedServer,
    FaultProxy,
    VirtualClockLoop,
    run_virtually,
)
from tests.support.scripted import ScriptedServer, Talk, good_body

# Of virtual time.
DEADLINE_S = 3600

CONNECTED = SessionState.CONNECTED
DISCONNECTED = SessionState.DISCONNECTED
OVERDUE = SessionState.OVERDUE
EXPIRED = SessionState.EXPIRED
CLOSED = SessionState.CLOSED


def connect(hosts: str, **settings: Any) -> Client:
    return paddock.connect(hosts, random=Random(1), **settings)


async def wait_for(client: Client, *wanted: SessionState) -> None:
    """Wait until the session is in one of some states."""
    async with asyncio.timeout(DEADLINE_S):
        async for state in client.states():
            if state in wanted:
                return
    raise AssertionError(f"{wanted} did not come, and will not")


def test_overdue_is_no_number_of_the_protocol() -> None:
    upstream = {-1, 0, 1, 3, 4, 5, 6, 7, -112}
    assert OVERDUE not in upstream
    assert not OVERDUE.is_connected
    assert not OVERDUE.is_final


def test_a_session_that_ended_while_nobody_answered_is_overdue_then_expired() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            seen: list[SessionState] = []
            async with connect(proxy.hosts) as client:
                client.add_listener(seen.append)
                proxy.refuse()
                await wait_for(client, OVERDUE)
                assert asyncio.get_running_loop().time() >= client.session_valid_until
                await asyncio.sleep(60)
                proxy.heal()
                await wait_for(client, EXPIRED)
            assert seen == [DISCONNECTED, OVERDUE, EXPIRED]

    run_virtually(scenario())


def test_a_session_that_lived_on_is_overdue_then_connected() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            seen: list[SessionState] = []
            async with connect(proxy.hosts) as client:
                client.add_listener(seen.append)
                session_id = client.session_id
                # The server hears our attempts, and we do not hear it.
                proxy.blackhole(Direction.TO_CLIENT)
                await wait_for(client, OVERDUE)
                with pytest.raises(ConnectionLostError, match="get /: "):
                    await client.get("/")
                proxy.heal()
                await wait_for(client, CONNECTED)
                assert client.session_id == session_id
                assert client.session_valid_until > asyncio.get_running_loop().time()
                await client.get("/")
            assert seen == [DISCONNECTED, OVERDUE, CONNECTED, CLOSED]

    run_virtually(scenario())


def test_a_loop_that_stood_still_makes_the_session_overdue_until_the_next_answer() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualClockLoop)
        async with EmbeddedServer() as server, connect(server.hosts) as client:
            seen: list[SessionState] = []
            client.add_listener(seen.append)
            asked = client.get("/")
            await asyncio.sleep(1)
            loop.stall(25)
            late = client.get("/")
            await wait_for(client, OVERDUE)
            await wait_for(client, CONNECTED)
            assert seen == [OVERDUE, CONNECTED]
            # Nothing was lost: the connection stood all the time.
            assert (await asked).stat == (await late).stat

    run_virtually(scenario())


def test_a_server_that_needs_long_for_all_that_was_asked_at_once_is_waited_for() -> None:
    async def answer_slowly(talk: Talk) -> None:
        await talk.grant(timeout_ms=10_000)
        while True:
            xid, operation, _ = await talk.hear_request()
            if xid > 0:
                await asyncio.sleep(1)
            talk.answer(xid, good_body(operation))

    async def scenario() -> None:
        async with ScriptedServer(answer_slowly) as server, connect(server.hosts) as client:
            seen: list[SessionState] = []
            client.add_listener(seen.append)
            answers = await asyncio.gather(*(client.exists("/") for _ in range(60)))
            assert len(answers) == 60
            await wait_for(client, CONNECTED)
            # Its own clock could not tell, and it has said so.
            assert seen == [OVERDUE, CONNECTED]
            assert server.talks == 1

    run_virtually(scenario())


def test_whoever_is_told_that_the_session_has_expired_finds_it_expired() -> None:
    async def lead(talk: Talk) -> None:
        await talk.grant()
        asked = await talk.request()
        # As Apache's do: the connection still stands, and will for a moment.
        talk.answer(asked.xid, code=SESSION_EXPIRED)
        await talk.wait_left()

    async def scenario() -> None:
        async with ScriptedServer(lead) as server, connect(server.hosts) as client:
            asked = client.create("/node")
            waiting = client.exists("/")
            with pytest.raises(SessionExpiredError):
                await asked
            assert client.state is EXPIRED
            with pytest.raises(SessionExpiredError):
                await waiting
            assert server.talks == 1

    run_virtually(scenario())


def test_everything_that_waits_fails_when_the_session_is_overdue_and_nobody_is_there() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with connect(proxy.hosts) as client:
                proxy.blackhole()
                outcomes = await asyncio.gather(
                    client.get("/"),
                    client.set("/", b""),
                    client.add_auth("digest", b"a:b"),
                    return_exceptions=True,
                )
                assert [type(one) for one in outcomes] == [ConnectionLostError] * 3
                assert client.state is OVERDUE

    run_virtually(scenario())


def test_watchers_and_the_default_watcher_hear_of_states() -> None:
    async def scenario() -> None:
        heard: list[Event] = []
        default: list[Event] = []
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with connect(proxy.hosts, default_watcher=default.append) as client:
                await client.get("/", watch=heard.append)
                proxy.refuse()
                await wait_for(client, OVERDUE)
                proxy.heal()
                await wait_for(client, EXPIRED)
        assert [event.state for event in heard] == [DISCONNECTED, OVERDUE, EXPIRED]
        assert [event.state for event in default] == [CONNECTED, DISCONNECTED, OVERDUE, EXPIRED]

    run_virtually(scenario())


def test_a_listener_hears_everything_in_order_until_it_is_removed() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server:
            first: list[SessionState] = []
            second: list[SessionState] = []
            client = connect(server.hosts)
            client.add_listener(first.append)
            client.add_listener(first.append)
            client.add_listener(second.append)
            async with client:
                client.remove_listener(second.append)
                client.remove_listener(print)
            assert (first, second) == ([CONNECTED, CLOSED], [CONNECTED])

    run_virtually(scenario())


def test_a_listener_that_fails_hurts_nobody() -> None:
    async def scenario() -> None:
        problems: list[dict[str, Any]] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, problem: problems.append(problem))
        heard: list[SessionState] = []

        def fail(state: SessionState) -> None:
            raise RuntimeError(state.name)

        async with EmbeddedServer() as server:
            client = connect(server.hosts)
            client.add_listener(fail)
            client.add_listener(heard.append)
            async with client:
                await client.get("/")
        assert heard == [CONNECTED, CLOSED]
        assert [str(problem["exception"]) for problem in problems] == ["CONNECTED", "CLOSED"]

    run_virtually(scenario())


def test_a_stream_of_states_begins_with_the_present_and_leaves_none_out() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            client = connect(proxy.hosts)
            early, slow = client.states(), client.states()
            assert await anext(early) is DISCONNECTED
            async with client:
                late = client.states()
                for _ in range(20):
                    proxy.cut()
                    await wait_for(client, DISCONNECTED)
                    await wait_for(client, CONNECTED)
            changes = [CONNECTED, *[DISCONNECTED, CONNECTED] * 20, CLOSED]
            assert [state async for state in early] == changes
            assert [state async for state in slow] == [DISCONNECTED, *changes]
            assert [state async for state in late] == changes
            assert [state async for state in client.states()] == [CLOSED]

    run_virtually(scenario())


def test_the_session_is_valid_for_its_timeout_after_the_last_answered_request_was_sent() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            client = connect(proxy.hosts, session_timeout=12)
            assert client.session_valid_until == -math.inf
            async with client:
                assert client.session_valid_until == loop.time() + 12
                await asyncio.sleep(1)
                fault = proxy.when(operation="get").delay_reply(2)
                asked_at = loop.time()
                asked = client.get("/")
                await fault.happened()
                await asyncio.sleep(1)
                assert client.session_valid_until == asked_at - 1 + 12
                await asked
                assert client.session_valid_until == asked_at + 12
                # Then it pings, every four seconds.
                await asyncio.sleep(10)
                assert client.session_valid_until == asked_at + 8 + 12
            assert client.session_valid_until == -math.inf

    run_virtually(scenario())


@pytest.mark.parametrize("asks", [False, True])
def test_a_connection_that_outlives_its_session_is_left(asks: bool) -> None:
    """Apache ZooKeeper keeps one, and answers pings: with an error, of which nobody may hear."""

    async def scenario() -> None:
        async def lead(talk: Talk) -> None:
            if talk.number:
                await talk.grant(session_id=0, timeout_ms=0)
                return
            await talk.grant()
            while True:
                asked = await talk.hear_request()
                talk.answer(asked.xid, code=paddock.SessionExpiredError.code)

        async with ScriptedServer(lead) as server, connect(server.hosts) as client:
            valid_until = client.session_valid_until
            if asks:
                with pytest.raises(paddock.SessionExpiredError):
                    await client.get("/")
            await wait_for(client, EXPIRED)
            if not asks:
                assert asyncio.get_running_loop().time() < valid_until
            # A client that was told of the expiry does not reconnect to be told again.
            assert server.talks == (1 if asks else 2)

    run_virtually(scenario())


def test_a_client_that_was_closed_before_it_was_opened_stays_closed() -> None:
    async def scenario() -> None:
        client = connect("127.0.0.1:1")
        await client.close()
        with pytest.raises(UsageError, match="a client is opened once"):
            await client.start()
        await asyncio.sleep(DEADLINE_S)
        assert client.state is CLOSED

    run_virtually(scenario())


def test_a_silent_server_does_not_cost_a_session_that_is_shorter_than_we_wanted() -> None:
    """One that is not answered has a part of the time that was granted, not of what we asked."""
    granted_s = 4

    async def scenario() -> None:
        came_at: list[float] = []

        async def lead(talk: Talk) -> None:
            came_at.append(asyncio.get_running_loop().time())
            if talk.number == 1:
                await talk.wait_left()
                return
            await talk.grant(timeout_ms=1000 * granted_s)
            if talk.number == 0:
                return
            await talk.serve()

        async with ScriptedServer(lead) as server, connect(server.hosts, session_timeout=60) as one:
            await wait_for(one, DISCONNECTED)
            await wait_for(one, CONNECTED, OVERDUE)
            assert one.state is CONNECTED
            assert came_at[2] - came_at[0] < granted_s
            await one.close()

    run_virtually(scenario())

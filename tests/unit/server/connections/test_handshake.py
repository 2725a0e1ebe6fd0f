"""Sessions and their connections: how one is attached, moves on, is lost, and comes to its end."""

from __future__ import annotations

import asyncio

from paddock.errors import NO_NODE, OK
from paddock.testing.clock import run_virtually
from tests.support import requests as rq
from tests.support.logs import Durability
from tests.unit.server.harness import FakeClient, Harness, encoded, run


def test_nobody_gets_a_session_that_was_not_written() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = FakeClient(harness)
        client.send_handshake()
        await harness.settle(Durability.NOT_WRITTEN)
        assert client.transport.frames() == []
        assert not client.transport.is_open
        assert len(harness.machine.sessions.by_id) == 0

    run(scenario)


def test_a_session_that_comes_back_leaves_its_old_connection_behind() -> None:
    async def scenario() -> None:
        harness = Harness()
        first = await harness.client()
        second = FakeClient(harness)
        second.send_handshake(first.session, first.password)
        # What the first one sent before it was left is carried out; what it sends later is not.
        first.send(rq.create("/late"))
        await harness.settle()
        assert second.take_handshake().session_id == first.session
        assert not first.transport.is_open
        assert first.replies() == []
        second.send(rq.exists("/late"))
        assert second.replies()[0][1] == NO_NODE

    run(scenario)


def test_of_two_connections_that_want_a_session_the_later_has_it() -> None:
    async def scenario() -> None:
        harness = Harness()
        first = await harness.client()
        second, third = FakeClient(harness), FakeClient(harness)
        second.send_handshake(first.session, first.password)
        third.send_handshake(first.session, first.password)
        await harness.settle()
        assert not second.transport.is_open
        assert third.transport.is_open
        third.send(rq.create("/n"))
        await harness.settle()
        assert len(third.transport.frames()) == 2

    run(scenario)


def test_a_wrong_password_does_not_disturb_the_owner() -> None:
    async def scenario() -> None:
        harness = Harness()
        owner = await harness.client()
        thief = FakeClient(harness)
        assert (await thief.attach(owner.session, b"wrong")).session_id == 0
        assert not thief.transport.is_open
        owner.send(rq.exists("/"))
        assert owner.replies()[0][1] == OK

    run(scenario)


def test_what_comes_with_the_handshake_is_served_after_it() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = FakeClient(harness)
        client.send_handshake()
        assert not client.transport.is_reading_now
        client.receive(encoded(7, rq.exists("/")))
        await harness.settle()
        assert len(client.transport.frames()) == 2
        assert client.transport.is_reading_now

    run(scenario)


def test_a_session_whose_connection_is_lost_while_we_held_it_has_its_whole_timeout() -> None:
    async def scenario() -> None:
        harness = Harness()
        harness.service.tracker.start()
        client = await harness.client()
        client.send(*[rq.set_data("/", b"")] * 10_001)
        assert not client.transport.is_reading_now
        await asyncio.sleep(5.5)
        client.connection.connection_lost(None)
        await asyncio.sleep(5.9)
        await harness.settle()
        assert client.session in harness.machine.sessions.by_id
        harness.service.tracker.stop()

    run_virtually(scenario())


def test_a_lost_connection_takes_its_watches_along_and_leaves_its_session() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        client.send(rq.exists("/", watch=True))
        assert harness.watches.data.size == 1
        client.connection.connection_lost(None)
        assert harness.watches.data.size == 0
        assert client.session in harness.machine.sessions.by_id
        assert harness.service.tracker.get(client.session) is not None

    run(scenario)

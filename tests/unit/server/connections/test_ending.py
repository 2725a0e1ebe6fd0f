"""Each end of a connection is written down with its reason, once."""

from __future__ import annotations

import asyncio
import struct

import pytest

from paddock.storage import events
from paddock.storage.events import CONNECTION_ENDED, HANDSHAKE_FAILED, SESSION_ENDED
from tests.support import requests as rq
from tests.support.records import Request
from tests.unit.server.harness import FakeClient, Harness, RecordedEvents, framed, run, turn


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (None, events.EOF),
        (ConnectionResetError(), events.RESET),
        (BrokenPipeError(), events.BROKEN),
    ],
)
def test_a_client_that_is_killed_ends_its_connection(error: Exception | None, reason: str) -> None:
    async def scenario() -> None:
        harness = Harness()
        recorded = RecordedEvents(harness)
        client = await harness.client()
        client.send(rq.ping())
        await asyncio.sleep(1.5)
        recorded.take()
        client.connection.connection_lost(error)
        assert recorded.last(CONNECTION_ENDED) == {
            "session": client.session,
            "address": "127.0.0.1:4711",
            "silent_seconds": 1.5,
            "last": "ping",
            "timeout_ms": 6000,
        }
        assert recorded.take() == [(CONNECTION_ENDED, reason)]

    run(scenario)


@pytest.mark.parametrize("is_answered", [True, False])
def test_it_is_written_down_that_a_client_waited_for_the_log(is_answered: bool) -> None:
    async def scenario() -> None:
        harness = Harness()
        recorded = RecordedEvents(harness)
        client, other = await harness.client(), await harness.client()
        other.send(rq.create("/a"))
        await turn()
        await asyncio.sleep(2.5)
        if not is_answered:
            client.send(rq.create("/b"))
        client.connection.connection_lost(None)
        details = recorded.last(CONNECTION_ENDED)
        assert details.get("log_seconds") == (None if is_answered else 2.5)

    run(scenario)


def test_a_client_that_closes_its_session_ends_both() -> None:
    async def scenario() -> None:
        harness = Harness()
        recorded = RecordedEvents(harness)
        client = await harness.client()
        client.send(rq.create("/a", flags=1), rq.create("/b", flags=1), rq.create("/c"))
        recorded.take()
        client.send(rq.close_session())
        await harness.settle()
        client.connection.connection_lost(None)
        assert recorded.last(SESSION_ENDED)["ephemerals"] == 2
        assert recorded.take() == [
            (SESSION_ENDED, events.CLOSED),
            (CONNECTION_ENDED, events.CLOSED),
        ]

    run(scenario)


def test_a_session_that_is_closed_by_a_client_in_a_hurry_ended_as_such() -> None:
    """It does not wait for the answer."""

    async def scenario() -> None:
        harness = Harness()
        recorded = RecordedEvents(harness)
        client = await harness.client()
        recorded.take()
        client.send(rq.close_session())
        client.connection.connection_lost(None)
        await harness.settle()
        assert recorded.take() == [(CONNECTION_ENDED, events.EOF), (SESSION_ENDED, events.CLOSED)]

    run(scenario)


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (Request(4711, b""), events.PROTOCOL_ERROR),
        (Request(100, b"x"), events.PROTOCOL_ERROR),
        (rq.auth("nonsense", b""), events.AUTHENTICATION),
    ],
)
def test_a_connection_that_we_close_says_why(request_: Request, reason: str) -> None:
    async def scenario() -> None:
        harness = Harness()
        recorded = RecordedEvents(harness)
        client = await harness.client()
        recorded.take()
        client.send(request_)
        await turn()
        assert not client.transport.is_open
        # The transport tells that it is closed.
        client.connection.connection_lost(None)
        assert recorded.take() == [(CONNECTION_ENDED, reason)]

    run(scenario)


def test_frames_that_cannot_be_read_end_a_connection() -> None:
    async def scenario() -> None:
        harness = Harness()
        recorded = RecordedEvents(harness)
        too_large, too_short = await harness.client(), await harness.client()
        recorded.take()
        too_large.receive(struct.pack(">i", 1 << 30))
        too_short.receive(framed(b"1234"))
        assert recorded.take() == [
            (CONNECTION_ENDED, events.TOO_LARGE),
            (CONNECTION_ENDED, events.PROTOCOL_ERROR),
        ]

    run(scenario)


def test_a_client_that_others_have_to_give_way_to_ends() -> None:
    async def scenario() -> None:
        harness = Harness()
        recorded = RecordedEvents(harness)
        deaf, large = await harness.client(), await harness.client()
        recorded.take()
        deaf.connection.drop()
        large.connection.shed()
        assert recorded.take() == [
            (CONNECTION_ENDED, events.NOT_READING),
            (CONNECTION_ENDED, events.OVERLOAD),
        ]

    run(scenario)


def test_a_defect_ends_a_connection_as_such() -> None:
    async def scenario() -> None:
        harness = Harness()
        recorded = RecordedEvents(harness)
        client = await harness.client()
        recorded.take()
        client.handler.abort()
        assert recorded.take() == [(CONNECTION_ENDED, events.FAULT)]

    run(scenario)


def test_a_connection_that_is_no_client_is_no_event() -> None:
    """A port is probed often, and asked by four-letter words."""

    async def scenario() -> None:
        harness = Harness()
        recorded = RecordedEvents(harness)
        harness.service.words = lambda word: iter([b"imok"]) if word == b"ruok" else None
        for said in (b"", b"ruok"):
            probe = FakeClient(harness)
            probe.receive(said)
            probe.connection.connection_lost(None)
        assert recorded.take() == []

    run(scenario)


def test_a_connection_without_a_session_has_failed_at_its_handshake() -> None:
    async def scenario() -> None:
        harness = Harness()
        recorded = RecordedEvents(harness)
        FakeClient(harness)
        await asyncio.sleep(60)
        FakeClient(harness).receive(framed(b"nonsense"))
        FakeClient(harness).receive(struct.pack(">i", 1 << 20))
        gone = FakeClient(harness)
        gone.send_handshake()
        gone.connection.connection_lost(None)
        assert recorded.take() == [
            (HANDSHAKE_FAILED, events.TIMEOUT),
            (HANDSHAKE_FAILED, events.PROTOCOL_ERROR),
            (HANDSHAKE_FAILED, events.PROTOCOL_ERROR),
            (HANDSHAKE_FAILED, events.EOF),
        ]

    run(scenario)


def test_a_connection_for_which_there_is_no_place_has_failed_too() -> None:
    async def scenario() -> None:
        harness = Harness(max_connections=2)
        recorded = RecordedEvents(harness)
        clients = [await harness.client() for _ in range(2)]
        recorded.take()
        FakeClient(harness)
        assert recorded.last(HANDSHAKE_FAILED) == {"address": "127.0.0.1:4711"}
        assert recorded.take() == [(HANDSHAKE_FAILED, events.TOO_MANY)]
        clients[0].connection.connection_lost(None)
        # One that says nothing gives way to the next.
        FakeClient(harness)
        FakeClient(harness)
        assert recorded.take() == [
            (CONNECTION_ENDED, events.EOF),
            (HANDSHAKE_FAILED, events.TOO_MANY),
        ]

    run(scenario)

"""What a handshake writes down: a session opened or attached, or why there was none."""

from __future__ import annotations

import asyncio

from paddock.state.access import user_name
from paddock.storage import events
from paddock.storage.events import (
    CONNECTION_ENDED,
    HANDSHAKE_FAILED,
    SESSION_ATTACHED,
    SESSION_OPENED,
)
from tests.support import requests as rq
from tests.support.logs import Durability
from tests.unit.server.harness import FakeClient, Harness, RecordedEvents, run, turn


def test_a_session_is_opened_and_attached_again() -> None:
    async def scenario() -> None:
        harness = Harness()
        recorded = RecordedEvents(harness)
        first = await harness.client()
        assert recorded.last(SESSION_OPENED) == {
            "session": first.session,
            "address": "127.0.0.1:4711",
            "timeout_ms": 6000,
        }
        first.connection.connection_lost(None)
        await asyncio.sleep(2.5)
        recorded.take()
        await FakeClient(harness).attach(first.session, first.password)
        assert recorded.last(SESSION_ATTACHED) == {
            "session": first.session,
            "address": "127.0.0.1:4711",
            "timeout_ms": 6000,
            "silent_seconds": 2.5,
        }
        assert recorded.take() == [(SESSION_ATTACHED, "")]

    run(scenario)


def test_a_session_that_moves_to_a_newer_connection_leaves_the_older_one() -> None:
    async def scenario() -> None:
        harness = Harness()
        recorded = RecordedEvents(harness)
        first = await harness.client()
        recorded.take()
        await FakeClient(harness).attach(first.session, first.password)
        first.connection.connection_lost(None)
        assert recorded.take() == [(CONNECTION_ENDED, events.REPLACED), (SESSION_ATTACHED, "")]

    run(scenario)


def test_who_a_client_says_it_is_is_written_down() -> None:
    async def scenario() -> None:
        harness = Harness()
        recorded = RecordedEvents(harness)
        client = await harness.client()
        recorded.take()
        client.send(rq.auth("digest", b"ann:secret"))
        assert recorded.last(events.AUTHENTICATED)["session"] == client.session
        assert recorded.take() == [(events.AUTHENTICATED, "")]

    run(scenario)


def test_an_identity_is_written_down_once_and_alone() -> None:
    async def scenario() -> None:
        harness = Harness()
        recorded = RecordedEvents(harness)
        client = await harness.client()
        for who in (b"ann:secret", b"ann:secret", b"bob:secret", b"ann:secret"):
            client.send(rq.auth("digest", who))
        told = [
            [user_name(one) for one in identities.entries]
            for kind, identities in recorded.identities
            if kind == events.AUTHENTICATED
        ]
        assert told == [["ann"], ["bob"]]

    run(scenario)


def test_a_session_that_is_refused_says_why() -> None:
    async def scenario() -> None:
        harness = Harness()
        recorded = RecordedEvents(harness)
        owner = await harness.client()
        recorded.take()
        for session, password, zxid in (
            (4711, b"", 0),
            (owner.session, b"wrong", 0),
            (owner.session, owner.password, 1 << 40),
            (0, b"", 1 << 40),
        ):
            client = FakeClient(harness)
            client.send_handshake(session, password, zxid)
            await harness.settle()
        assert [one["session"] for _, _, one in recorded.taken[:3]] == [
            *(4711, owner.session, owner.session)
        ]
        assert recorded.take() == [
            (HANDSHAKE_FAILED, events.EXPIRED),
            (HANDSHAKE_FAILED, events.WRONG_PASSWORD),
            (HANDSHAKE_FAILED, events.AHEAD),
            (HANDSHAKE_FAILED, events.AHEAD),
        ]

    run(scenario)


def test_without_a_log_there_are_no_sessions_but_those_that_read() -> None:
    async def scenario() -> None:
        harness = Harness()
        recorded = RecordedEvents(harness)
        owner = await harness.client()
        recorded.take()
        refused = FakeClient(harness)
        refused.send_handshake()
        await harness.settle(Durability.NOT_WRITTEN)
        harness.service.is_open = False
        FakeClient(harness).send_handshake(owner.session, owner.password)
        assert recorded.last(HANDSHAKE_FAILED)["session"] == owner.session
        harness.service.is_read_only = True
        FakeClient(harness).send_handshake(owner.session, owner.password, read_only=True)
        await turn()
        assert recorded.last(SESSION_ATTACHED)["read_only"] is True
        assert recorded.take() == [
            (events.WRITES_REFUSED, ""),
            (HANDSHAKE_FAILED, events.NOT_SERVING),
            (HANDSHAKE_FAILED, events.NOT_SERVING),
            (SESSION_ATTACHED, ""),
        ]

    run(scenario)

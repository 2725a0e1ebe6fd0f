"""The life of sessions as outcomes tell it: attached for a client that is gone, ended, spared."""

from __future__ import annotations

import pytest

from paddock.errors import OK, SESSION_EXPIRED
from tests.support import requests as rq
from tests.support.logs import Durability
from tests.unit.server.harness import FakeClient, Harness, encoded, run, turn


def test_what_comes_while_the_session_ends_is_answered_expired() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        liveness = harness.liveness_of(client)
        harness.service.lifecycle.expire(liveness)
        client.send(rq.exists("/"), rq.create("/n"))
        assert client.replies() == []
        await harness.settle()
        assert [error for _, error, _ in client.replies()] == [SESSION_EXPIRED, SESSION_EXPIRED]
        assert not client.transport.is_open
        assert client.session not in harness.machine.sessions.by_id

    run(scenario)


def test_a_session_that_ends_before_its_own_backlog_gets_nothing_of_it() -> None:
    """Its end comes from the server, and takes turns with what the client has sent."""

    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        count = 1500
        client.send(*[rq.create(f"/n{number}", flags=1) for number in range(count)])
        harness.service.lifecycle.expire(harness.liveness_of(client))
        client.receive(encoded(count + 1, rq.exists("/")))
        await harness.settle()
        answers = [(xid, error) for xid, error, _ in client.replies()]
        # What was before the end; and no answer overtakes those that are not given.
        assert 0 < len(answers) < count
        assert answers == [(xid, OK) for xid in range(1, len(answers) + 1)]
        assert not client.transport.is_open
        # No ephemeral comes after its owner.
        assert len(harness.machine.tree) == len(Harness().machine.tree)
        assert not harness.machine.tree.ephemerals

    run(scenario)


def test_a_session_whose_end_was_not_written_lives_on() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        liveness = harness.liveness_of(client)
        harness.service.lifecycle.expire(liveness)
        client.send(rq.exists("/"))
        await turn()
        harness.log.settle(Durability.NOT_WRITTEN)
        await turn()
        assert [error for _, error, _ in client.replies()] == [OK]
        assert not liveness.is_closing

    run(scenario)


def test_a_session_lives_on_if_nobody_can_say_what_became_of_its_end() -> None:
    """As when an operator has the log skip the batch with its end."""

    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        liveness = harness.liveness_of(client)
        harness.service.lifecycle.expire(liveness)
        client.send(rq.exists("/"))
        await turn()
        assert (client.replies(), liveness.is_closing) == ([], True)
        (batch,) = harness.service.proposer.in_flight.values()
        batch.submitters[0].abort()
        await turn()
        assert [error for _, error, _ in client.replies()] == [OK]
        assert not liveness.is_closing

    run(scenario)


def test_a_session_created_for_a_client_that_has_gone_is_watched_over() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = FakeClient(harness)
        client.send_handshake()
        client.connection.connection_lost(None)
        await harness.settle()
        (session,) = harness.machine.sessions.by_id
        assert harness.service.tracker.get(session) is not None

    run(scenario)


def test_a_session_attached_for_a_client_that_has_gone_leaves_its_old_connection() -> None:
    """The generation has moved on, so the old connection could write no more."""

    async def scenario() -> None:
        harness = Harness()
        first = await harness.client()
        second = FakeClient(harness)
        second.send_handshake(first.session, first.password)
        second.connection.connection_lost(None)
        await harness.settle()
        assert not first.transport.is_open
        third = FakeClient(harness)
        assert (await third.attach(first.session, first.password)).session_id == first.session

    run(scenario)


def test_only_a_session_that_expired_is_said_to_have(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        liveness = harness.liveness_of(client)
        # It closes itself, and only then its end is proposed a second time.
        client.send(rq.close_session())
        harness.service.lifecycle.expire(liveness)
        await harness.settle()
        assert client.session not in harness.machine.sessions.by_id
        assert harness.service.tracker.get(client.session) is None

    with caplog.at_level("INFO"):
        run(scenario)
    assert "expired" not in caplog.text


def test_a_session_lives_by_the_timeout_of_its_last_handshake() -> None:
    async def scenario() -> None:
        harness = Harness()
        first = await harness.client()
        second = FakeClient(harness)
        second.send_handshake(first.session, first.password, timeout_ms=5000)
        await harness.settle()
        assert second.take_handshake().timeout_ms == 5000
        liveness = harness.liveness_of(first)
        assert liveness.timeout == 5.0

    run(scenario)


def test_a_session_that_is_attached_again_while_its_end_is_on_its_way_lives() -> None:
    async def scenario() -> None:
        harness = Harness()
        first, second = await harness.client(), FakeClient(harness)
        second.send_handshake(first.session, first.password)
        await turn()
        liveness = harness.liveness_of(first)
        harness.service.lifecycle.expire(liveness)
        await harness.settle()
        assert second.take_handshake().session_id == first.session
        assert not liveness.is_closing
        second.send(rq.exists("/"))
        assert [error for _, error, _ in second.replies()] == [OK]

    run(scenario)

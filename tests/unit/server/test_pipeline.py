"""What the pipeline does with a batch, whatever becomes of those who wait for it."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tests.support import requests as rq
from tests.unit.server.harness import FakeClient, FakeTransport, Harness


class BrokenTransport(FakeTransport):
    """Fails in the middle of an answer: once its session is attached, it should be read from."""

    def resume_reading(self) -> None:
        raise ValueError("as the test wants it")


def test_an_answer_that_fails_does_not_keep_the_rest_of_a_batch_from_being_applied(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        harness = Harness()
        client, stumbler = await harness.client(), FakeClient(harness)
        stumbler.transport = BrokenTransport()
        stumbler.connection.connection_made(stumbler.transport)
        stumbler.send_handshake()
        client.send(rq.create("/behind"))
        await harness.settle()
        assert [xid for xid, _, _ in client.replies()] == [1]
        assert harness.pipeline.applied == harness.log.last_index
        assert not stumbler.transport.is_open

    with caplog.at_level(logging.ERROR):
        asyncio.run(scenario())
    assert "could not be told" in caplog.text


def test_the_bytes_of_what_was_applied_are_counted() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        assert harness.pipeline.applied_bytes == sum(map(len, harness.log.proposals))
        client.send(rq.create("/large", bytes(10_000)))
        await harness.settle()
        assert harness.pipeline.applied_bytes == sum(map(len, harness.log.proposals)) > 10_000

    asyncio.run(scenario())

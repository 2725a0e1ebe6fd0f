"""A log that fails while the server serves, and the way back."""

from __future__ import annotations

import asyncio

import pytest

from paddock.log.interface import LogError
from paddock.server.durability.log_recovery import LogRecovery
from paddock.storage.events import (
    CONNECTION_ENDED,
    LOG_FAILED,
    LOG_RECOVERED,
    NOT_SERVING,
    SERVING_AGAIN,
    SESSION_OPENED,
)
from tests.support import requests as rq
from tests.support.logs import Durability
from tests.unit.server.harness import FakeClient, Harness, RecordedEvents, errors, run


@pytest.mark.parametrize("error", [LogError("full"), MemoryError(), RuntimeError("no thread")])
def test_a_log_that_cannot_be_read_yet_is_tried_again(error: Exception) -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        failures = [error, error]

        def recover() -> None:
            if failures:
                raise failures.pop()

        harness.log.recover = recover  # type: ignore[method-assign]
        harness.proposer.on_unknown = LogRecovery(harness.service, harness.log).begin
        client.send(rq.create("/a"))
        await harness.settle(Durability.UNKNOWN)
        assert not client.transport.is_open
        # Longer than all the pauses between two tries.
        await asyncio.sleep(10)
        assert failures == []
        assert harness.service.is_open
        again = await harness.client()
        again.send(rq.create("/b"))
        await harness.settle()
        assert errors(again) == [0]

    run(scenario)


def test_a_failure_of_the_log_is_written_down_with_its_duration() -> None:
    async def scenario() -> None:
        harness = Harness(read_only_mode_enabled=True)
        recorded = RecordedEvents(harness)
        failures = [LogError("full")]

        def recover() -> None:
            if failures:
                raise failures.pop()

        harness.log.recover = recover  # type: ignore[method-assign]
        harness.proposer.on_unknown = LogRecovery(harness.service, harness.log).begin
        client = await harness.client()
        recorded.take()
        client.send(rq.create("/a"))
        await harness.settle(Durability.UNKNOWN)
        FakeClient(harness).send_handshake(read_only=True)
        await asyncio.sleep(10)
        assert recorded.last(LOG_FAILED) == {"text": "as the test wants it"}
        assert recorded.last(LOG_RECOVERED) == {"seconds": 1.0}
        assert recorded.take() == [
            (LOG_FAILED, ""),
            (CONNECTION_ENDED, NOT_SERVING),
            (SESSION_OPENED, ""),
            (CONNECTION_ENDED, SERVING_AGAIN),
            (LOG_RECOVERED, ""),
        ]

    run(scenario)

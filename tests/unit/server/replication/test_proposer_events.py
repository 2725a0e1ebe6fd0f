"""A slow sync, and writes that are refused for a while, are written down."""

from __future__ import annotations

import asyncio

from paddock.storage.events import SLOW_SYNC, WRITES_ACCEPTED, WRITES_REFUSED
from tests.support import requests as rq
from tests.support.logs import Durability
from tests.unit.server.harness import Harness, RecordedEvents, run, turn


def test_a_slow_sync_is_written_down_with_its_seconds() -> None:
    async def scenario() -> None:
        harness = Harness()
        recorded = RecordedEvents(harness)
        client = await harness.client()
        recorded.take()
        for seconds in (0.5, 2.5):
            client.send(rq.create("/n"), rq.create("/m"))
            await turn()
            await asyncio.sleep(seconds)
            harness.log.settle()
            await turn()
        assert recorded.last(SLOW_SYNC) == {"seconds": 2.5, "entries": 2}
        assert recorded.take() == [(SLOW_SYNC, "")]

    run(scenario)


def test_writes_are_refused_and_accepted_again_once() -> None:
    async def scenario() -> None:
        harness = Harness()
        recorded = RecordedEvents(harness)
        client = await harness.client()
        recorded.take()
        for outcome in (Durability.NOT_WRITTEN, Durability.DURABLE):
            for path in ("/a", "/b"):
                client.send(rq.create(path))
                await harness.settle(outcome)
        assert recorded.last(WRITES_REFUSED) == {"text": "as the test wants it"}
        assert recorded.take() == [(WRITES_REFUSED, ""), (WRITES_ACCEPTED, "")]

    run(scenario)

"""What the pipeline does with a batch, whatever its origins do."""

from __future__ import annotations

import asyncio
import logging

import pytest

from paddock.protocol import opcodes
from paddock.server.pipeline import Origin
from paddock.state.entry import Entry
from paddock.state.machine import Outcome, session_body
from tests.support import requests as rq
from tests.unit.server.harness import Harness


class Stumbler(Origin):
    """Cannot take an outcome."""

    def __init__(self) -> None:
        super().__init__()
        self.aborted = 0

    def deliver(self, entry: Entry, outcome: Outcome) -> None:
        raise ValueError("as the test wants it")

    def abort(self) -> None:
        self.aborted += 1


def test_an_origin_that_cannot_take_its_outcome_does_not_stop_the_batch(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        stumbler = Stumbler()
        entry = Entry(opcodes.CREATE_SESSION, session_body(4000, b"p" * 16), 99)
        harness.pipeline.submit(entry, stumbler)
        client.send(rq.create("/behind"))
        await harness.settle()
        assert [xid for xid, _, _ in client.replies()] == [1]
        assert harness.pipeline.applied == harness.log.last_index
        assert stumbler.aborted == 1

    with caplog.at_level(logging.ERROR):
        asyncio.run(scenario())
    assert "could not be told" in caplog.text

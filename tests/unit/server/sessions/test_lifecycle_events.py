"""The end of a session is written down: how long it was silent by this server's count, and why."""

from __future__ import annotations

import asyncio

import pytest

from paddock.server.journal.stall_watch import StallWatch
from paddock.server.sessions.lifecycle import SessionLifecycle
from paddock.state.entry import ATTACH, EXPIRE, Entry
from paddock.state.machine import attach_body
from paddock.storage import events
from paddock.storage.events import CONNECTION_ENDED, SESSION_ENDED
from paddock.testing.clock import VirtualClockLoop
from tests.support import requests as rq
from tests.unit.server.harness import FakeClient, Harness, RecordedEvents, run


async def started() -> tuple[Harness, RecordedEvents, FakeClient]:
    """Return a server that counts silence, and a client with an ephemeral node."""
    harness = Harness()
    harness.service.tracker.start()
    recorded = RecordedEvents(harness)
    # At 0 nothing counts as heard.
    await asyncio.sleep(1)
    client = await harness.client()
    client.send(rq.create("/held", flags=1))
    await harness.settle()
    recorded.take()
    return harness, recorded, client


async def wait(harness: Harness, seconds: int) -> None:
    """Let time pass, and the log work."""
    for _ in range(seconds):
        await asyncio.sleep(1)
        await harness.settle()


def test_a_client_that_is_silent_is_given_up() -> None:
    async def scenario() -> None:
        harness, recorded, client = await started()
        await wait(harness, 20)
        assert client.session not in harness.machine.sessions.by_id
        ended = recorded.last(SESSION_ENDED)
        assert (ended["session"], ended["timeout_ms"], ended["ephemerals"]) == (
            *(client.session, 6000, 1),
        )
        silent = ended["silent_seconds"]
        assert isinstance(silent, float)
        assert 6.0 <= silent <= 8.0
        connection = recorded.last(CONNECTION_ENDED)
        assert connection["last"] == "create"
        # The batch with its end was settled a little later.
        heard = connection["silent_seconds"]
        assert isinstance(heard, float)
        assert silent <= heard <= silent + 1
        assert recorded.take() == [
            (SESSION_ENDED, events.SILENT),
            (CONNECTION_ENDED, events.EXPIRED),
        ]
        harness.service.tracker.stop()

    run(scenario)


def test_a_client_that_does_not_come_back_is_given_up() -> None:
    async def scenario() -> None:
        harness, recorded, client = await started()
        client.connection.connection_lost(ConnectionResetError())
        await wait(harness, 20)
        assert recorded.take() == [(CONNECTION_ENDED, events.RESET), (SESSION_ENDED, events.GONE)]
        harness.service.tracker.stop()

    run(scenario)


def test_a_client_that_takes_nothing_is_given_up() -> None:
    async def scenario() -> None:
        harness, recorded, client = await started()
        client.transport.waiting_bytes = 1_000_000
        client.connection.pause_writing()
        await wait(harness, 20)
        assert recorded.take() == [
            (SESSION_ENDED, events.NOT_READING),
            (CONNECTION_ENDED, events.EXPIRED),
        ]
        harness.service.tracker.stop()

    run(scenario)


def test_a_session_outlives_a_pause_of_the_server_which_is_written_down() -> None:
    async def scenario() -> None:
        harness, recorded, client = await started()
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualClockLoop)
        watch = StallWatch(recorded, loop.time, lambda: int(loop.time() * 1000))
        await asyncio.sleep(0)
        loop.stall(60.0)
        await wait(harness, 2)
        assert recorded.take() == [(events.STALLED, "")]
        client.send(rq.ping())
        await wait(harness, 5)
        assert client.session in harness.machine.sessions.by_id
        # What it was silent is counted without the pause.
        loop.stall(60.0)
        await wait(harness, 20)
        silent = recorded.last(SESSION_ENDED)["silent_seconds"]
        assert isinstance(silent, float)
        assert silent < 10
        assert recorded.take() == [
            (events.STALLED, ""),
            (SESSION_ENDED, events.SILENT),
            (CONNECTION_ENDED, events.EXPIRED),
        ]
        watch.stop()
        harness.service.tracker.stop()

    run(scenario)


@pytest.mark.parametrize(("is_ours", "count"), [(True, 2), (False, 1)])
def test_a_session_that_another_server_ends_is_told_where_it_was_tracked(
    is_ours: bool, count: int
) -> None:
    async def scenario() -> None:
        harness, recorded, client = await started()
        generation = harness.machine.sessions.by_id[client.session].generation
        entry = Entry(EXPIRE, b"", client.session, generation)
        outcome = harness.machine.apply(entry)
        for _ in range(2):
            harness.service.lifecycle.changed(entry, outcome, None, is_ours)
        ends = [one for one in recorded.take() if one[0] == SESSION_ENDED]
        assert ends == [(SESSION_ENDED, events.EXPIRED_ELSEWHERE)] * count
        harness.service.tracker.stop()

    run(scenario)


def test_a_session_that_moves_to_another_server_leaves_its_connection_here() -> None:
    async def scenario() -> None:
        harness, recorded, client = await started()
        entry = Entry(ATTACH, attach_body(6000, client.password, 0), client.session)
        outcome = harness.machine.apply(entry)
        harness.service.lifecycle.changed(entry, outcome, None, False)
        assert recorded.take() == [(CONNECTION_ENDED, events.MOVED)]
        harness.service.tracker.stop()

    run(scenario)


def test_sessions_that_were_there_before_are_adopted() -> None:
    async def scenario() -> None:
        harness, recorded, _ = await started()
        SessionLifecycle(harness.replica, harness.proposer, 1.0, 0)
        assert recorded.taken == [
            (events.SESSIONS_ADOPTED, "", {"count": 1}),
        ]
        recorded.take()
        # Nothing to adopt is nothing to tell.
        harness.service.lifecycle.adopt(0)
        assert recorded.take() == []
        harness.service.tracker.stop()

    run(scenario)

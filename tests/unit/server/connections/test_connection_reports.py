"""What an operator is told: why sessions and connections were lost, and how the disk is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from paddock.testing.clock import VirtualClockLoop, run_virtually
from tests.support import requests as rq
from tests.support.logs import Durability
from tests.unit.server.harness import FakeClient, Harness, turn

Scenario = Callable[[Harness], Coroutine[Any, Any, object]]


@pytest.fixture
def tell(caplog: pytest.LogCaptureFixture) -> Callable[..., list[str]]:
    """Play a scenario in virtual time; give the lines that an operator sees by default."""

    def play(scenario: Scenario, **settings: Any) -> list[str]:
        async def main() -> None:
            harness = Harness(**settings)
            harness.service.tracker.start()
            await scenario(harness)
            harness.service.tracker.stop()

        with caplog.at_level(logging.INFO, "paddock"):
            run_virtually(main())
        return [
            record.getMessage() for record in caplog.records if record.name.startswith("paddock")
        ]

    return play


Tell = Callable[..., list[str]]


def test_a_session_that_came_and_went_says_that_its_client_closed_it(tell: Tell) -> None:
    async def scenario(harness: Harness) -> None:
        client = await harness.client()
        client.send(rq.close_session())
        await harness.settle()
        client.connection.connection_lost(None)

    (line,) = tell(scenario)
    assert line.endswith("closed by its client")
    assert line.startswith("session 0x")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (None, "closed by its client"),
        (ConnectionResetError(104, "reset by peer"), "reset"),
        (TimeoutError(110, "timed out"), "[Errno 110] timed out"),
    ],
)
def test_a_lost_connection_says_how_and_the_session_that_does_not_come_back_says_so(
    tell: Tell, error: Exception | None, reason: str
) -> None:
    async def scenario(harness: Harness) -> None:
        client = await harness.client()
        client.connection.connection_lost(error)
        await asyncio.sleep(9)
        await harness.settle()

    lost, expired = tell(scenario)
    assert lost.endswith(f"connection from 127.0.0.1 lost, {reason}; it has 6.0 s to come back")
    assert expired.endswith("expired: its client did not come back for 8.0 s")


def test_a_session_that_missed_its_pings_says_so(tell: Tell) -> None:
    async def scenario(harness: Harness) -> None:
        await harness.client()
        await asyncio.sleep(9)
        await harness.settle()

    (line,) = tell(scenario)
    assert line.endswith("expired: its client, though connected, sent not even a ping for 8.0 s")


def test_a_session_that_was_held_back_says_so(tell: Tell) -> None:
    async def scenario(harness: Harness) -> None:
        client = await harness.client()
        client.transport.waiting_bytes = 1_000_000
        client.connection.pause_writing()
        await asyncio.sleep(9)
        await harness.settle()

    (line,) = tell(scenario)
    assert "expired: its client took nothing of what was sent for " in line


def test_a_connection_that_is_replaced_says_so_once(tell: Tell) -> None:
    async def scenario(harness: Harness) -> None:
        first, second = await harness.client(), FakeClient(harness)
        await second.attach(first.session, first.password)
        first.connection.connection_lost(None)

    (line,) = tell(scenario)
    assert "its connection is replaced by a newer one from 127.0.0.1" in line


def test_somebody_who_never_shakes_hands_is_mentioned(tell: Tell) -> None:
    async def scenario(harness: Harness) -> None:
        FakeClient(harness)
        await asyncio.sleep(11)

    assert tell(scenario) == ["127.0.0.1: did not ask for a session in time; closing it"]


def test_an_ordinary_session_is_not_worth_a_line(tell: Tell) -> None:
    async def scenario(harness: Harness) -> None:
        client = await harness.client()
        client.send(rq.create("/a"), rq.get_data("/a"), rq.ping())
        await harness.settle()

    assert tell(scenario) == []


def test_no_password_is_ever_told(caplog: pytest.LogCaptureFixture, tell: Tell) -> None:
    async def scenario(harness: Harness) -> None:
        client, thief = await harness.client(), FakeClient(harness)
        thief.send_handshake(client.session, b"hunter2hunter2hu")
        await harness.settle()
        client.send(rq.auth("digest", b"alice:hunter2"), rq.auth("magic", b"hunter2"))
        await harness.settle()

    with caplog.at_level(logging.DEBUG):
        wrong, failed = tell(scenario)
    assert "wrong password for session 0x" in wrong
    assert failed.endswith("authentication failed from 127.0.0.1, scheme 'magic'")
    assert "hunter2" not in caplog.text


def test_a_slow_sync_says_how_long_it_took_and_a_late_loop_does_not_count(tell: Tell) -> None:
    async def scenario(harness: Harness) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualClockLoop)
        client = await harness.client()
        client.send(rq.create("/late"))
        await turn()
        harness.log.settle()
        loop.stall(5)
        await turn()
        client.send(rq.create("/a"), rq.create("/b"))
        await turn()
        loop.stall(1.7)
        await harness.settle()

    assert tell(scenario) == ["a slow disk: the sync of 2 entries took 1.70 s"]


def test_a_full_disk_and_room_again_are_told_once_each(tell: Tell) -> None:
    async def scenario(harness: Harness) -> None:
        client = await harness.client()
        for outcome in (Durability.NOT_WRITTEN, Durability.DURABLE):
            for _ in range(3):
                client.send(rq.create("/a"))
                await harness.settle(outcome)

    assert tell(scenario) == [
        "writes are refused: as the test wants it",
        "there is room again, writes are accepted",
    ]

"""What is written to the log of the state's notices, and how often."""

from __future__ import annotations

import asyncio
import logging

import pytest

from paddock.server.replication.notices import LINES_MAX, PAUSE, Notices
from paddock.state.quota import Fault, OverLimit
from tests.support import requests as rq
from tests.unit.server.harness import Harness


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def time(self) -> float:
        return self.now


def over(path: bytes, *, hard: bool = False) -> OverLimit:
    return OverLimit(path, 12, "nodes", 10, hard, hard)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def notices(clock: Clock, caplog: pytest.LogCaptureFixture) -> Notices:
    caplog.set_level(logging.WARNING)
    return Notices(clock.time)


def test_a_fault_is_told_each_time(notices: Notices, caplog: pytest.LogCaptureFixture) -> None:
    notices.tell(0x1F, Fault("something broke"))
    notices.tell(0x1F, Fault("something broke"))
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("ERROR", "session 0x1f: something broke")
    ] * 2


def test_a_limit_is_told_of_once_a_minute(
    clock: Clock, notices: Notices, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        notices.tell(1, over(b"/app"))
    clock.now += PAUSE - 1
    notices.tell(1, over(b"/app"))
    assert [record.getMessage() for record in caplog.records] == [
        "session 0x1: quota of /app exceeded: 12 nodes, the soft limit is 10"
    ]
    clock.now += 1
    notices.tell(2, over(b"/app"))
    assert len(caplog.records) == 2
    assert caplog.records[0].levelname == "WARNING"


def test_another_quota_and_another_limit_are_told_of_all_the_same(
    notices: Notices, caplog: pytest.LogCaptureFixture
) -> None:
    notices.tell(1, over(b"/app"))
    notices.tell(1, over(b"/app", hard=True))
    notices.tell(1, over(b"/web"))
    assert len(caplog.records) == 3


def test_many_quotas_do_not_flood_the_log_nor_memory(
    clock: Clock, notices: Notices, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(3 * LINES_MAX):
        notices.tell(1, over(b"/%d" % number))
    assert len(caplog.records) == LINES_MAX
    assert len(notices._told) == LINES_MAX
    clock.now += PAUSE
    notices.tell(1, over(b"/last"))
    assert len(caplog.records) == LINES_MAX + 1
    assert len(notices._told) == 1


def test_the_replica_tells_what_goes_over_a_soft_limit(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        quota = "/zookeeper/quota/app"
        client.send(
            rq.create("/app"),
            rq.create(quota),
            rq.create(f"{quota}/zookeeper_limits", b"count=1,bytes=-1"),
            rq.create(f"{quota}/zookeeper_stats"),
            *[rq.create(f"/app/{number}") for number in range(5)],
        )
        await harness.settle()
        assert [error for _, error, _ in client.replies()] == [0] * 9

    with caplog.at_level(logging.WARNING):
        asyncio.run(scenario())
    [record] = caplog.records
    assert "quota of /app exceeded: 2 nodes, the soft limit is 1" in record.getMessage()

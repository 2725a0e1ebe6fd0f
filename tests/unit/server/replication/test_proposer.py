"""How the proposer makes batches: no longer than they may be, none while a long one is applied."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from paddock.errors import OK, SYSTEM_ERROR
from paddock.log.waits import until_none
from paddock.state.entry import Batch
from tests.support import requests as rq
from tests.support.logs import Durability
from tests.unit.server.harness import FakeClient, Harness, SlowHarness, numbers, run, turn


def test_who_makes_every_write_expensive_does_not_keep_others_waiting_for_a_long_batch() -> None:
    async def scenario() -> None:
        harness = SlowHarness(0.01)
        much, little = await harness.client(), await harness.client()
        for _ in range(5):
            much.send(*[rq.set_data("/", b"")] * 100)
            await harness.settle()
        much.send(rq.set_data("/", b""))
        await turn()
        much.send(*[rq.set_data("/", b"")] * 2_000)
        little.send(rq.set_data("/", b""))
        numbers(much)
        harness.log.settle()
        await turn()
        harness.log.settle()
        while not numbers(little):  # noqa: ASYNC110 (no time passes)
            await asyncio.sleep(0)
        # The one that was proposed already, and a batch as long as the pace allows.
        assert len(numbers(much)) <= 1 + 5

    run(scenario)


def test_batches_grow_step_by_step_as_long_as_entries_are_cheap() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        first = len(harness.log.proposals)
        client.send(*[rq.set_data("/", b"")] * 400)
        await harness.settle()
        lengths = [len(Batch.decode(one).entries) for one in harness.log.proposals[first:]]
        assert lengths[0] == 32
        assert all(after <= 2 * before for before, after in itertools.pairwise(lengths))
        assert max(lengths) > 64

    run(scenario)


async def practised(harness: Harness) -> FakeClient:
    """Return a client, after so many writes that they are known to be cheap."""
    client = await harness.client()
    for _ in range(20):
        client.send(*[rq.set_data("/", b"")] * 500)
        await harness.settle()
    numbers(client)
    return client


def lengths_since(harness: Harness, first: int) -> list[int]:
    """Return how many entries the batches have that were proposed from this one on."""
    return [len(Batch.decode(one).entries) for one in harness.log.proposals[first:]]


@pytest.mark.parametrize(
    ("sent", "batches"), [(300, [300]), (511, [511]), (512, [256, 256]), (900, [450, 450])]
)
def test_much_is_divided_so_that_one_half_syncs_while_the_other_is_applied(
    sent: int, batches: list[int]
) -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await practised(harness)
        first = len(harness.log.proposals)
        client.send(*[rq.set_data("/", b"")] * sent)
        await turn()
        # The second half is proposed before the first one is applied.
        harness.log.settle()
        await harness.settle()
        assert lengths_since(harness, first) == batches
        assert len(numbers(client)) == sent

    run(scenario)


def test_what_is_about_to_be_applied_counts_for_the_half() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await practised(harness)
        first = len(harness.log.proposals)
        client.send(*[rq.set_data("/", b"")] * 900)
        await turn()
        client.send(*[rq.set_data("/", b"")] * 300)
        await harness.settle()
        # Half of 900, then half of 450 that are applied and 750 that wait.
        assert lengths_since(harness, first)[:2] == [450, 600]

    run(scenario)


def test_what_is_too_large_to_be_applied_beside_a_sync_is_not_divided() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await practised(harness)
        first = len(harness.log.proposals)
        client.send(*[rq.set_data("/", bytes(800))] * 700)
        await harness.settle()
        assert lengths_since(harness, first) == [700]

    run(scenario)


def test_nothing_is_divided_if_a_sync_takes_longer_than_to_apply_it() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await practised(harness)
        client.send(rq.set_data("/", b""))
        await turn()
        await asyncio.sleep(1)
        await harness.settle()
        first = len(harness.log.proposals)
        client.send(*[rq.set_data("/", b"")] * 700)
        await harness.settle()
        assert lengths_since(harness, first) == [700]

    run(scenario)


def test_the_second_half_is_proposed_though_the_first_one_was_refused() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await practised(harness)
        client.send(*[rq.set_data("/", b"")] * 600)
        await turn()
        harness.log.settle(Durability.NOT_WRITTEN)
        await harness.settle()
        replies = client.replies()
        assert [xid for xid, _, _ in replies] == list(range(1, 601))
        assert [error for _, error, _ in replies] == [SYSTEM_ERROR] * 300 + [OK] * 300

    run(scenario)


@pytest.mark.parametrize(("seconds", "size"), [(0.1, 0), (0.0, 300_000)], ids=["slow", "large"])
def test_nothing_is_proposed_while_a_batch_is_applied_that_takes_long(
    seconds: float, size: int
) -> None:
    async def scenario() -> None:
        harness = SlowHarness(seconds)
        much, little = await harness.client(), await harness.client()
        much.send(rq.set_data("/", bytes(size)))
        await harness.settle()
        much.send(*[rq.set_data("/", bytes(size))] * 8)
        await turn()
        harness.log.settle()
        # What comes before the batch is applied is in the next one.
        little.send(rq.set_data("/", b""))
        await asyncio.sleep(0)
        proposed = len(harness.log.proposals)
        await turn()
        assert len(harness.log.proposals) == proposed + 1

    run(scenario)


def test_nobody_needs_to_wait_for_the_end_who_began_to() -> None:
    async def scenario() -> None:
        complaints: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, told: complaints.append(told))
        harness = SlowHarness(0.02)
        client = await harness.client()
        client.send(*[rq.set_data("/", b"")] * 40)
        await turn()
        harness.log.settle()
        while not harness.replica.is_behind():  # noqa: ASYNC110 (no time passes)
            await asyncio.sleep(0)
        waiting = [
            asyncio.create_task(until_none(harness.replica.catch_up)),
            asyncio.create_task(until_none(harness.proposer.drain)),
        ]
        await asyncio.sleep(0)
        for task in waiting:
            assert task.cancel()
        await harness.settle()
        assert len(numbers(client)) == 40
        assert not complaints

    run(scenario)

"""What the replica does with a batch, whatever becomes of those who wait for it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from paddock.log.waits import until_none
from paddock.server.replication.replica import SLICE_SECONDS
from paddock.state.node import Node
from tests.support import requests as rq
from tests.support.logs import Durability
from tests.support.records import Mode
from tests.unit.server.harness import (
    FakeClient,
    FakeTransport,
    Harness,
    SlowHarness,
    errors,
    numbers,
    run,
    turn,
)


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
        assert harness.replica.applied == harness.log.last_index
        assert not stumbler.transport.is_open

    with caplog.at_level(logging.ERROR):
        asyncio.run(scenario())
    assert "could not be told" in caplog.text


def test_the_bytes_of_what_was_applied_are_counted() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        assert harness.replica.applied_bytes == sum(map(len, harness.log.proposals))
        client.send(rq.create("/large", bytes(10_000)))
        await harness.settle()
        assert harness.replica.applied_bytes == sum(map(len, harness.log.proposals)) > 10_000

    asyncio.run(scenario())


def test_others_are_served_between_two_slices_of_a_batch() -> None:
    async def scenario() -> None:
        harness = SlowHarness(SLICE_SECONDS / 8)
        writer, reader = await harness.client(), await harness.client()
        writer.send(*[rq.set_data("/", b"%d" % number) for number in range(24)])
        await turn()
        harness.log.settle()
        seen: list[int] = []
        while len(seen) < 24:
            await asyncio.sleep(0)
            answered = numbers(writer)
            if answered:
                seen += answered
                # In the middle of the batch, and never before what was answered.
                reader.send(rq.get_data("/"))
                ((_, _, body),) = reader.replies()
                assert body[4:].startswith(b"%d" % (len(seen) - 1))
        assert seen == list(range(1, 25))

    run(scenario)


def test_a_batch_that_is_durable_waits_for_the_end_of_the_one_before_it() -> None:
    async def scenario() -> None:
        harness = SlowHarness(SLICE_SECONDS)
        client = await harness.client()
        client.send(*[rq.create(f"/{number}") for number in range(24)])
        await turn()
        client.send(rq.create("/last"))
        harness.log.settle()
        # The next batch is proposed before the first is applied, and durable in its middle.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        harness.log.settle()
        assert 0 < len(numbers(client)) < 24
        assert harness.proposer.outstanding() > 1
        await harness.settle()
        assert harness.replica.applied == harness.log.last_index
        assert harness.proposer.outstanding() == 0
        assert b"/last" in harness.machine.tree.nodes

    run(scenario)


def test_what_must_not_see_half_a_batch_waits_for_its_end() -> None:
    async def scenario() -> None:
        harness = SlowHarness(SLICE_SECONDS)
        client = await harness.client()
        seen: list[tuple[int, int]] = []
        replica = harness.replica
        replica.between_batches(lambda: seen.append((replica.applied, len(harness.machine.tree))))
        assert seen == [(replica.applied, 4)]
        client.send(*[rq.create(f"/{number}") for number in range(24)])
        await turn()
        harness.log.settle()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not replica.is_between_batches()
        replica.between_batches(lambda: seen.append((replica.applied, len(harness.machine.tree))))
        assert len(seen) == 1
        await harness.settle()
        assert seen[1:] == [(harness.log.last_index, 28)]

    run(scenario)


def test_an_outcome_nobody_knows_waits_for_the_batch_that_is_being_applied() -> None:
    async def scenario() -> None:
        harness = SlowHarness(SLICE_SECONDS)
        client = await harness.client()
        told: list[tuple[str, int]] = []
        harness.proposer.on_unknown = lambda reason: told.append(
            (reason, len(harness.machine.tree))
        )
        client.send(*[rq.create(f"/{number}") for number in range(24)])
        await turn()
        client.send(rq.create("/unknown"))
        harness.log.settle()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        harness.log.settle(Durability.UNKNOWN)
        assert told == []
        for _ in range(10):
            await turn()
        assert told == [("as the test wants it", 28)]

    run(scenario)


class Exhausted:
    """What is told of a node before it changes, and has no memory for it."""

    def save(self, path: bytes, node: Node) -> None:
        raise MemoryError


def apply_without_memory(harness: Harness) -> None:
    harness.machine.tree.epoch += 1
    harness.machine.tree.images = Exhausted()


def encode_without_memory(harness: Harness) -> None:
    def refuse(number: int, payload: bytes) -> None:
        raise MemoryError

    harness.log.propose = refuse  # type: ignore[method-assign]


@pytest.mark.parametrize("fail", [apply_without_memory, encode_without_memory])
def test_what_depends_on_the_machine_ends_the_server_unanswered(
    fail: Callable[[Harness], None],
) -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        fatal: list[str] = []
        harness.replica.on_fatal = fatal.append
        fail(harness)
        client.send(rq.create("/a"), rq.create("/b"))
        await turn()
        if harness.log.proposals[1:]:
            harness.log.settle()
        await turn()
        assert fatal == ["MemoryError"]
        assert errors(client) == []
        # Nothing is proposed or applied any more.
        proposals = len(harness.log.proposals)
        client.send(rq.create("/c"))
        await turn()
        assert len(harness.log.proposals) == proposals
        assert b"/c" not in harness.machine.tree.nodes

    run(scenario)


@pytest.mark.parametrize("outcome", [Durability.DURABLE, Durability.UNKNOWN])
def test_nothing_comes_of_a_batch_behind_one_that_failed(outcome: Durability) -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        fatal: list[str] = []
        harness.replica.on_fatal = fatal.append
        harness.proposer.on_unknown = fatal.append
        client.send(rq.create("/a"))
        await turn()
        client.send(rq.create("/b"))
        apply_without_memory(harness)
        harness.log.settle()
        await turn()
        harness.machine.tree.images = None
        harness.log.settle(outcome)
        await turn()
        assert fatal == ["MemoryError"]
        assert b"/b" not in harness.machine.tree.nodes
        # A stop waits for nothing.
        await asyncio.wait_for(until_none(harness.proposer.drain), 1)
        assert harness.replica.is_dead()

    run(scenario)


def test_a_stop_that_waits_for_a_batch_hears_that_it_failed() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        harness.replica.on_fatal = lambda _: None
        client.send(rq.create("/a"))
        await turn()
        stopping = asyncio.ensure_future(until_none(harness.proposer.drain))
        await turn()
        apply_without_memory(harness)
        harness.log.settle()
        await asyncio.wait_for(stopping, 1)

    run(scenario)


class Unsendable(FakeTransport):
    """Fails when something is sent, once it is told to."""

    fails = False

    def write(self, data: object) -> None:
        if self.fails:
            raise ValueError("as the test wants it")
        super().write(data)


def test_an_answer_that_cannot_be_sent_stops_neither_the_batch_nor_the_others() -> None:
    async def scenario() -> None:
        harness = SlowHarness(SLICE_SECONDS)
        stumbler, client = FakeClient(harness), await harness.client()
        transport = Unsendable()
        stumbler.transport = transport
        stumbler.connection.connection_made(transport)
        await stumbler.attach()
        for number in range(12):
            stumbler.send(rq.create(f"/s{number}"))
            client.send(rq.create(f"/c{number}"))
        transport.fails = True
        await harness.settle()
        assert len(numbers(client)) == 12
        assert not transport.is_open
        assert harness.replica.is_between_batches()

    run(scenario)


def test_a_slice_ends_behind_an_entry_that_changed_much() -> None:
    async def scenario() -> None:
        harness = SlowHarness(0.0)
        owners = [await harness.client() for _ in range(3)]
        for number, owner in enumerate(owners):
            owner.send(*[rq.create(f"/{number}-{n}", flags=Mode.EPHEMERAL) for n in range(100)])
            await harness.settle()
            numbers(owner)
        harness.seconds = SLICE_SECONDS
        for owner in owners:
            owner.send(rq.close_session())
        await turn()
        harness.log.settle()
        left = []
        for _ in range(8):
            await asyncio.sleep(0)
            left.append(len(harness.machine.tree.ephemerals))
        assert {1, 2} <= set(left)

    run(scenario)


def test_the_log_is_heard_from_any_thread_and_wakes_the_loop_from_another_one_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        loop = asyncio.get_running_loop()
        woken = 0
        wake = loop.call_soon_threadsafe

        def count(*arguments: Any) -> asyncio.Handle:
            nonlocal woken
            woken += 1
            return wake(*arguments)

        monkeypatch.setattr(loop, "call_soon_threadsafe", count)
        client.send(rq.create("/from-the-loop"))
        await harness.settle()
        assert (len(client.replies()), woken) == (1, 0)
        client.send(rq.create("/from-a-thread"))
        await turn()
        thread = threading.Thread(target=harness.log.settle)
        thread.start()
        thread.join()
        await turn()
        assert (len(client.replies()), woken) == (1, 1)

    run(scenario)

"""What the pipeline does with a batch, whatever becomes of those who wait for it."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable

import pytest

from paddock.log.interface import Durability
from paddock.protocol.opcodes import CREATE_SESSION
from paddock.server.replication.pipeline import SLICE_SECONDS
from paddock.state.entry import ATTACH, Batch, Entry
from paddock.state.node import Node
from tests.support import requests as rq
from tests.support.records import Mode
from tests.unit.server.harness import (
    FakeClient,
    FakeTransport,
    Harness,
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


class SlowHarness(Harness):
    """A server for which every entry takes a part of a slice, but none of a handshake."""

    def __init__(self, seconds: float) -> None:
        self.now = 0.0
        self.seconds = seconds
        super().__init__(lambda: self.now)
        self.pipeline.on_entry = lambda entry, _outcome: self.take_time(entry)

    def take_time(self, entry: Entry) -> None:
        if entry.operation not in (CREATE_SESSION, ATTACH):
            self.now += self.seconds


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
        assert harness.pipeline.outstanding() > 1
        await harness.settle()
        assert harness.pipeline.applied == harness.log.last_index
        assert harness.pipeline.outstanding() == 0
        assert b"/last" in harness.machine.tree.nodes

    run(scenario)


def test_what_must_not_see_half_a_batch_waits_for_its_end() -> None:
    async def scenario() -> None:
        harness = SlowHarness(SLICE_SECONDS)
        client = await harness.client()
        seen: list[tuple[int, int]] = []
        pipeline = harness.pipeline
        pipeline.between_batches(lambda: seen.append((pipeline.applied, len(harness.machine.tree))))
        assert seen == [(pipeline.applied, 4)]
        client.send(*[rq.create(f"/{number}") for number in range(24)])
        await turn()
        harness.log.settle()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not pipeline.is_between_batches()
        pipeline.between_batches(lambda: seen.append((pipeline.applied, len(harness.machine.tree))))
        assert len(seen) == 1
        await harness.settle()
        assert seen[1:] == [(harness.log.last_index, 28)]

    run(scenario)


def test_an_outcome_nobody_knows_waits_for_the_batch_that_is_being_applied() -> None:
    async def scenario() -> None:
        harness = SlowHarness(SLICE_SECONDS)
        client = await harness.client()
        told: list[tuple[str, int]] = []
        harness.pipeline.on_unknown = lambda reason: told.append(
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


class Exhausted:
    """What is told of a node before it changes, and has no memory for it."""

    def save(self, path: bytes, node: Node) -> None:
        raise MemoryError


def apply_without_memory(harness: Harness) -> None:
    harness.machine.tree.epoch += 1
    harness.machine.tree.images = Exhausted()


def encode_without_memory(harness: Harness) -> None:
    def refuse(payload: bytes) -> int:
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
        harness.pipeline.on_fatal = fatal.append
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
        harness.pipeline.on_fatal = fatal.append
        harness.pipeline.on_unknown = fatal.append
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
        await asyncio.wait_for(harness.pipeline.drain(), 1)
        assert harness.pipeline.is_dead()

    run(scenario)


def test_a_stop_that_waits_for_a_batch_hears_that_it_failed() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        harness.pipeline.on_fatal = lambda _: None
        client.send(rq.create("/a"))
        await turn()
        stopping = asyncio.ensure_future(harness.pipeline.drain())
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
        assert harness.pipeline.is_between_batches()

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

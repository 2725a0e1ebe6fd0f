"""What no client may exceed, and that the others do not notice when one tries."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from paddock.errors import QUOTA_EXCEEDED
from paddock.server.connections.request_handler import CLOSED, OPEN
from paddock.state.node import CACHED_BYTES_MAX
from tests.support import requests as rq
from tests.support.records import Code, Op, Request
from tests.unit.server.harness import (
    MIB,
    FakeClient,
    Harness,
    encoded,
    errors,
    framed,
    numbers,
    reads_from,
    run,
    turn,
    with_node,
)

# Connections.


def test_a_full_server_makes_room_by_dropping_who_has_not_asked_for_a_session() -> None:
    async def scenario() -> None:
        harness = Harness(max_connections=3)
        client = await harness.client()
        first, second, third = (FakeClient(harness) for _ in range(3))
        assert [one.transport.is_open for one in (client, first, second, third)] == [
            *(True, False, True, True)
        ]
        await third.attach()
        assert third.handler.stage == OPEN

    run(scenario)


def test_a_server_full_of_sessions_refuses_connections() -> None:
    async def scenario() -> None:
        harness = Harness(max_connections=2)
        clients = [await harness.client() for _ in range(2)]
        assert not FakeClient(harness).transport.is_open
        clients[0].connection.connection_lost(None)
        assert FakeClient(harness).transport.is_open
        assert clients[1].handler.stage == OPEN

    run(scenario)


def test_the_time_for_a_handshake_can_be_set() -> None:
    async def scenario() -> None:
        harness = Harness(handshake_timeout_ms=500)
        silent = FakeClient(harness)
        await asyncio.sleep(0.4)
        assert silent.transport.is_open
        await asyncio.sleep(0.2)
        assert not silent.transport.is_open

    run(scenario)


def test_whoever_announces_a_large_handshake_is_disconnected_at_once() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = FakeClient(harness)
        client.receive((1025).to_bytes(4, "big"))
        assert not client.transport.is_open

    run(scenario)


# Requests.


def test_a_line_that_is_too_long_stops_the_reading() -> None:
    async def scenario() -> None:
        harness = Harness(max_requests_per_connection=10)
        client = await harness.client()
        client.send(*[rq.set_data("/", b"")] * 10)
        assert reads_from(client)
        client.send(rq.set_data("/", b""))
        assert not reads_from(client)
        await harness.settle()
        assert reads_from(client)

    run(scenario)


def test_too_many_writes_in_all_hold_back_who_writes_and_nobody_else() -> None:
    async def scenario() -> None:
        harness = Harness(max_requests=20)
        writers = [await harness.client() for _ in range(3)]
        reader = await harness.client()
        writers[0].send(rq.set_data("/", b""))
        # From now on a batch is under way, and the rest gathers.
        await turn()
        for writer in writers:
            writer.send(*[rq.set_data("/", b"")] * 10)
        reader.send(rq.exists("/"))
        assert [reads_from(one) for one in writers] == [True, True, False]
        liveness = harness.liveness_of(writers[2])
        assert liveness.is_held
        assert reads_from(reader)
        assert numbers(reader) == [1]
        await harness.settle()
        assert all(reads_from(one) for one in writers)
        assert [len(one.replies()) for one in writers] == [11, 10, 10]

    run(scenario)


def test_many_bytes_in_all_hold_back_too() -> None:
    async def scenario() -> None:
        harness = Harness(max_request_bytes=MIB)
        client, other = await harness.client(), await harness.client()
        for _ in range(2):
            client.send(rq.set_data("/", bytes(MIB // 2)))
            await turn()
        # One is under way, one waits.
        assert reads_from(client)
        other.send(rq.set_data("/", bytes(MIB // 2)))
        assert not reads_from(other)
        await harness.settle()
        assert reads_from(other)
        assert errors(other) == [Code.OK]

    run(scenario)


def test_whoever_sends_little_is_not_kept_waiting_by_whoever_sends_much() -> None:
    async def scenario() -> None:
        harness = Harness()
        much, little = await harness.client(), await harness.client()
        much.send(rq.set_data("/", b""))
        await turn()
        much.send(*[rq.set_data("/", bytes(MIB // 3))] * 12)
        little.send(rq.set_data("/", b""), rq.set_data("/", b""))
        harness.log.settle()
        await turn()
        harness.log.settle()
        await turn()
        assert numbers(little) == [1, 2]
        assert numbers(much) == [1, 1, 2]
        await harness.settle()
        # In its own order, and all of it.
        assert numbers(much) == list(range(3, 13))

    run(scenario)


def test_a_request_as_large_as_a_batch_has_its_turn_too() -> None:
    async def scenario() -> None:
        harness = Harness()
        large, small = await harness.client(), await harness.client()
        large.send(rq.set_data("/", b""))
        await turn()
        large.send(rq.set_data("/", bytes(MIB - 100)))
        for _ in range(5):
            small.send(rq.set_data("/", bytes(100_000)))
        harness.log.settle()
        await turn()
        harness.log.settle()
        await turn()
        assert numbers(large) == [1, 1]
        await harness.settle()
        assert len(small.replies()) == 5

    run(scenario)


def test_unfinished_requests_are_bounded_in_all() -> None:
    async def scenario() -> None:
        harness = Harness(max_request_bytes=1_500_000)
        clients = [await harness.client() for _ in range(3)]
        for client in clients[:2]:
            client.receive(framed(bytes(1_000_000))[:700_000])
        assert [one.transport.is_open for one in clients] == [True] * 3
        # The connection with the oldest unfinished request is closed to make room.
        clients[2].receive(framed(bytes(1_000_000))[:700_000])
        await turn()
        assert [one.transport.is_open for one in clients] == [False, True, True]
        # A finished request makes room as well, and so does a lost connection.
        clients[1].send(rq.exists("/"))
        clients[1].receive(bytes(300_004))
        clients[2].connection.connection_lost(None)
        others = [await harness.client() for _ in range(2)]
        for client in others:
            client.receive(framed(bytes(1_000_000))[:700_000])
        await turn()
        assert [one.transport.is_open for one in others] == [True, True]

    run(scenario)


def test_what_is_unfinished_counts_behind_whole_requests_too() -> None:
    async def scenario() -> None:
        harness = Harness(max_request_bytes=500_000)
        clients = [await harness.client() for _ in range(3)]
        for client in clients:
            client.receive(encoded(1, rq.exists("/")) + framed(bytes(1_000_000))[:200_000])
        await turn()
        assert [one.transport.is_open for one in clients] == [False, True, True]

    run(scenario)


def test_nothing_is_kept_of_what_comes_after_the_end() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        client.connection.pause_writing()
        client.send(Request(12345, b""))
        client.connection.resume_writing()
        await turn()
        assert client.handler.stage == CLOSED
        for _ in range(10):
            client.receive(framed(bytes(1_000_000))[:90_000])
        assert client.connection._frames.unfinished() == 0

    run(scenario)


def test_whoever_cannot_be_served_in_a_later_turn_is_disconnected() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        client.send(HEAVY, HEAVY)

        def fail() -> None:
            raise ZeroDivisionError

        client.transport.on_write = fail
        await turn()
        assert client.handler.stage == CLOSED
        assert not client.transport.is_open

    run(scenario)


# Turns.

HEAVY = rq.get_ephemerals("/")
LONG = rq.exists("/" + "a" * 40_000)


@pytest.mark.parametrize("heavy_read", [HEAVY, LONG], ids=["heavy", "long"])
def test_heavy_reads_are_answered_one_in_each_turn(heavy_read: Request) -> None:
    async def scenario() -> None:
        harness = Harness()
        heavy, light = await harness.client(), await harness.client()
        heavy.send(heavy_read, heavy_read, rq.exists("/"), heavy_read)
        light.send(rq.exists("/"))
        assert numbers(heavy) == []
        assert numbers(light) == [1]
        assert not reads_from(heavy)
        answered = []
        for _ in range(8):
            await asyncio.sleep(0)
            answered.append(numbers(heavy))
        assert [some for some in answered if some] == [[1], [2], [3, 4]]
        await turn()
        assert reads_from(heavy)

    run(scenario)


def test_a_count_of_descendants_is_not_heavy() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        client.send(*[rq.get_all_children_number("/")] * 3)
        assert numbers(client) == [1, 2, 3]

    run(scenario)


@pytest.mark.parametrize("heavy_read", [HEAVY, LONG], ids=["heavy", "long"])
def test_a_heavy_read_behind_a_write_waits_until_the_batch_is_through(heavy_read: Request) -> None:
    async def scenario() -> None:
        harness = Harness()
        client, other = await harness.client(), await harness.client()
        client.send(
            rq.set_data("/", b""), rq.exists("/"), heavy_read, rq.set_data("/", b""), heavy_read
        )
        other.send(rq.set_data("/", b""))
        await turn()
        assert numbers(client) == []
        harness.log.settle()
        await asyncio.sleep(0)
        # The batch is through: the light read was answered in it, the heavy one was not.
        assert numbers(client) == [1, 2]
        assert numbers(other) == [1]
        await harness.settle()
        assert numbers(client) == [3, 4, 5]
        assert reads_from(client)

    run(scenario)


def test_large_answers_end_a_turn() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await with_node(harness, "/large", bytes(600_000))
        client.send(*[rq.get_data("/large")] * 6, rq.exists("/"))
        assert numbers(client) == [1, 2]
        await asyncio.sleep(0)
        assert numbers(client) == [3, 4]
        await turn()
        assert numbers(client) == [5, 6, 7]

    run(scenario)


# Watches.


@pytest.mark.parametrize(
    "watching",
    [
        rq.exists("/c", watch=True),
        rq.get_data("/", watch=True),
        rq.get_children("/", watch=True),
        rq.get_children2("/", watch=True),
        rq.add_watch("/c", 0),
        rq.add_watch("/c", 1),
        rq.set_watches(1 << 40, data=("/", "/zookeeper")),
    ],
    ids=lambda request: f"operation-{request.op}",
)
def test_watches_of_a_session_are_bounded(watching: Request) -> None:
    async def scenario() -> None:
        harness = Harness(max_watches_per_session=3)
        client, other = await harness.client(), await harness.client()
        client.send(rq.exists("/a", watch=True), rq.exists("/b", watch=True))
        client.send(rq.exists("/zookeeper", watch=True))
        client.replies()
        client.send(watching)
        await turn()
        assert errors(client) == [QUOTA_EXCEEDED]
        assert (client.watcher.watch_count, harness.watches.data.size) == (3, 3)
        assert harness.watches.child.size == 0
        # What it watches already it may watch again, and the others have watches of their own.
        client.send(rq.exists("/zookeeper", watch=True), rq.exists("/"))
        other.send(watching)
        await turn()
        assert errors(client) == [Code.OK, Code.OK]
        assert QUOTA_EXCEEDED not in errors(other)

    run(scenario)


@pytest.mark.parametrize(
    ("watching", "counts"),
    [
        (rq.get_data("/", watch=True), 1),
        (rq.add_watch("/", 0), 2),
        (rq.add_watch("/", 1), 1),
        (rq.set_watches2(1 << 40, ["/"], [], ["/"], ["/"], ["/"]), 5),
    ],
    ids=["data", "persistent", "recursive", "setWatches2"],
)
def test_each_mode_of_a_watch_counts_in_each_table(watching: Request, counts: int) -> None:
    async def scenario() -> None:
        for room, code in ((counts, Code.OK), (counts - 1, QUOTA_EXCEEDED)):
            # One is taken by another watch.
            harness = Harness(max_watches_per_session=room + 1)
            client = await harness.client()
            client.send(rq.exists("/none", watch=True), watching)
            await turn()
            assert errors(client) == [Code.NO_NODE, code]
            assert client.watcher.watch_count == 1 + (counts if code == Code.OK else 0)
            if code == Code.OK and watching.op == Op.ADD_WATCH:
                client.send(watching)
                assert errors(client) == [Code.OK], "it stands already"

    run(scenario)


def test_the_bytes_of_watched_paths_are_bounded() -> None:
    async def scenario() -> None:
        harness = Harness(max_watch_bytes_per_session=1000)
        client = await harness.client()
        client.send(*[rq.exists("/" + str(number) * 399, watch=True) for number in range(3)])
        assert errors(client) == [Code.NO_NODE, Code.NO_NODE, QUOTA_EXCEEDED]

    run(scenario)


def test_a_watch_that_has_fired_makes_room_for_another() -> None:
    async def scenario() -> None:
        harness = Harness(max_watches_per_session=1)
        client = await harness.client()
        client.send(rq.get_data("/", watch=True))
        client.send(rq.set_data("/", b""))
        await harness.settle()
        client.replies()
        client.send(rq.get_data("/", watch=True))
        assert errors(client) == [Code.OK]
        assert client.watcher.watch_bytes == 1

    run(scenario)


def test_watches_that_are_about_to_be_set_count_for_all() -> None:
    async def scenario() -> None:
        # Each look at the clock takes a millisecond, so that they are all under way together.
        ticks = itertools.count()
        harness = Harness(lambda: next(ticks) / 1000, max_watches=1_500)
        clients = [await harness.client() for _ in range(10)]
        for number, client in enumerate(clients):
            paths = [f"/none/{number}/{n}" for n in range(1_000)]
            client.send(rq.set_watches2(0, [], paths, [], [], []))
        for _ in range(50):
            await turn()
        answers = [error for client in clients for error in errors(client)]
        assert sorted(answers) == [QUOTA_EXCEEDED] * 9 + [Code.OK]
        assert harness.watches.reserved == 0
        for client in clients:
            client.connection.connection_lost(None)
        await turn()
        assert harness.watches.data.size == 0

    run(scenario)


def test_a_connection_has_one_place_among_those_who_wait_for_a_turn() -> None:
    async def scenario() -> None:
        ticks = itertools.count()
        harness = Harness(lambda: next(ticks) / 1000)
        client = await harness.client()
        paths = [f"/none/{number}" for number in range(5_000)]
        client.send(rq.set_watches2(0, [], paths, [], [], []))
        await turn()
        # It is under way, and nothing else is held.
        assert numbers(client) == []
        for _ in range(10):
            client.connection.pause_writing()
            client.connection.resume_writing()
        assert len(harness.service.turns._waiting) == 1
        for _ in range(50):
            await turn()
        assert numbers(client) == [1]

    run(scenario)


def test_no_list_is_made_within_a_batch_without_room_to_keep_it() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        harness.machine.tree.answers.size = CACHED_BYTES_MAX
        client.send(rq.create("/a"), *[rq.get_children("/")] * 5)
        await turn()
        assert len(client.handler._held) == 5
        await harness.settle()
        await turn()
        assert numbers(client) == [1, 2, 3, 4, 5, 6]

    run(scenario)

"""What waits for clients that do not read: by reference, within bounds, and dropped with them."""

from __future__ import annotations

from paddock.server.connections.request_handler import CLOSED, OPEN
from paddock.storage.events import FAULT
from tests.support import requests as rq
from tests.unit.server.harness import (
    MIB,
    Harness,
    numbers,
    run,
    turn,
    with_node,
)


def test_large_replies_wait_by_reference_for_a_client_that_does_not_read() -> None:
    async def scenario() -> None:
        harness = Harness(max_reply_bytes_per_connection=MIB)
        client = await with_node(harness, "/large", bytes(1_000_000))
        client.transport.on_write = client.connection.pause_writing
        # Behind a write, reads cannot be put off.
        client.send(rq.set_data("/", b""), *[rq.get_data("/large")] * 500, rq.set_data("/", b""))
        await harness.settle()
        # The node's data counts once, since it may be nobody else's by now.
        assert harness.service.backlog.size < 1_000_000 + 500 * 200
        seen: list[int] = []
        while len(seen) < 502:
            seen += numbers(client)
            client.connection.resume_writing()
        assert seen == list(range(1, 503))
        assert harness.service.backlog.size == 0
        assert client.handler.stage == OPEN

    run(scenario)


def test_a_client_that_does_not_read_its_events_is_dropped() -> None:
    async def scenario() -> None:
        harness = Harness(max_reply_bytes_per_connection=10_000)
        deaf, writer = await harness.client(), await harness.client()
        deaf.send(rq.add_watch("/", 1))
        deaf.connection.pause_writing()
        events = 0
        while deaf.handler.stage == OPEN:
            writer.send(rq.set_data("/", b""))
            await harness.settle()
            assert harness.service.backlog.size < 11_000
            events += 1
        assert events > 100
        assert not deaf.transport.is_open
        assert harness.service.backlog.size == 0
        assert harness.watches.data.size == 0
        assert writer.handler.stage == OPEN

    run(scenario)


def test_copies_that_wait_behind_a_write_are_bounded() -> None:
    async def scenario() -> None:
        harness = Harness(max_reply_bytes_per_connection=MIB)
        # So small that it is copied.
        client = await with_node(harness, "/small", bytes(15_000))
        client.transport.on_write = client.connection.pause_writing
        client.send(rq.set_data("/", b""), *[rq.get_data("/small")] * 400, rq.set_data("/", b""))
        await harness.settle()
        assert not client.transport.is_open
        assert harness.service.backlog.size == 0

    run(scenario)


def test_all_that_waits_is_bounded_together_and_the_greediest_goes() -> None:
    async def scenario() -> None:
        harness = Harness(max_reply_bytes=3 * MIB)
        maker = await with_node(harness, "/large", bytes(100_000))
        greedy = [await harness.client() for _ in range(5)]
        modest = await harness.client()
        for client in (*greedy, modest):
            client.connection.pause_writing()
        for _ in range(12):
            for client in greedy:
                client.watcher.notify(bytes(200_000))
            modest.watcher.notify(bytes(100))
            await turn()
        assert harness.service.backlog.size < 4 * MIB + 5 * MIB
        assert any(client.handler.stage == CLOSED for client in greedy)
        assert modest.handler.stage == OPEN
        assert maker.handler.stage == OPEN

    run(scenario)


def test_a_single_reply_may_be_larger_than_the_limit() -> None:
    async def scenario() -> None:
        harness = Harness(max_reply_bytes_per_connection=1000)
        client = await harness.client()
        client.send(*[rq.create(f"/{number}{'x' * 500}", b"") for number in range(50)])
        await harness.settle()
        client.replies()
        client.transport.on_write = client.connection.pause_writing
        client.send(rq.exists("/"), rq.get_children2("/"))
        seen: list[int] = []
        while len(seen) < 2:
            seen += numbers(client)
            client.connection.resume_writing()
        assert client.handler.stage == OPEN

    run(scenario)


def test_whoever_reads_may_ask_for_more_than_may_wait() -> None:
    async def scenario() -> None:
        harness = Harness(max_reply_bytes_per_connection=20_000)
        client = await harness.client()
        client.send(*[rq.create(f"/{number}{'x' * 500}", b"") for number in range(50)])
        await harness.settle()
        client.replies()
        client.send(*[rq.get_children2("/")] * 5)
        assert numbers(client) == [1, 2, 3, 4, 5]
        assert client.handler.stage == OPEN
        assert harness.service.backlog.size == 0

    run(scenario)


def test_large_replies_that_nobody_takes_are_bounded_together() -> None:
    async def scenario() -> None:
        harness = Harness(max_reply_bytes=7 * MIB)
        await with_node(harness, "/large", bytes(500_000))
        clients = [await harness.client() for _ in range(10)]
        reader = clients.pop()
        for client in clients:
            client.transport.on_write = client.connection.pause_writing
        for client in (*clients, reader):
            # A copy of its own, handed to the transport as a whole.
            client.send(rq.multi_read(*[rq.get_data("/large")] * 4))
            await turn()
            assert harness.service.backlog.size < 7 * MIB
        # Those went who had not read for longest.
        stages = [client.handler.stage for client in (*clients, reader)]
        assert stages == [CLOSED] * 6 + [OPEN] * 4
        for client in clients[6:]:
            client.transport.on_write = None
            client.connection.resume_writing()
            assert numbers(client) == [1]
        assert harness.service.backlog.size == 0

    run(scenario)


def test_small_events_that_wait_are_handed_over_together() -> None:
    async def scenario() -> None:
        harness = Harness()
        slow, writer = await harness.client(), await harness.client()
        slow.send(rq.add_watch("/", 1))
        slow.replies()
        slow.connection.pause_writing()
        for _ in range(1000):
            writer.send(rq.set_data("/", b""))
            await harness.settle()
        before = slow.transport.writes
        slow.connection.resume_writing()
        assert slow.transport.writes - before < 50
        assert len(slow.replies()) == 1000
        assert harness.service.backlog.size == 0

    run(scenario)


def test_a_large_event_counts_once_however_many_it_waits_for() -> None:
    async def scenario() -> None:
        harness = Harness(max_reply_bytes=3 * MIB)
        deaf = [await harness.client() for _ in range(20)]
        for client in deaf:
            client.connection.pause_writing()
        event = bytes(2 * MIB)
        for client in deaf:
            client.watcher.notify(event)
        await turn()
        assert harness.service.backlog.size == len(event)
        assert {client.handler.stage for client in deaf} == {OPEN}
        for client in deaf[1:]:
            client.connection.abort(FAULT)
            client.connection.connection_lost(None)
        assert harness.service.backlog.size == len(event)
        deaf[0].connection.resume_writing()
        await turn()
        assert harness.service.backlog.size == 0

    run(scenario)

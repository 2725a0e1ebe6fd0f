"""What a request handler counts: each request once, and how long queries take."""

from __future__ import annotations

from paddock.protocol import opcodes
from tests.support import requests as rq
from tests.support.records import Request
from tests.unit.server.harness import Harness, run, turn, with_node


def test_each_request_is_counted_by_its_operation() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await with_node(harness, "/a", b"")
        client.send(rq.get_data("/a"), rq.get_data("/a"), rq.exists("/a"), rq.set_data("/a", b"x"))
        client.send(rq.get_children("/"), rq.get_children2("/"), rq.ping())
        await harness.settle()
        counts = harness.service.operations
        found = {
            number: counts.of(number)
            for number in (
                *(opcodes.GET_DATA, opcodes.EXISTS, opcodes.SET_DATA, opcodes.CREATE),
                *(opcodes.GET_CHILDREN, opcodes.GET_CHILDREN2, opcodes.PING),
            )
        }
        assert found == {**dict.fromkeys(found, 1), opcodes.GET_DATA: 2}

    run(scenario)


def test_the_rarer_ones_are_counted_once_too() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await with_node(harness, "/a", b"")
        behind = [rq.set_watches(0, data=["/a"]), rq.add_watch("/a", 0), rq.changes("/", -1, 1)]
        client.send(rq.sync("/"), rq.who_am_i(), *behind)
        await harness.settle()
        await turn()
        # The same behind a write: some have to wait for it.
        client.send(rq.set_data("/a", b"x"), rq.sync("/"), rq.who_am_i(), *behind)
        await harness.settle()
        await turn()
        counts = harness.service.operations
        for number in (
            *(opcodes.SYNC, opcodes.WHO_AM_I, opcodes.SET_WATCHES, opcodes.ADD_WATCH),
            opcodes.CHANGES,
        ):
            assert counts.of(number) == 2, number

    run(scenario)


def test_a_query_that_has_to_wait_counts_once() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await with_node(harness, "/a", b"")
        # More queries behind a write than may wait for it: the rest is put back.
        client.send(rq.set_data("/a", b"x"), *[rq.get_data("/a")] * 600)
        await harness.settle()
        await turn()
        assert len(client.replies()) == 601
        assert harness.service.operations.of(opcodes.GET_DATA) == 600

    run(scenario)


def test_an_unknown_operation_is_not_counted() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        # It has the bits of a get in its number, and of a create.
        for number in (opcodes.GET_DATA | 1 << 20, opcodes.CREATE | 1 << 20):
            client = await harness.client()
            client.send(Request(number, b""))
        counts = harness.service.operations
        assert (counts.of(opcodes.GET_DATA), counts.of(opcodes.CREATE)) == (0, 0)

    run(scenario)


def test_a_query_is_measured_now_and_then_and_stands_for_the_others() -> None:
    async def scenario() -> None:
        now = [10.0]

        def clock() -> float:
            # Each look at the clock is a millisecond later.
            now[0] += 0.001
            return now[0]

        harness = Harness(clock)
        client = await with_node(harness, "/a", b"")
        for _ in range(200):
            client.send(rq.get_data("/a"))
        measured = harness.service.statistics.read_ms
        # All but those since the last sample.
        assert 100 <= measured.count <= 200
        assert round(measured.average(), 3) == 1.0
        # Those of a long read are, too; it looks at the clock more often.
        client.send(*[rq.get_data("/a")] * 100)
        assert measured.count >= 300 - 80
        # Writes are not measured here.
        before = measured.count
        for _ in range(200):
            client.send(rq.set_data("/a", b"x"))
            await harness.settle()
        assert measured.count == before

    run(scenario)


def test_a_query_that_waits_for_its_turn_is_measured_until_then() -> None:
    async def scenario() -> None:
        now = [10.0]
        harness = Harness(lambda: now[0])
        client = await harness.client()
        statistics = harness.service.statistics
        # A heavy one waits for a turn.
        heavy = Request(opcodes.GET_EPHEMERALS, b"\0\0\0\1/")
        client.send(*[rq.get_data("/")] * 20, heavy)
        assert statistics.read_ms.count == 0
        now[0] += 0.25
        await turn()
        assert len(client.replies()) == 21
        assert (statistics.read_ms.count, statistics.read_ms.average()) == (20, 250.0)

    run(scenario)


def test_queries_with_a_write_among_them_are_not_measured() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await with_node(harness, "/a", b"")
        client.send(*[rq.get_data("/a")] * 10, rq.set_data("/a", b"x"), *[rq.get_data("/a")] * 10)
        await harness.settle()
        assert len(client.replies()) == 21
        assert harness.service.statistics.read_ms.count == 0
        client.send(*[rq.get_data("/a")] * 80)
        client.send(*[rq.get_data("/a")] * 80)
        assert harness.service.statistics.read_ms.count > 0

    run(scenario)

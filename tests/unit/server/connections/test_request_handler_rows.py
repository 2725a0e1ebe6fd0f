"""Queries behind writes: each sees the writes before it, and none after, however they come."""

from __future__ import annotations

from itertools import pairwise

import pytest

from paddock.errors import MARSHALLING_ERROR, NO_NODE, OK
from paddock.protocol import opcodes
from paddock.protocol.records import PING_XID
from paddock.server.connections.turns import TURN_SECONDS
from paddock.state.queries import Queries
from tests.support import requests as rq
from tests.support.records import Request
from tests.unit.server.harness import Harness, encoded, run, turn, with_node


def data_of(body: bytes) -> bytes:
    """Return the data in an answer to get."""
    length = int.from_bytes(body[:4], "big")
    return body[4 : 4 + length]


def test_queries_see_the_writes_before_them_and_none_after() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await with_node(harness, "/a", b"0")
        get = rq.get_data("/a")
        row = [get, rq.exists("/a"), get, rq.get_children("/"), get]
        client.send(get, rq.set_data("/a", b"1"), *row, rq.set_data("/a", b"2"), *row)
        assert [(xid, data_of(body)) for xid, _, body in client.replies()] == [(1, b"0")]
        await harness.settle()
        replies = client.replies()
        assert [(xid, error) for xid, error, _ in replies] == [(xid, OK) for xid in range(2, 14)]
        found = {xid: data_of(body) for xid, _, body in replies}
        assert [found[xid] for xid in (3, 5, 7)] == [b"1"] * 3
        assert [found[xid] for xid in (9, 11, 13)] == [b"2"] * 3

    run(scenario)


def test_each_of_a_row_has_its_own_result() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await with_node(harness, "/a", b"0")
        broken = Request(opcodes.GET_DATA, b"\0\0\0\x09/a")
        row = [rq.get_data("/none"), broken, rq.exists("/b"), rq.get_data("/a")]
        client.send(rq.create("/b", b"1"), *row)
        await harness.settle()
        assert [error for _, error, _ in client.replies()] == [
            OK,
            NO_NODE,
            MARSHALLING_ERROR,
            OK,
            OK,
        ]

    run(scenario)


def test_a_ping_in_a_row_is_answered_at_once_and_leaves_it_as_it_is() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await with_node(harness, "/a", b"0")
        get = rq.get_data("/a")
        client.send(rq.set_data("/a", b"1"), get, rq.ping(), get, get)
        assert [xid for xid, _, _ in client.replies()] == [PING_XID]
        await harness.settle()
        assert [xid for xid, _, _ in client.replies()] == [1, 2, 4, 5]

    run(scenario)


def test_a_frame_without_a_header_ends_a_row_and_the_connection() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await with_node(harness, "/a", b"0")
        requests = [rq.set_data("/a", b"1"), rq.get_data("/a"), rq.get_data("/a")]
        sent = [encoded(xid, one) for xid, one in enumerate(requests, 1)]
        # The number of a get stands where a longer frame has its operation.
        behind = encoded(opcodes.GET_DATA, requests[1])
        client.receive(b"".join((*sent, b"\0\0\0\0", behind)))
        await harness.settle()
        assert client.replies() == []
        assert client.transport.is_closing()
        assert harness.proposer.waiting_bytes == 0

    run(scenario)


def test_more_than_may_wait_are_answered_in_order_too() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await with_node(harness, "/a", b"0")
        client.send(rq.set_data("/a", b"1"), *[rq.get_data("/a")] * 700)
        assert client.handler.queue.waiting_count == 500
        await harness.settle()
        await turn()
        assert [xid for xid, _, _ in client.replies()] == list(range(1, 702))

    run(scenario)


def test_a_long_request_does_not_wait_in_a_row() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await with_node(harness, "/a", b"0")
        get, long = rq.get_data("/a"), rq.get_data("/" + "x" * 40_000)
        client.send(rq.set_data("/a", b"1"), get, long, get)
        assert client.handler.queue.waiting_count == 1
        await harness.settle()
        await turn()
        assert [error for _, error, _ in client.replies()] == [OK, OK, NO_NODE, OK]

    run(scenario)


def test_a_row_goes_on_in_the_next_read() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await with_node(harness, "/a", b"0")
        requests = [rq.set_data("/a", b"1"), *[rq.get_data("/a")] * 4]
        sent = b"".join(encoded(xid, one) for xid, one in enumerate(requests, 1))
        # In the middle of the third one.
        cut = len(sent) // 2
        client.receive(sent[:cut])
        client.receive(sent[cut:])
        assert client.handler.queue.length == 5
        await harness.settle()
        assert [xid for xid, _, _ in client.replies()] == [1, 2, 3, 4, 5]
        assert (client.handler.queue.length, harness.proposer.waiting_bytes) == (0, 0)

    run(scenario)


def test_gets_in_a_row_are_answered_in_the_turn_of_their_client_only() -> None:
    async def scenario() -> None:
        now = 0.0

        def monotonic() -> float:
            # A turn is over at the third look at the clock.
            nonlocal now
            now += TURN_SECONDS * 0.4
            return now

        harness = Harness(monotonic)
        client = await with_node(harness, "/a", b"0")
        client.send(rq.get_data("/a"))
        assert len(client.replies()) == 1
        client.send(*[rq.get_data("/a")] * 400)
        # There is a look after each sixteen requests, and four gets count as one.
        assert len(client.replies()) == 125
        for _ in range(10):
            await turn()
        assert len(client.replies()) == 275

    run(scenario)


def test_replies_to_gets_in_a_row_are_sent_when_enough_has_gathered() -> None:
    async def scenario() -> None:
        harness = Harness(lambda: 0.0)
        client = await with_node(harness, "/a", b"x" * 15_000)
        ends: list[int] = []
        client.transport.on_write = lambda: ends.append(len(client.transport.written))
        for requests in ([], [rq.set_data("/a", b"y" * 15_000)]):
            client.send(rq.get_data("/a"))
            del ends[:-1]
            client.send(*requests, *[rq.get_data("/a")] * 200)
            await harness.settle()
            await turn()
            sizes = [end - start for start, end in pairwise(ends)]
            assert sum(sizes) > 3_000_000
            assert max(sizes) < (1 << 20) + (1 << 14)
            assert len(client.replies()) == 201 + len(requests)

    run(scenario)


@pytest.mark.source
def test_plain_gets_take_the_short_way_alone_and_behind_a_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await with_node(harness, "/a", b"0")
        monkeypatch.setattr(Queries, "answer", None)
        client.send(*[rq.get_data("/a")] * 40)
        assert len(client.replies()) == 40
        client.send(rq.set_data("/a", b"1"), *[rq.get_data("/a")] * 40)
        await harness.settle()
        assert len(client.replies()) == 41

    run(scenario)

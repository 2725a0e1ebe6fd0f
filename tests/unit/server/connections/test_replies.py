"""The answers to one client's queries, in the order of its requests."""

from __future__ import annotations

import pytest

from paddock.errors import AUTH_FAILED, NO_AUTH, OK, UNIMPLEMENTED
from paddock.protocol import opcodes
from paddock.protocol.jute import Reader
from paddock.protocol.records import ReplyHeader
from paddock.server.connections.replies import HEAVY_BYTES, Replies
from paddock.server.connections.reply_queue import FINAL, QUERIES, READY, Waiting
from paddock.state.access import NOBODY
from paddock.storage import events
from tests.support import requests as rq
from tests.support.records import Request
from tests.unit.server.harness import FakeClient, Harness, encoded, run, with_node


def replies_of(harness: Harness, client: FakeClient) -> Replies:
    handler = client.handler
    return Replies(harness.service, handler.queue, handler.buffer, handler.watcher)


def ready(xid: int, error: int = OK, *, kind: int = READY, zxid: int = 0) -> Waiting:
    return Waiting(kind, b"body", 1, NOBODY, xid, error, zxid)


def frames(*requests: Request) -> bytes:
    return b"".join(encoded(xid, one) for xid, one in enumerate(requests, 1))


def answered(client: FakeClient) -> list[int]:
    """Return whose requests are answered now."""
    client.handler.buffer.flush()
    return [xid for xid, _, _ in client.replies()]


def test_what_waits_is_answered_up_to_the_next_write() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await with_node(harness, "/a", b"0")
        replies, queue = replies_of(harness, client), client.handler.queue
        queue.enter_write(10)
        replies.enqueue(ready(2))
        queue.enter_write(10)
        replies.enqueue(ready(4))
        assert replies.answer_waiting() == ""
        assert answered(client) == []
        queue.leave_write(10)
        assert replies.answer_waiting() == ""
        assert answered(client) == [2]
        assert harness.proposer.waiting_bytes == len(b"body")
        queue.leave_write(10)
        assert replies.answer_waiting() == ""
        assert answered(client) == [4]
        assert harness.proposer.waiting_bytes == 0

    run(scenario)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OK, events.CLOSED),
        (AUTH_FAILED, events.AUTHENTICATION),
        (UNIMPLEMENTED, events.PROTOCOL_ERROR),
        (NO_AUTH, events.FAULT),
    ],
)
def test_nothing_is_answered_behind_a_final_reply(error: int, reason: str) -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        replies = replies_of(harness, client)
        for waiting in (ready(1), ready(2, error, kind=FINAL), ready(3)):
            replies.enqueue(waiting)
        assert replies.answer_waiting() == reason
        assert answered(client) == [1, 2]
        assert harness.proposer.waiting_bytes == len(b"body")
        replies.clear()
        assert harness.proposer.waiting_bytes == 0
        assert client.handler.queue.length == 0

    run(scenario)


def test_no_zxid_goes_back() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await with_node(harness, "/a", b"0")
        replies = replies_of(harness, client)
        for xid, zxid in ((1, 1), (2, 0), (3, -1)):
            replies.enqueue(ready(xid, zxid=zxid))
        replies.answer_waiting()
        client.handler.buffer.flush()
        headers = [ReplyHeader.read(Reader(frame)) for frame in client.transport.frames()]
        # Replies that name no zxid stay as they are.
        assert [header.zxid for header in headers] == [harness.machine.zxid, 0, -1]

    run(scenario)


def test_gets_and_exists_share_an_entry() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await with_node(harness, "/a", b"0")
        replies, queue = replies_of(harness, client), client.handler.queue
        get, exists = rq.get_data("/a"), rq.exists("/a")
        row = frames(get, exists, get)
        first = len(frames(get))
        queue.enter_write(0)
        for behind in (
            rq.get_children("/a"),
            rq.set_data("/a", b"1"),
            Request(opcodes.GET_DATA, bytes(HEAVY_BYTES)),
        ):
            data = row + frames(behind)
            assert replies.enqueue_queries(data, 0, first, len(data)) == len(row)
            waiting = queue.take()
            assert (waiting.kind, waiting.count, waiting.body) == (QUERIES, 3, row)
        # A frame that is too short for a header.
        data = row + b"\0\0\0\4abcd"
        assert replies.enqueue_queries(data, 0, first, len(data)) == len(row)

    run(scenario)


def test_queries_that_waited_count_as_work_of_the_slice() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await with_node(harness, "/a", b"0")
        replies, replica = replies_of(harness, client), harness.service.replica
        data = frames(*[rq.get_data("/a")] * 3)
        before = replica.work
        replies.enqueue_queries(data, 0, len(data) // 3, len(data))
        assert replies.answer_waiting() == ""
        assert answered(client) == [1, 2, 3]
        assert replica.work == before + 3

    run(scenario)


def test_so_many_may_wait_and_the_others_are_held() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await with_node(harness, "/a", b"0")
        replies, queue = replies_of(harness, client), client.handler.queue
        get = rq.get_data("/a")
        length = len(frames(get))
        data = frames(*[get] * 600)
        queue.enter_write(0)
        assert not replies.must_wait(opcodes.GET_DATA, data, 12, length)
        assert replies.enqueue_queries(data, 0, length, len(data)) == 500 * length
        assert replies.must_wait(opcodes.GET_DATA, data, 500 * length + 12, 501 * length)
        queue.leave_write(0)
        assert replies.answer_waiting() == ""
        assert answered(client) == list(range(1, 501))

    run(scenario)


def test_a_long_list_of_children_is_not_made_within_a_batch() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await with_node(harness, "/a", b"0")
        replies = replies_of(harness, client)
        body = rq.get_children("/a").body

        def must_wait(data: bytes = body) -> bool:
            return replies.must_wait(opcodes.GET_CHILDREN, data, 0, len(data))

        client.send(*[rq.create(f"/a/{number}", b"") for number in range(1_000)])
        await harness.settle()
        assert not must_wait()
        client.send(rq.create("/a/one-more", b""))
        await harness.settle()
        assert must_wait()
        # What is not there, and what cannot be read, is answered at once.
        assert not must_wait(rq.get_children("/none").body)
        assert not must_wait(b"\0\0\0\x09/a")
        assert not replies.must_wait(opcodes.GET_DATA, body, 0, len(body))

    run(scenario)

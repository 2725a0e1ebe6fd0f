"""The order of replies, the stages of a connection, and what the log's outcomes mean for it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket

import pytest

from paddock.errors import NO_NODE, OK, SYSTEM_ERROR
from paddock.protocol.jute import Reader
from paddock.protocol.records import ReplyHeader
from paddock.server.connections.connection import Connection
from paddock.server.connections.request_handler import RequestHandler
from paddock.server.connections.send_buffer import ConnectionWatcher
from paddock.server.connections.turns import PASS_SECONDS
from paddock.server.replication.pacing import DISPUTED, Pacing
from paddock.testing.clock import run_virtually
from tests.support import requests as rq
from tests.support.logs import Durability
from tests.support.records import INT, MULTI_HEADER, Acl, Op
from tests.unit.server.harness import (
    FakeClient,
    Harness,
    encoded,
    framed,
    numbers,
    run,
    turn,
    with_node,
)

CREATOR_ONLY = (Acl(31, "auth", ""),)
PARTS = (Connection, RequestHandler, ConnectionWatcher)
MULTI_END = MULTI_HEADER.pack(-1, True, -1)


def test_a_write_that_is_declined_behind_another_does_not_show_an_older_zxid() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        client.send(rq.create("/n"))
        harness.proposer.pacing = Pacing(lambda: 0.0, 1 << 16)
        harness.proposer.pacing.restrain(DISPUTED, True)
        client.send(rq.create("/m"))
        harness.proposer.pacing = None
        await harness.settle()
        headers = [ReplyHeader.read(Reader(frame)) for frame in client.transport.frames()]
        assert [header.error for header in headers] == [OK, SYSTEM_ERROR]
        assert headers[0].zxid == headers[1].zxid == harness.machine.zxid

    run(scenario)


def test_replies_of_one_pass_go_out_together() -> None:
    async def scenario() -> None:
        harness = Harness()
        first, second = await harness.client(), await harness.client()
        request = encoded(1, rq.exists("/"))
        for client in (first, second):
            client.receive(request, is_alone=False)
        assert not numbers(first)
        await turn()
        assert numbers(first) == numbers(second) == [1]
        # Who has asked last is answered at once.
        harness.service.turns.last_reader = second.handler
        second.connection.data_received(request)
        assert numbers(second) == [1]

    run(scenario)


def test_no_reply_waits_for_a_long_read_of_another() -> None:
    async def scenario() -> None:
        harness = Harness()
        first, second = await harness.client(), await harness.client()
        first.receive(encoded(1, rq.exists("/")), is_alone=False)
        many = b"".join(encoded(xid, rq.exists("/" + "x" * 50)) for xid in range(1, 101))
        second.receive(many, is_alone=False)
        assert numbers(first) == [1]
        assert len(numbers(second)) == 100

    run(scenario)


def test_a_read_between_two_writes_sees_the_first_and_not_the_second() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        client.send(
            rq.create("/n", b"one"),
            rq.get_data("/n"),
            rq.set_data("/n", b"two"),
            rq.get_data("/n"),
            rq.delete("/n"),
            rq.exists("/n"),
        )
        await turn()
        assert len(harness.log.proposals) == 2  # the session, and all three writes together
        assert client.replies() == []
        await harness.settle()
        replies = client.replies()
        assert [xid for xid, _, _ in replies] == [1, 2, 3, 4, 5, 6]
        assert replies[1][2][4:7] == b"one"
        assert replies[3][2][4:7] == b"two"
        assert replies[5][1] == NO_NODE

    run(scenario)


def test_a_read_with_nothing_under_way_is_answered_at_once() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        other = await harness.client()
        other.send(rq.create("/n"))
        client.send(rq.exists("/"), rq.get_children("/"))
        assert [xid for xid, _, _ in client.replies()] == [1, 2]
        assert client.transport.writes == 2  # the handshake, and both replies in one

    run(scenario)


@pytest.mark.parametrize("tls", [False, True])
def test_while_the_log_syncs_a_reply_is_written_past_the_transport_but_not_past_tls(
    tls: bool,
) -> None:
    async def scenario() -> None:
        harness = Harness()
        with contextlib.ExitStack() as stack:
            ours, theirs = map(stack.enter_context, socket.socketpair())
            theirs.setblocking(False)
            client = await harness.client(tls=tls, own_socket=ours)
            other = await harness.client()
            client.send(rq.exists("/"))
            assert numbers(client) == [1]
            other.send(rq.create("/n"))
            await turn()
            client.send(rq.exists("/"))
            if tls:
                assert numbers(client) == [1]
            else:
                assert theirs.recv(1000)[4:8] == INT.pack(1)
                assert numbers(client) == []
            await harness.settle()
            client.send(rq.exists("/"))
            assert numbers(client) == [1]

    run(scenario)


def test_a_read_does_not_see_what_is_not_durable_yet() -> None:
    async def scenario() -> None:
        harness = Harness()
        writer, reader = await harness.client(), await harness.client()
        writer.send(rq.create("/n"))
        await turn()
        reader.send(rq.exists("/n"))
        assert reader.replies()[0][1] == NO_NODE
        await harness.settle()
        reader.send(rq.exists("/n"))
        assert reader.replies()[0][1] == OK

    run(scenario)


def is_read(client: FakeClient) -> bool:
    return client.transport.is_reading_now


def test_a_long_read_waits_for_its_turn_when_a_pass_has_served_enough_of_them() -> None:
    now = 0.0

    async def scenario() -> None:
        nonlocal now
        harness = Harness(lambda: now)
        early, late, gone, small = [await harness.client() for _ in range(4)]
        many = [rq.exists("/")] * 300
        early.send(*many)
        assert len(numbers(early)) == 300
        now += PASS_SECONDS
        late.send(*many)
        gone.send(*many)
        small.send(rq.exists("/"))
        assert numbers(late) == numbers(gone) == []
        assert not is_read(late)
        assert numbers(small) == [1]
        gone.connection.connection_lost(None)
        await turn()
        assert numbers(late) == list(range(1, 301))
        assert is_read(late)
        late.send(*many)
        assert len(numbers(late)) == 300

    run(scenario)


def test_pings_alone_overtake() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        client.send(rq.create("/n"), rq.exists("/n"), rq.ping())
        assert [xid for xid, _, _ in client.replies()] == [-2]
        await harness.settle()
        assert [xid for xid, _, _ in client.replies()] == [1, 2]

    run(scenario)


def test_what_is_refused_without_the_log_waits_its_turn() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        client.send(rq.create("/n"), rq.auth("nonsense", b""), rq.exists("/n"))
        await turn()
        assert client.replies() == []
        assert client.transport.is_open
        await harness.settle()
        assert [xid for xid, _, _ in client.replies()] == [1, 2]
        assert not client.transport.is_open

    run(scenario)


def test_a_read_is_judged_by_who_its_client_was_when_it_asked() -> None:
    async def scenario() -> None:
        harness = Harness()
        client, owner = await harness.client(), await harness.client()
        owner.send(rq.auth("digest", b"ann:secret"))
        owner.send(rq.create("/n", b"", CREATOR_ONLY))
        await harness.settle()
        client.send(
            rq.create("/m"), rq.get_data("/n"), rq.auth("digest", b"ann:secret"), rq.get_data("/n")
        )
        await harness.settle()
        assert [error for _, error, _ in client.replies()] == [OK, -102, OK, OK]

    run(scenario)


def test_an_event_comes_before_the_reply_that_shows_the_change() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        client.send(rq.exists("/n", watch=True), rq.create("/n"), rq.get_data("/n"))
        await harness.settle()
        assert [xid for xid, _, _ in client.replies()] == [1, -1, 2, 3]

    run(scenario)


def test_what_was_surely_not_written_is_refused_and_takes_no_zxid() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        before = harness.machine.zxid
        client.send(rq.create("/n"), rq.exists("/n"))
        await harness.settle(Durability.NOT_WRITTEN)
        assert [error for _, error, _ in client.replies()] == [SYSTEM_ERROR, NO_NODE]
        assert harness.machine.zxid == before
        client.send(rq.create("/n"))
        await harness.settle()
        assert client.replies()[0][1] == OK
        assert harness.machine.zxid == before + 1

    run(scenario)


def test_an_unknown_outcome_is_not_answered() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        told: list[str] = []
        harness.proposer.on_unknown = told.append
        client.send(rq.create("/n"))
        await turn()
        harness.log.settle(Durability.UNKNOWN)
        await turn()
        assert len(told) == 1
        assert client.replies() == []
        # And nothing more is proposed until the log was read again.
        client.send(rq.create("/m"))
        await turn()
        assert len(harness.log.proposals) == 2

    run(scenario)


def test_a_client_that_does_not_read_is_not_read_from() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        client.connection.pause_writing()
        liveness = harness.liveness_of(client)
        assert [liveness.is_held, client.transport.is_reading_now] == [True, False]
        client.connection.resume_writing()
        assert [liveness.is_held, client.transport.is_reading_now] == [False, True]

    run(scenario)


def test_a_client_that_reads_slowly_lives_and_one_that_does_not_read_expires() -> None:
    async def scenario() -> None:
        harness = Harness()
        harness.service.tracker.start()
        slow, stuck = await harness.client(), await harness.client()
        for client in (slow, stuck):
            client.transport.waiting_bytes = 1_000_000
            client.connection.pause_writing()
        for _ in range(20):
            slow.transport.waiting_bytes -= 1
            await asyncio.sleep(6)  # their timeout
            await harness.settle()
        assert list(harness.machine.sessions.by_id) == [slow.session]
        assert not stuck.transport.is_open
        harness.service.tracker.stop()

    run_virtually(scenario())


def test_a_client_is_served_no_further_than_it_reads() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        client.send(rq.create("/large", bytes(1_000_000)))
        await harness.settle()
        client.replies()

        client.transport.on_write = client.connection.pause_writing
        client.send(*[rq.get_data("/large")] * 7, rq.exists("/"))
        numbers: list[int] = []
        while len(numbers) < 8:
            replies = client.replies()
            assert len(replies) <= 2
            numbers += [xid for xid, _, _ in replies]
            client.connection.resume_writing()
            await turn()
        assert numbers == [1, 2, 3, 4, 5, 6, 7, 8]
        assert client.transport.is_reading_now

    run(scenario)


def test_large_requests_in_line_stop_the_reading_sooner() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        reading = []
        for _ in range(2):
            for _ in range(17):
                client.send(rq.set_data("/", bytes(1 << 19)))
            reading.append(client.transport.is_reading_now)
        await harness.settle()
        reading.append(client.transport.is_reading_now)
        assert reading == [True, False, True]

    run(scenario)


def test_somebody_who_never_says_who_it_is_is_disconnected() -> None:
    async def scenario() -> None:
        harness = Harness()
        silent, client = FakeClient(harness), await harness.client()
        await asyncio.sleep(11)
        assert not silent.transport.is_open
        assert client.transport.is_open

    run_virtually(scenario())


def test_a_closed_connection_that_does_not_read_is_aborted_and_counts_until_then() -> None:
    async def scenario() -> None:
        harness = Harness(max_connections_per_address=1)
        client = await harness.client()
        aborted = asyncio.Event()
        client.transport.abort = aborted.set  # type: ignore[method-assign]
        client.receive(framed(b"bad"))
        assert not FakeClient(harness).transport.is_open
        await aborted.wait()
        client.connection.connection_lost(None)
        assert FakeClient(harness).transport.is_open

    run_virtually(scenario())


def test_a_multi_read_cannot_ask_for_more_than_a_server_has() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        client.send(rq.create("/large", bytes(1_000_000)))
        await harness.settle()
        client.replies()
        client.send(rq.multi_read(*[rq.get_data("/large")] * 2_000, rq.get_children("/large")))
        await turn()
        ((_, error, body),) = client.replies()
        assert error == OK
        assert len(body) < 17 << 20
        # What does not fit is refused, and what is small enough behind it is not.
        assert body.count((-1).to_bytes(4, "big", signed=True) + b"\0") >= 1_980
        assert body.endswith(
            INT.pack(Op.GET_CHILDREN) + b"\0" + INT.pack(OK) + INT.pack(0) + MULTI_END
        )

    run(scenario)


def test_a_long_line_stops_the_reading_until_it_is_half_as_long() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        client.send(rq.create("/n"), *[rq.exists("/")] * 10_000)
        reading = [client.transport.is_reading_now]
        await harness.settle()
        reading.append(client.transport.is_reading_now)
        assert reading == [False, True]
        assert len(client.replies()) == 10_001

    run(scenario)


def test_a_connection_beyond_the_limit_for_its_address_is_refused() -> None:
    async def scenario() -> None:
        harness = Harness(max_connections_per_address=2)
        await harness.client()
        second = await harness.client()
        third = FakeClient(harness)
        assert not third.transport.is_open
        second.connection.connection_lost(None)
        assert FakeClient(harness).transport.is_open

    run(scenario)


@pytest.mark.parametrize("cut", range(1, 12))
def test_requests_may_come_in_pieces(cut: int) -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        data = encoded(1, rq.exists("/"))
        client.receive(data[:cut])
        assert client.replies() == []
        client.receive(data[cut:])
        assert [xid for xid, _, _ in client.replies()] == [1]

    run(scenario)


def test_frames_before_one_that_is_too_long_are_served() -> None:
    async def scenario() -> None:
        harness = Harness(max_frame_bytes=1000)
        client = await harness.client()
        client.receive(encoded(1, rq.exists("/")) + b"\x00\x00\x03\xe9")
        assert [xid for xid, _, _ in client.replies()] == [1]
        await turn()
        assert not client.transport.is_open

    run(scenario)


def test_a_lost_connection_is_freed_without_the_garbage_collector() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await with_node(harness, "/a", b"data")
        client.send(rq.get_data("/a", watch=True), rq.set_data("/a", b"new"))
        await harness.settle()
        client.connection.connection_lost(None)
        await turn()
        del client
        assert not [one for one in gc.get_objects() if isinstance(one, PARTS)]

    gc.collect()
    gc.disable()
    try:
        run(scenario)
    finally:
        gc.enable()

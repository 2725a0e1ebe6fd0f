"""Requests that are frames, and lie inside; and requests that are honest, and cost too much.

Every one of them is answered, or its own connection is closed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fault.stage.process import FaultServer
from tests.fault.stage.siege import (
    SCALE,
    SLACK_MB,
    Crowd,
    besieged_server,
    encoded,
    send_some,
    siege,
)
from tests.support import requests as rq
from tests.support import wire
from tests.support.records import INT, LONG, MULTI_HEADER, Acl, Code, Op, Perm, Request

#: Counts and lengths that no frame can hold.
COUNTS = (-(2**31), -5, -2, -1, 2**24, 2**31 - 1)
PATH = rq.string("/n")


def bodies_with(count: int) -> Iterator[Request]:
    """Requests of every kind in which one count or length is this one."""
    lie = INT.pack(count)
    for op in set(Op) - {Op.PING}:
        # Where a path or another string should be, and behind one.
        yield Request(op, lie)
        yield Request(op, lie + bytes(100))
        yield Request(op, PATH + lie)
        yield Request(op, PATH + lie + bytes(100))
    for op in (Op.CREATE, Op.CREATE2, Op.CREATE_CONTAINER, Op.CREATE_TTL):
        yield Request(op, PATH + rq.buffer(b"") + lie + bytes(100))
        yield Request(op, PATH + rq.buffer(b"") + INT.pack(1) + INT.pack(31) + lie + bytes(100))
    yield Request(Op.SET_ACL, PATH + lie + bytes(100))
    for op in (Op.SET_WATCHES, Op.SET_WATCHES2):
        for before in range(5):
            yield Request(op, LONG.pack(0) + INT.pack(0) * before + lie + bytes(100), xid=-8)
            yield Request(op, LONG.pack(0) + INT.pack(1) + PATH * before + lie, xid=-8)
    for op in (Op.MULTI, Op.MULTI_READ):
        yield Request(op, MULTI_HEADER.pack(count, False, -1) + bytes(100))
        yield Request(op, MULTI_HEADER.pack(Op.GET_DATA, False, count) + lie + bytes(100))
        yield Request(op, MULTI_HEADER.pack(Op.DELETE, False, -1) + lie)
    yield Request(Op.AUTH, INT.pack(0) + lie + bytes(100), xid=-4)
    yield Request(Op.AUTH, INT.pack(0) + rq.string("digest") + lie + bytes(100), xid=-4)


def endless() -> Iterator[Request]:
    """Transactions that do not end, or hold another."""
    step = MULTI_HEADER.pack(Op.CHECK, False, -1) + rq.delete("/n").body
    read = MULTI_HEADER.pack(Op.GET_DATA, False, -1) + rq.get_data("/n").body
    for op in (Op.MULTI, Op.MULTI_READ):
        yield Request(op, b"")
        yield Request(op, MULTI_HEADER.pack(-1, False, -1) * 1_000)
        yield Request(op, (step if op == Op.MULTI else read) * 10_000)
        nested = rq.multi(rq.delete("/n"))
        for _ in range(500):
            nested = rq.multi(nested, op=op)
        yield nested


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FaultServer]:
    with besieged_server(tmp_path) as server:
        yield server


@pytest.mark.parametrize("count", COUNTS)
def test_counts_and_lengths_that_lie(server: FaultServer, count: int) -> None:
    with siege(server, growth_mb_max=SLACK_MB):
        _ask_each(server, bodies_with(count))


def test_transactions_without_an_end(server: FaultServer) -> None:
    with siege(server, growth_mb_max=SLACK_MB + 20):
        _ask_each(server, endless())


def test_create_with_a_ttl_of_minus_one_can_neither_stop_the_server_nor_its_start(
    server: FaultServer,
) -> None:
    with siege(server, growth_mb_max=SLACK_MB), wire.connect(server.address) as client:
        for _ in range(10):
            reply = client.call(rq.create_ttl("/t", -1, flags=0))
            assert reply.err == Code.BAD_ARGUMENTS
        client.close()
    server.kill()
    server.start()
    with wire.connect(server.address) as client:
        assert client.call(rq.exists("/t")).err == Code.NO_NODE
        client.close()


def test_a_lone_check_is_answered(server: FaultServer) -> None:
    with siege(server, growth_mb_max=SLACK_MB), wire.connect(server.address) as client:
        checks = [rq.check("/", rq.ANY_VERSION)] * 100
        assert set(wire.errors(client.calls(*checks))) == {Code.OK}
        client.close()


# What follows is valid, and made to cost the server much for few bytes.


@pytest.mark.parametrize("scheme", ["digest", "ip"])
def test_an_acl_as_long_as_it_may_be_is_no_work_for_each_request(
    server: FaultServer, scheme: str
) -> None:
    names = {
        "digest": (f"user{number}:x" for number in range(5_000)),
        "ip": (f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}/32" for n in range(5_000)),
    }
    acl = [Acl(Perm.ALL, scheme, name) for name in names[scheme]]
    with siege(server, growth_mb_max=SLACK_MB + 60) as bystander:
        with wire.connect(server.address) as client:
            assert client.call(rq.create("/guarded", acl=acl)).err == Code.OK
            gets = [rq.get_data("/guarded")] * 2_000 * SCALE
            assert set(wire.errors(client.calls(*gets))) == {Code.NO_AUTH}
            sets = [rq.set_data("/guarded", b"")] * 500 * SCALE
            assert set(wire.errors(client.calls(*sets))) == {Code.NO_AUTH}
            client.close()
        bystander.wait_rounds(3)


def test_counts_of_a_large_tree_again_and_again(server: FaultServer) -> None:
    with wire.connect(server.address) as client:
        paths = (f"/{above}" for above in range(200))
        client.calls(*map(rq.create, paths))
        for above in range(200):
            client.calls(*(rq.create(f"/{above}/{below}") for below in range(100)))
        client.close()
    with siege(server, growth_mb_max=SLACK_MB) as bystander, Crowd(server.address) as crowd:
        for _ in range(5):
            send_some(
                crowd.join_session(), encoded([rq.get_all_children_number("/")] * 2_000 * SCALE)
            )
        bystander.wait_rounds(10)


def test_lists_of_many_ephemerals_again_and_again(server: FaultServer) -> None:
    with siege(server, growth_mb_max=SLACK_MB + 40) as bystander:
        with wire.connect(server.address) as client:
            creates = [rq.create(f"/e{number}", flags=1) for number in range(20_000)]
            assert set(wire.errors(client.calls(*creates))) == {Code.OK}
            # The prefix fits none, so the answers are short and the search is not.
            for _ in range(5 * SCALE):
                client.calls(*[rq.get_ephemerals("/none")] * 200)
            client.close()
        bystander.wait_rounds(3)


def test_transactions_as_large_as_a_frame(server: FaultServer) -> None:
    steps = [rq.create(f"/n{number}") for number in range(15_000)]
    undone = rq.multi(*steps, rq.delete("/none"))
    with siege(server, growth_mb_max=SLACK_MB + 100) as bystander:
        with wire.connect(server.address) as client:
            for _ in range(5 * SCALE):
                results = client.call(undone).results
                assert [one.err for one in results[-2:]] == [0, Code.NO_NODE]
                bystander.wait_rounds(1)
            client.close()


def _ask_each(server: FaultServer, requests: Iterator[Request]) -> None:
    """Send each, with a request behind it that shows whether the connection stands."""
    client = wire.connect(server.address)
    for request in requests:
        try:
            client.send(request, rq.exists("/"))
            client.reply()
            assert client.reply().err == Code.OK, request
        except (wire.ConnectionClosedError, ConnectionError):
            client.disconnect()
            client = wire.connect(server.address)
    client.close()

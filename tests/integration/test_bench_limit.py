"""The limit of the benchmark: it answers what zkload asks as a real server does, and is durable."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import programs, zkload
from bench.servers import Server as BenchServer
from bench.servers import running
from bench.zkload import Cell
from tests.support import requests as rq
from tests.support.records import STAT, Code, Op, Reply, Request
from tests.support.server import Server
from tests.support.wire import connect

REQUESTS: list[Request] = [
    rq.create("/limit", b"data"),
    rq.create("/limit", b"again"),
    rq.get_data("/limit"),
    rq.set_data("/limit", b"other data"),
    rq.get_data("/limit"),
    rq.exists("/limit"),
    rq.create("/limit/one", b""),
    rq.create("/limit/two", b"2"),
    rq.create("/limit/three", b"3"),
    rq.delete("/limit/two"),
    rq.get_children("/limit"),
    rq.exists("/limit"),
    rq.exists("/limit/two"),
    rq.set_data("/limit/two", b""),
    rq.delete("/limit/two"),
    rq.get_data("/limit/one"),
    rq.delete("/limit/three"),
    rq.delete("/limit/one"),
    rq.get_children("/limit"),
    rq.get_data("/limit"),
    rq.delete("/limit"),
    rq.get_data("/limit"),
]


@pytest.fixture
def limit(tmp_path: Path) -> Iterator[BenchServer]:
    if shutil.which("gcc") is None:
        missing = "gcc is missing (Debian: apt-get install gcc)"
        pytest.skip(missing)
    programs.build()
    server = programs.limit(tmp_path / "limit")
    with running(server):
        yield server


def seen(reply: Reply) -> tuple[object, ...]:
    """What a reply says, without the zxids and times of its server, and names in order."""
    if reply.op == Op.GET_CHILDREN:
        return reply.xid, reply.err, sorted(reply.names)
    body, stat = reply.body, ()
    if len(body) >= STAT.size:
        body, stat = body[: -STAT.size], STAT.unpack(body[-STAT.size :])[4:10]
    return reply.xid, reply.err, body, stat


def answers(address: tuple[str, int]) -> list[tuple[object, ...]]:
    with connect(address) as client:
        # All at once: no read may overtake the writes before it.
        return [seen(reply) for reply in client.calls(*REQUESTS)]


def test_it_answers_as_a_server_does(limit: BenchServer, shared_paddock: Server) -> None:
    theirs = answers(("127.0.0.1", limit.port))
    assert theirs == answers(shared_paddock.address)
    assert [one[1] for one in theirs].count(Code.NO_NODE) == 4


def test_what_it_has_answered_is_in_its_log(limit: BenchServer) -> None:
    with connect(("127.0.0.1", limit.port)) as client:
        client.call(rq.create("/kept", b"this is in the log"))
        assert b"this is in the log" in (limit.folder / "log").read_bytes()


@pytest.mark.parametrize("op", ["get", "exists", "kids", "mix", "set", "create", "eph"])
def test_it_takes_the_load_of_each_cell(limit: BenchServer, op: str) -> None:
    for cell in (Cell(op, 1, 1), Cell(op, 10, 100)):
        assert zkload.load(limit, cell, 0.1, 0).ops_per_s > 0

"""multiRead: several reads with a result for each."""

from __future__ import annotations

import pytest

from tests.conformance.differences import MULTI_READ_ERROR_HAS_BODY
from tests.support import requests as rq
from tests.support.records import Code, Op, Request, Result
from tests.support.server import Server
from tests.support.wire import Client


def test_reads_are_answered_together(client: Client, base: str) -> None:
    client.call(rq.create(f"{base}/n", b"data"))
    data, children = client.call(
        rq.multi_read(rq.get_data(f"{base}/n"), rq.get_children(base))
    ).results
    assert data == Result(Op.GET_DATA, data=b"data", stat=client.call(rq.exists(f"{base}/n")).stat)
    assert children == Result(Op.GET_CHILDREN, children=("n",))


def test_null_data_comes_back_null(client: Client, base: str) -> None:
    client.call(rq.set_data(base, None))
    (result,) = client.call(rq.multi_read(rq.get_data(base))).results
    assert result.data is None


def test_a_failing_read_does_not_spoil_the_others(client: Client, base: str) -> None:
    reply = client.call(
        rq.multi_read(
            rq.get_data(f"{base}/none"), rq.get_children(base), rq.get_children("bad path")
        )
    )
    assert reply.err == Code.OK
    assert reply.results == (
        Result(-1, Code.NO_NODE),
        Result(Op.GET_CHILDREN, children=()),
        Result(-1, Code.NO_NODE),
    )


def test_no_zxid_is_taken(client: Client, base: str) -> None:
    before = client.call(rq.exists("/")).zxid
    assert client.call(rq.multi_read(rq.get_data(base))).zxid == before
    assert client.call(rq.multi_read()).results == ()
    assert client.call(rq.exists("/")).zxid == before


def test_watches_are_never_set(client: Client, other: Client, base: str) -> None:
    client.call(rq.multi_read(rq.get_data(base, watch=True), rq.get_children(base, watch=True)))
    other.call(rq.set_data(base, b"x"))
    other.call(rq.create(f"{base}/n"))
    assert client.drain() == []
    assert client.call(rq.remove_watches(base, 3)).err == Code.NO_WATCHER


@pytest.mark.parametrize(
    "request_",
    [
        rq.multi_read(rq.exists("/")),
        rq.multi_read(rq.get_children2("/")),
        rq.multi_read(rq.get_acl("/")),
        rq.multi_read(Request(99)),
        rq.multi_read(rq.get_data("/"), rq.set_data("/", b"")),
        Request(Op.MULTI_READ, rq.multi_read(rq.get_data("/")).body[:-9]),
    ],
)
def test_what_is_no_read_is_a_marshalling_error(client: Client, request_: Request) -> None:
    before = client.call(rq.get_data("/"))
    reply = client.call(request_)
    assert (reply.err, reply.zxid, reply.body) == (Code.MARSHALLING_ERROR, before.zxid, b"")
    assert client.call(rq.get_data("/")).stat == before.stat


@pytest.mark.parametrize(
    "request_",
    [
        rq.multi_read(rq.set_data("/", b"")),
        rq.multi_read(rq.create("/x")),
        rq.multi_read(rq.check("/")),
        rq.multi_read(rq.get_data(None)),
        rq.multi_read(rq.get_data("/"), rq.get_data(None)),
    ],
)
def test_writes_and_null_paths_are_a_marshalling_error(
    server: Server, client: Client, request_: Request
) -> None:
    before = client.call(rq.get_data("/"))
    reply = client.call(request_)
    assert (reply.err, reply.zxid) == (Code.MARSHALLING_ERROR, before.zxid)
    assert bool(reply.body) == MULTI_READ_ERROR_HAS_BODY.on(server)
    assert client.call(rq.get_data("/")).stat == before.stat
    assert client.call(rq.exists("/x")).err == Code.NO_NODE

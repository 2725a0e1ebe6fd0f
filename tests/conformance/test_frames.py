"""Frames: their size limits, and the bytes that end a connection."""

from __future__ import annotations

import pytest

from tests.conformance.conftest import Connect
from tests.support import requests as rq
from tests.support.records import INT, Code, Op, Request
from tests.support.server import Server
from tests.support.wire import Client, Connection, connect_body

LIMIT = 0xFFFFF


def test_the_largest_frame_is_served(client: Client, base: str) -> None:
    empty = rq.set_data(base, b"")
    data = b"x" * (LIMIT - 8 - len(empty.body))
    request = rq.set_data(base, data)
    assert len(request.body) + 8 == LIMIT
    assert client.call(request).stat.data_length == len(data)
    assert client.call(rq.get_data(base)).data == data


@pytest.mark.parametrize("length", [LIMIT + 1, 1 << 24, (1 << 31) - 1, -1, -(1 << 31)])
def test_a_frame_out_of_bounds_closes_the_connection(connect: Connect, length: int) -> None:
    client = connect()
    client.send_bytes(INT.pack(length))
    assert client.wait_closed() == b""


@pytest.mark.parametrize("payload", [b"", b"\x00", b"\x00" * 4, b"\x00" * 7])
def test_a_frame_without_a_whole_header_closes_the_connection(
    connect: Connect, payload: bytes
) -> None:
    client = connect()
    client.send_frame(payload)
    assert client.wait_closed() == b""


def test_frames_may_come_in_any_pieces(client: Client, base: str) -> None:
    data = client.encode(rq.set_data(base, b"abc")) + client.encode(rq.get_data(base))
    for position in range(len(data)):
        client.send_bytes(data[position : position + 1])
    assert client.reply().err == Code.OK
    assert client.reply().data == b"abc"


def test_a_handshake_may_come_in_pieces(server: Server) -> None:
    body = connect_body()
    with Connection(server.address) as connection:
        for byte in INT.pack(len(body)) + body:
            connection.send_bytes(bytes([byte]))
        assert len(connection.read_frame()) == 37


def test_many_requests_in_one_write_are_answered_in_order(client: Client, base: str) -> None:
    many = [rq.set_data(base, b"%d" % i) if i % 3 else rq.get_data(base) for i in range(300)]
    replies = client.calls(*many)
    assert [reply.xid for reply in replies] == list(range(1, 301))
    assert {reply.err for reply in replies} == {Code.OK}
    zxids = [reply.zxid for reply in replies]
    assert zxids == sorted(zxids)


def test_any_xid_is_echoed(client: Client) -> None:
    for xid in (0, 7, 7, (1 << 31) - 1, -(1 << 31), -3, -100):
        reply = client.call(Request(Op.EXISTS, rq.exists("/").body, xid=xid))
        assert (reply.xid, reply.err) == (xid, Code.OK)


@pytest.mark.parametrize("length", [0, 1, 4, 16, 20, 24, 27, 28, 43])
def test_a_truncated_handshake_closes_the_connection(server: Server, length: int) -> None:
    body = connect_body(read_only=None)
    assert len(body) == 44
    with Connection(server.address) as connection:
        connection.send_frame(body[:length])
        assert connection.wait_closed() == b""


@pytest.mark.parametrize("length", [LIMIT + 1, -1])
def test_a_first_frame_out_of_bounds_closes_the_connection(server: Server, length: int) -> None:
    with Connection(server.address) as connection:
        connection.send_bytes(INT.pack(length))
        assert connection.wait_closed() == b""


def test_a_request_before_the_handshake_closes_the_connection(server: Server) -> None:
    with Connection(server.address) as connection:
        connection.send_frame(INT.pack(1) + INT.pack(Op.EXISTS) + rq.exists("/").body)
        assert connection.wait_closed() == b""

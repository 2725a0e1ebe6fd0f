"""The handshake: timeouts, old clients, re-attaching and being refused."""

from __future__ import annotations

import pytest

from tests.conformance.conftest import Connect
from tests.conformance.differences import (
    AHEAD_AND_UNKNOWN_IS_EXPIRED,
    WRONG_PASSWORD_DISTURBS_OWNER,
)
from tests.support import requests as rq
from tests.support.records import Code, ConnectReply
from tests.support.server import Server
from tests.support.wire import (
    Client,
    Connection,
    ConnectionClosedError,
    connect_body,
    decode_connect,
)

EXPIRED = ConnectReply(0, 0, 0, bytes(16), False, 37)
EXPIRED_FOR_OLD_CLIENTS = ConnectReply(0, 0, 0, bytes(16), None, 36)

FUTURE = 1 << 61


@pytest.mark.parametrize(
    ("asked", "granted"),
    [
        (0, 400),
        (-1, 400),
        (-(1 << 31), 400),
        (399, 400),
        (400, 400),
        (401, 401),
        (12_345, 12_345),
        (60_000, 60_000),
        (60_001, 60_000),
        ((1 << 31) - 1, 60_000),
    ],
)
def test_the_timeout_is_kept_within_the_servers_bounds(
    connect: Connect, asked: int, granted: int
) -> None:
    assert connect(timeout_ms=asked).handshake.timeout_ms == granted


def test_a_new_session_gets_an_id_and_a_password(connect: Connect) -> None:
    first, second = connect(), connect()
    for client in (first, second):
        reply = client.handshake
        assert (reply.protocol, reply.length, reply.read_only) == (0, 37, False)
        assert reply.session_id > 0
        assert len(reply.password) == 16
    assert first.session_id != second.session_id
    assert first.password != second.password


def test_old_clients_get_no_read_only_byte(connect: Connect) -> None:
    client = connect(read_only=None)
    assert (client.handshake.length, client.handshake.read_only) == (36, None)
    assert client.call(rq.exists("/")).err == Code.OK


def test_clients_that_accept_read_only_get_a_full_session(connect: Connect, base: str) -> None:
    client = connect(read_only=True)
    assert client.handshake.read_only is False
    assert client.call(rq.set_data(base, b"x")).err == Code.OK


@pytest.mark.parametrize("password", [None, b"", b"short", b"x" * 100])
def test_the_password_of_a_new_session_does_not_matter(
    connect: Connect, password: bytes | None
) -> None:
    client = connect(password=password)
    assert client.session_id != 0
    assert len(client.password) == 16


def test_what_our_client_asks_with_is_no_password(server: Server) -> None:
    asked = b"Paddock/exact/01"
    with Connection(server.address) as connection:
        connection.send_frame(connect_body(password=asked))
        payload = connection.read_frame()
        reply = decode_connect(payload[:37])
        assert reply.session_id > 0
        assert len(reply.password) == 16
        assert reply.password not in (asked, bytes(16))
        # Upstream knows of no terms; ours begin with flags.
        assert payload[37:41] in (b"", b"\0\0\0\3")


@pytest.mark.parametrize(("read_only", "length"), [(False, 37), (None, 36)])
def test_others_are_answered_as_always_also_of_a_session_that_was_asked_for_so(
    server: Server, connect: Connect, base: str, read_only: bool | None, length: int
) -> None:
    with Connection(server.address) as owner:
        owner.send_frame(connect_body(password=b"Paddock/exact/01"))
        opened = decode_connect(owner.read_frame()[:37])
        for session_id, password in ((0, bytes(16)), (opened.session_id, opened.password)):
            other = connect(session_id=session_id, password=password, read_only=read_only)
            expected = ConnectReply(0, 30_000, other.session_id, other.password, read_only, length)
            assert other.handshake == expected
            assert session_id in (0, other.session_id)
            assert other.call(rq.set_data(base, b"x")).err == Code.OK


@pytest.mark.parametrize("protocol", [0, 1, -1, 1 << 30])
def test_the_protocol_version_does_not_matter(server: Server, protocol: int) -> None:
    client = Client(server.address, connect_body(protocol=protocol))
    assert client.handshake.protocol == 0
    client.close()


def test_bytes_after_the_handshake_are_ignored(server: Server) -> None:
    client = Client(server.address, connect_body() + b"more")
    assert client.handshake.length == 37
    client.close()


def test_requests_may_follow_the_handshake_in_one_write(server: Server) -> None:
    with Connection(server.address) as connection:
        body = connect_body()
        request = (1).to_bytes(4, "big") + (3).to_bytes(4, "big") + rq.exists("/").body
        frames = [len(part).to_bytes(4, "big") + part for part in (body, request)]
        connection.send_bytes(b"".join(frames))
        assert decode_connect(connection.read_frame()).session_id != 0
        assert connection.read_frame()[:4] == (1).to_bytes(4, "big")


def test_reattaching_keeps_the_session_and_closes_the_old_connection(
    connect: Connect, base: str
) -> None:
    first = connect()
    first.call(rq.create(f"{base}/e", flags=1))
    second = connect(session_id=first.session_id, password=first.password)
    assert second.session_id == first.session_id
    assert second.password == first.password
    assert first.wait_closed() == b""
    assert second.call(rq.get_ephemerals(base)).names == {f"{base}/e"}


def test_reattaching_negotiates_the_timeout_anew(connect: Connect) -> None:
    first = connect(timeout_ms=10_000)
    second = connect(session_id=first.session_id, password=first.password, timeout_ms=20_000)
    assert second.handshake.timeout_ms == 20_000


def test_an_old_client_reattaches_too(connect: Connect) -> None:
    first = connect()
    second = connect(session_id=first.session_id, password=first.password, read_only=None)
    assert second.session_id == first.session_id
    assert second.handshake.length == 36


@pytest.mark.parametrize("session_id", [1, -1, 0x123456789ABCDEF, -(1 << 63)])
def test_an_unknown_session_is_expired(connect: Connect, session_id: int) -> None:
    client = connect(session_id=session_id, password=b"p" * 16)
    assert client.handshake == EXPIRED
    assert client.wait_closed() == b""


def test_an_unknown_session_of_an_old_client_is_expired(connect: Connect) -> None:
    client = connect(session_id=99, read_only=None)
    assert client.handshake == EXPIRED_FOR_OLD_CLIENTS
    assert client.wait_closed() == b""


def test_a_closed_session_is_expired(connect: Connect) -> None:
    first = connect()
    first.close()
    second = connect(session_id=first.session_id, password=first.password)
    assert second.handshake == EXPIRED
    assert second.wait_closed() == b""


@pytest.mark.parametrize("password", [bytes(16), b"", b"x" * 15, b"x" * 17, None])
def test_a_wrong_password_is_told_expired(
    server: Server, connect: Connect, base: str, password: bytes | None
) -> None:
    owner = connect()
    owner.call(rq.create(f"{base}/e", flags=1))
    thief = connect(session_id=owner.session_id, password=password)
    assert thief.handshake == EXPIRED
    assert thief.wait_closed() == b""
    if WRONG_PASSWORD_DISTURBS_OWNER.on(server):
        assert owner.wait_closed() == b""
        owner = connect(session_id=owner.session_id, password=owner.password)
    assert owner.call(rq.get_ephemerals(base)).names == {f"{base}/e"}


def test_a_new_client_from_the_future_is_turned_away(server: Server) -> None:
    with Connection(server.address) as connection:
        connection.send_frame(connect_body(last_zxid=FUTURE))
        assert connection.wait_closed() == b""


def test_a_known_session_from_the_future_is_turned_away_and_lives(
    server: Server, connect: Connect, base: str
) -> None:
    owner = connect()
    owner.call(rq.create(f"{base}/e", flags=1))
    with pytest.raises(ConnectionClosedError):
        connect(session_id=owner.session_id, password=owner.password, last_zxid=FUTURE)
    assert owner.call(rq.get_ephemerals(base)).names == {f"{base}/e"}


def test_an_unknown_session_from_the_future(server: Server) -> None:
    with Connection(server.address) as connection:
        connection.send_frame(connect_body(session_id=99, last_zxid=FUTURE))
        if AHEAD_AND_UNKNOWN_IS_EXPIRED.on(server):
            assert decode_connect(connection.read_frame()) == EXPIRED
        assert connection.wait_closed() == b""


def test_the_newest_zxid_is_not_the_future(connect: Connect, base: str) -> None:
    first = connect()
    newest = first.call(rq.set_data(base, b"x")).zxid
    second = connect(session_id=first.session_id, password=first.password, last_zxid=newest)
    assert second.session_id == first.session_id
    assert connect(last_zxid=-5).session_id != 0

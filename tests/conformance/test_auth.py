"""auth, sasl and whoAmI: what is answered and when the connection ends."""

from __future__ import annotations

import pytest

from tests.conformance.conftest import Connect
from tests.support import requests as rq
from tests.support.records import INT, Code, Op, Request
from tests.support.server import Server
from tests.support.wire import Client, reattach


@pytest.mark.parametrize("scheme", ["nobody", "world", "super", "auth", "sasl", "", None])
def test_an_unknown_scheme_fails_and_closes(
    server: Server, connect: Connect, base: str, scheme: str | None
) -> None:
    client = connect()
    client.call(rq.create(f"{base}/e", flags=1))
    reply = client.call(rq.auth(scheme, b"x:y"))
    assert (reply.xid, reply.zxid, reply.err) == (-4, 0, Code.AUTH_FAILED)
    assert client.wait_closed() == b""
    again = reattach(server.address, client)
    assert again.session_id == client.session_id
    assert again.call(rq.exists(f"{base}/e")).err == Code.OK
    again.close()


def test_null_credentials_fail_and_close(connect: Connect) -> None:
    client = connect()
    assert client.call(rq.auth("digest", None)).err == Code.AUTH_FAILED
    assert client.wait_closed() == b""


def test_the_ip_scheme_succeeds_and_adds_nothing(connect: Connect) -> None:
    client = connect()
    assert client.call(rq.auth("ip", b"10.0.0.1")).err == Code.OK
    assert client.call(rq.who_am_i()).pairs == {("ip", "127.0.0.1")}


def test_an_auth_reply_echoes_the_xid_and_has_zxid_zero(connect: Connect, base: str) -> None:
    client = connect()
    reply = client.call(Request(Op.AUTH, rq.auth("digest", b"a:b").body, xid=77))
    assert (reply.xid, reply.zxid, reply.err, reply.body) == (77, 0, Code.OK, b"")


def test_the_type_in_an_auth_packet_does_not_matter(connect: Connect) -> None:
    client = connect()
    body = INT.pack(100) + rq.auth("digest", b"a:b").body[4:]
    assert client.call(Request(Op.AUTH, body, xid=-4)).err == Code.OK


@pytest.mark.parametrize("length", [0, 3, 4, 7, 10, 14, 15, 16])
def test_a_truncated_auth_packet_closes_the_connection(connect: Connect, length: int) -> None:
    client = connect()
    body = rq.auth("digest", b"a:b").body
    assert length < len(body)
    client.send(Request(Op.AUTH, body[:length], xid=-4))
    assert client.wait_closed() == b""


def test_sasl_is_answered_with_no_token(connect: Connect) -> None:
    client = connect()
    client.call(rq.set_data("/", b""))
    for token in (b"", b"token"):
        reply = client.call(rq.sasl(token))
        assert (reply.err, reply.zxid, reply.token) == (Code.OK, 0, None)
    assert client.call(rq.exists("/")).err == Code.OK


@pytest.mark.parametrize("body", [b"", b"\x00\x00", b"\x00\x00\x00\x05abc", b"\xff\xff\xff\xfe"])
def test_a_sasl_request_that_cannot_be_decoded_closes(connect: Connect, body: bytes) -> None:
    client = connect()
    client.send(Request(Op.SASL, body))
    assert client.wait_closed() == b""


def test_a_null_sasl_token_closes(connect: Connect) -> None:
    client = connect()
    client.send(rq.sasl(None))
    assert client.wait_closed() == b""


def test_who_am_i_of_a_stranger_is_the_address(client: Client) -> None:
    reply = client.call(rq.who_am_i())
    assert reply.pairs == {("ip", "127.0.0.1")}
    assert reply.zxid == client.call(rq.exists("/")).zxid


def test_who_am_i_shows_users_without_their_digests(connect: Connect) -> None:
    client = connect()
    client.call(rq.auth("digest", b"ann:secret"))
    client.call(rq.auth("digest", b"ann:other"))
    client.call(rq.auth("digest", b"nocolon"))
    body = client.call(rq.who_am_i()).body
    assert client.call(rq.who_am_i()).pairs == {
        ("ip", "127.0.0.1"),
        ("digest", "ann"),
        ("digest", "nocolon"),
    }
    # Two digests of one user are two entries.
    assert INT.unpack_from(body) == (4,)

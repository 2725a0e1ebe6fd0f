"""SASL on the wire: DIGEST-MD5, its replies, its failures, and identities in ACLs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.conftest import ONE_SERVER_EACH
from tests.conformance.differences import UNKNOWN_SASL_USER_IS_REFUSED
from tests.support import requests as rq
from tests.support import wire
from tests.support.records import Acl, Code, Op
from tests.support.sasl import ALICE, BOB, SASL_SERVERS, answer, authenticate, directives, rspauth
from tests.support.server import Options, Server, ServerMissingError
from tests.support.wire import Client

NO_TOKEN = b"\xff\xff\xff\xff"
HIS = (Acl(31, "sasl", "bob"),)


@contextlib.contextmanager
def started(kind: str, **extra: str) -> Iterator[Server]:
    keys = tuple((key.replace("__", "."), value) for key, value in extra.items())
    try:
        with SASL_SERVERS[kind](Options(extra=keys)) as server:
            yield server
    except ServerMissingError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module", params=ONE_SERVER_EACH)
def known(request: pytest.FixtureRequest) -> Iterator[Server]:
    with started(request.param) as server:
        yield server


@pytest.fixture(scope="module", params=ONE_SERVER_EACH)
def strict(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server that serves nobody without SASL, and has superusers."""
    required = {"sessionRequireClientSASLAuth": "true", "allowSaslFailedClients": "true"}
    with started(request.param, superUser__1="bob", **required) as server:
        yield server


def challenged(client: Client) -> bytes:
    reply = client.call(rq.sasl(b""))
    assert (reply.err, reply.zxid) == (Code.OK, 0)
    assert reply.token is not None
    return reply.token


def assert_failed(client: Client, code: Code = Code.AUTH_FAILED) -> None:
    reply = client.reply()
    assert (reply.err, reply.zxid, reply.body) == (code, 0, NO_TOKEN)
    assert client.wait_closed() == b""


def test_a_user_is_who_the_password_proves(known: Server) -> None:
    for user, password in (ALICE, BOB):
        with wire.connect(known.address) as client:
            challenge = challenged(client)
            said = directives(challenge)
            nonce = said.pop("nonce")
            assert len(nonce) >= 32
            assert said == {"realm": "zk-sasl-md5", "charset": "utf-8", "algorithm": "md5-sess"}
            token = answer(challenge, user, password)
            reply = client.call(rq.sasl(token))
            assert (reply.err, reply.zxid) == (Code.OK, 0)
            assert reply.token == rspauth(challenge, token, user, password)
            assert client.call(rq.who_am_i()).pairs == {("ip", "127.0.0.1"), ("sasl", user)}


@pytest.mark.parametrize(
    "how",
    [
        {"authzid": "alice"},
        {"without": ("qop", "nc", "maxbuf")},
        {"without": ("charset",)},
        {"uri": "ZooKeeper/ZK-SASL-MD5"},
        {"behind": ',unknown="directive",,'},
    ],
    ids=str,
)
def test_what_may_be_said_in_an_answer_makes_nobody_else(
    known: Server, how: dict[str, Any]
) -> None:
    with wire.connect(known.address) as client:
        token = answer(challenged(client), **how)
        assert client.call(rq.sasl(token)).err == Code.OK
        assert ("sasl", "bob") in client.call(rq.who_am_i()).pairs


@pytest.mark.parametrize(
    "how",
    [
        {"password": "a guess"},
        {"response": "0" * 32},
        {"realm": "other"},
        {"without": ("realm",)},
        {"uri": "http/zk-sasl-md5"},
        {"uri": "zookeeper/other"},
        {"nonce": "x"},
        {"nc": "00000002"},
        {"qop": "auth-int"},
        {"behind": ',username="alice"'},
        {"behind": ",a=" + "b" * 5000},
        *[{"without": (name,)} for name in ("username", "nonce", "cnonce", "digest-uri")],
        {"without": ("response",)},
    ],
    ids=lambda how: str(how)[:40],
)
def test_a_wrong_answer_closes_without_a_reason(known: Server, how: dict[str, Any]) -> None:
    with wire.connect(known.address) as client:
        client.send(rq.sasl(answer(challenged(client), **how)))
        assert_failed(client)


@pytest.mark.parametrize("token", [b"", b"\x00\xff", b"x" * 70_000, b'a="'])
def test_a_token_that_is_no_answer_closes(known: Server, token: bytes) -> None:
    with wire.connect(known.address) as client:
        challenged(client)
        client.send(rq.sasl(token))
        assert_failed(client)


def test_an_unknown_user_is_nobody(known: Server) -> None:
    with wire.connect(known.address) as client:
        authenticate(client, *BOB)
    with wire.connect(known.address) as client:
        client.send(rq.sasl(answer(challenged(client), "carol", BOB[1])))
        assert client.reply().err == UNKNOWN_SASL_USER_IS_REFUSED.on(known)


def test_there_is_one_conversation(known: Server) -> None:
    with wire.connect(known.address) as client:
        authenticate(client)
        client.send(rq.sasl(b""))
        assert_failed(client)


def test_the_answer_of_one_conversation_serves_in_no_other(known: Server) -> None:
    with wire.connect(known.address) as first, wire.connect(known.address) as second:
        token = answer(challenged(first))
        challenged(second)
        second.send(rq.sasl(token))
        assert_failed(second)
        assert first.call(rq.sasl(token)).err == Code.OK


def test_a_session_outlives_a_failure_and_its_identities_do_not_outlive_a_connection(
    known: Server,
) -> None:
    with wire.connect(known.address) as client:
        authenticate(client)
        client.send(rq.sasl(b""))
        assert_failed(client)
        with wire.connect(
            known.address, session_id=client.session_id, password=client.password
        ) as again:
            assert again.session_id == client.session_id
            assert again.call(rq.who_am_i()).pairs == {("ip", "127.0.0.1")}


def test_an_auth_packet_of_this_scheme_fails(known: Server) -> None:
    with wire.connect(known.address) as client:
        assert client.call(rq.auth("sasl", b"bob:bobs-secret")).err == Code.AUTH_FAILED


def test_an_acl_names_a_user_and_auth_stands_for_one(known: Server) -> None:
    with wire.connect(known.address) as bob, wire.connect(known.address) as alice:
        authenticate(bob)
        authenticate(alice, *ALICE)
        for path, acl in (("/named", HIS), ("/own", (Acl(31, "auth", ""),))):
            assert bob.call(rq.create(path, acl=acl)).err == Code.OK
            assert bob.call(rq.get_acl(path)).acl == HIS
            assert alice.call(rq.get_data(path)).err == Code.NO_AUTH
            assert alice.call(rq.set_data(path, b"x")).err == Code.NO_AUTH
            assert bob.call(rq.set_data(path, b"x")).err == Code.OK
            assert bob.call(rq.delete(path)).err == Code.OK


def test_the_user_super_has_what_any_user_of_sasl_has(known: Server) -> None:
    with wire.connect(known.address) as bob, wire.connect(known.address) as boss:
        authenticate(bob)
        authenticate(boss, "super", "of-all")
        acl = (Acl(1, "sasl", "bob"), Acl(2, "digest", "x:y"))
        assert bob.call(rq.create("/read", acl=acl)).err == Code.OK
        assert boss.call(rq.get_data("/read")).err == Code.OK
        assert boss.call(rq.set_data("/read", b"x")).err == Code.NO_AUTH
        assert boss.call(rq.delete("/read")).err == Code.OK


@pytest.mark.parametrize(
    ("identifier", "code"),
    [
        *((name, Code.OK) for name in ("", "a@b", "a/b@c", "a/b", "a/b/c", "@", "x y")),
        *((name, Code.INVALID_ACL) for name in ("a@b@c", "a/b/c@d", "a@b/c")),
    ],
)
def test_which_names_are_valid_in_an_acl(known: Server, identifier: str, code: Code) -> None:
    with wire.connect(known.address) as client:
        path = f"/valid-{os.urandom(4).hex()}"
        assert client.call(rq.create(path, acl=(Acl(31, "sasl", identifier),))).err == code


def test_nobody_is_served_without_sasl_where_it_is_required(strict: Server) -> None:
    for request in (rq.exists("/"), rq.create("/n"), rq.ping()):
        with wire.connect(strict.address) as stranger:
            assert stranger.call(rq.auth("digest", b"bob:x")).err == Code.OK
            stranger.send(request)
            assert stranger.reply().err == Code.SESSION_CLOSED_REQUIRE_SASL
            assert stranger.wait_closed() == b""
    with wire.connect(strict.address) as client:
        authenticate(client, *ALICE)
        assert client.call(rq.create("/n")).err == Code.OK


def test_who_fails_where_it_is_required_is_told_so(strict: Server) -> None:
    with wire.connect(strict.address) as client:
        client.send(rq.sasl(answer(challenged(client), password="a guess")))
        assert_failed(client, Code.SESSION_CLOSED_REQUIRE_SASL)


def test_a_superuser_by_sasl_may_do_everything(strict: Server) -> None:
    with wire.connect(strict.address) as alice, wire.connect(strict.address) as bob:
        authenticate(alice, *ALICE)
        authenticate(bob)
        assert ("super", "") in bob.call(rq.who_am_i()).pairs
        acl = (Acl(1, "digest", "nobody:x"),)
        assert alice.call(rq.create("/closed", acl=acl)).err == Code.OK
        assert alice.call(rq.get_data("/closed")).err == Code.NO_AUTH
        assert bob.call(rq.get_data("/closed")).err == Code.OK
        assert bob.call(rq.delete("/closed")).err == Code.OK


@pytest.mark.parametrize("kind", ONE_SERVER_EACH)
def test_who_fails_may_stay_if_the_settings_say_so(kind: str) -> None:
    with started(kind, allowSaslFailedClients="true") as own, wire.connect(own.address) as client:
        for token in (answer(challenged(client), password="a guess"), b"", b"x"):
            reply = client.call(rq.sasl(token))
            assert (reply.err, reply.op, reply.token) == (Code.OK, Op.SASL, None)
        assert client.call(rq.who_am_i()).pairs == {("ip", "127.0.0.1")}

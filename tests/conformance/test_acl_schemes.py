"""Identities: world, auth, digest, ip and super, and which ACLs are valid."""

from __future__ import annotations

import pytest

from tests.conformance.conftest import Connect
from tests.conformance.differences import (
    AUTH_WAITS_ITS_TURN,
    IPV6_IN_ACLS,
    MULTI_BAD_FLAGS_FAIL_ALONE,
)
from tests.support import requests as rq
from tests.support.records import CREATOR_ALL, OPEN, Acl, Code, Perm
from tests.support.server import SUPER_CREDENTIALS, Server, digest
from tests.support.wire import Client

ANN, BOB = b"ann:secret", b"bob:hidden"


def login(client: Client, credentials: bytes) -> None:
    reply = client.call(rq.auth("digest", credentials))
    assert (reply.xid, reply.zxid, reply.err, reply.body) == (-4, 0, Code.OK, b"")


@pytest.mark.parametrize(
    "acl",
    [
        None,
        (),
        (Acl(31, "world", "somebody"),),
        (Acl(31, "world", ""),),
        (Acl(31, "nobody", "x"),),
        (Acl(31, "", ""),),
        (Acl(31, None, "x"),),
        (Acl(31, "auth", ""),),
        (Acl(31, "auth", "ann"),),
        (Acl(31, "auth", None),),
        (Acl(31, "super", ""),),
        (Acl(31, "sasl", "ann"),),
        (Acl(31, "x509", "CN=ann"),),
        (Acl(31, "digest", "ann"),),
        (Acl(31, "digest", "ann:"),),
        (Acl(31, "digest", ""),),
        (Acl(31, "digest", "a:b:c"),),
        (Acl(31, "ip", ""),),
        (Acl(31, "ip", "localhost"),),
        (Acl(31, "ip", "127.0.0"),),
        (Acl(31, "ip", "127.0.0.256"),),
        (Acl(31, "ip", "127.0.0.-1"),),
        (Acl(31, "ip", "127.0.0.1/33"),),
        (Acl(31, "ip", "127.0.0.1/-1"),),
        (Acl(31, "ip", "127.0.0.1/"),),
        (Acl(31, "ip", "127.0.0.1/8/8"),),
        (Acl(31, "ip", "127.0.0.1/x"),),
        (Acl(31, "world", "anyone"), Acl(31, "nobody", "x")),
    ],
    ids=str,
)
def test_invalid_acls_are_refused(
    server: Server, client: Client, base: str, acl: tuple[Acl, ...] | None
) -> None:
    assert client.call(rq.create(f"{base}/n", acl=acl)).err == Code.INVALID_ACL
    assert client.call(rq.set_acl(base, acl)).err == Code.INVALID_ACL
    reply = client.call(rq.multi(rq.create(f"{base}/n", acl=acl)))
    if acl is None and not MULTI_BAD_FLAGS_FAIL_ALONE.on(server):
        assert reply.err == Code.MARSHALLING_ERROR
    else:
        assert [result.err for result in reply.results] == [Code.INVALID_ACL]


@pytest.mark.parametrize(
    "acl",
    [
        (Acl(31, "digest", ":x"),),
        (Acl(31, "digest", "ann:not base 64"),),
        (Acl(31, "ip", "10.0.0.1"), Acl(31, "world", "anyone")),
        (Acl(31, "ip", "10.0.0.1/0"),),
        (Acl(31, "ip", "010.0.0.001/32"),),
        (Acl(31, "ip", "+10.0.0.1/+8"),),
        (Acl(31, "world", "anyone"), Acl(1, "world", "anyone")),
    ],
    ids=str,
)
def test_valid_acls_come_back_as_written(connect: Connect, base: str, acl: tuple[Acl, ...]) -> None:
    root = connect()
    login(root, SUPER_CREDENTIALS)
    assert root.call(rq.create(f"{base}/n", acl=acl)).err == Code.OK
    reply = root.call(rq.get_acl(f"{base}/n"))
    assert reply.acl == acl
    assert reply.stat == root.call(rq.exists(f"{base}/n")).stat


def test_the_same_entry_twice_is_kept_once(client: Client, base: str) -> None:
    entry = Acl(31, "world", "anyone")
    client.call(rq.set_acl(base, (entry, Acl(1, "ip", "1.1.1.1"), entry)))
    assert client.call(rq.get_acl(base)).acl == (entry, Acl(1, "ip", "1.1.1.1"))


def test_auth_stands_for_every_digest_identity(connect: Connect, base: str) -> None:
    client = connect()
    login(client, ANN)
    login(client, BOB)
    assert client.call(rq.create(f"{base}/n", acl=(Acl(17, "auth", "ignored"),))).err == 0
    assert set(client.call(rq.get_acl(f"{base}/n")).acl) == {
        Acl(17, "digest", digest(ANN)),
        Acl(17, "digest", digest(BOB)),
    }


def test_auth_does_not_stand_for_the_address_or_super(connect: Connect, base: str) -> None:
    client = connect()
    login(client, SUPER_CREDENTIALS)
    client.call(rq.create(f"{base}/n", acl=CREATOR_ALL))
    acl = client.call(rq.get_acl(f"{base}/n")).acl
    assert acl == (Acl(31, "digest", digest(SUPER_CREDENTIALS)),)


def test_digest_opens_to_who_knows_the_password(connect: Connect, base: str) -> None:
    ann, bob, wrong = connect(), connect(), connect()
    login(ann, ANN)
    login(bob, BOB)
    login(wrong, b"ann:guess")
    acl = (Acl(Perm.READ | Perm.ADMIN, "digest", digest(ANN)), Acl(2, "digest", digest(BOB)))
    ann.call(rq.create(f"{base}/n", acl=acl))
    assert ann.call(rq.get_data(f"{base}/n")).err == Code.OK
    assert ann.call(rq.set_data(f"{base}/n", b"")).err == Code.NO_AUTH
    assert bob.call(rq.get_data(f"{base}/n")).err == Code.NO_AUTH
    assert bob.call(rq.set_data(f"{base}/n", b"")).err == Code.OK
    assert wrong.call(rq.get_data(f"{base}/n")).err == Code.NO_AUTH


def test_a_second_identity_is_added_to_the_first(connect: Connect, base: str) -> None:
    client = connect()
    client.call(rq.create(f"{base}/a", acl=(Acl(1, "digest", digest(ANN)),)))
    client.call(rq.create(f"{base}/b", acl=(Acl(1, "digest", digest(BOB)),)))
    login(client, ANN)
    login(client, BOB)
    login(client, ANN)
    for name in ("a", "b"):
        assert client.call(rq.get_data(f"{base}/{name}")).err == Code.OK
    assert client.call(rq.who_am_i()).pairs == {
        ("ip", "127.0.0.1"),
        ("digest", "ann"),
        ("digest", "bob"),
    }


@pytest.mark.parametrize("credentials", [b"ann", b"ann:", b":", b"", b"a:b:c", b"\xff\xfe:x"])
def test_any_digest_credentials_succeed(connect: Connect, credentials: bytes) -> None:
    client = connect()
    assert client.call(rq.auth("digest", credentials)).err == Code.OK
    assert client.call(rq.exists("/")).err == Code.OK


def test_a_password_may_contain_colons(connect: Connect, base: str) -> None:
    client = connect()
    login(client, b"ann:a:b")
    client.call(rq.create(f"{base}/n", acl=(Acl(31, "digest", digest(b"ann:a:b")),)))
    assert client.call(rq.get_data(f"{base}/n")).err == Code.OK


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("127.0.0.1", True),
        ("127.0.0.1/32", True),
        ("127.0.0.2", False),
        ("127.0.0.0/8", True),
        ("127.255.255.255/8", True),
        ("126.0.0.0/7", True),
        ("128.0.0.0/1", False),
        ("10.0.0.0/0", True),
        ("127.0.0.2/31", False),
        ("127.0.0.0/31", True),
    ],
)
def test_ip_compares_the_first_bits(client: Client, base: str, address: str, allowed: bool) -> None:
    client.call(rq.create(f"{base}/n", acl=(Acl(Perm.READ, "ip", address),)))
    reply = client.call(rq.get_data(f"{base}/n"))
    assert reply.err == (Code.OK if allowed else Code.NO_AUTH)


def test_an_ipv6_address_in_an_acl(server: Server, client: Client, base: str) -> None:
    acl = (Acl(31, "ip", "::1"), Acl(31, "world", "anyone"))
    assert client.call(rq.set_acl(base, acl)).err == IPV6_IN_ACLS.on(server)


def test_get_acl_hides_digests_from_readers(connect: Connect, base: str) -> None:
    admin, reader = connect(), connect()
    login(admin, ANN)
    acl = (
        Acl(31, "digest", digest(ANN)),
        Acl(1, "digest", ":odd"),
        Acl(1, "ip", "10.0.0.0/8"),
        Acl(1, "world", "anyone"),
    )
    admin.call(rq.create(f"{base}/n", acl=acl))
    assert admin.call(rq.get_acl(f"{base}/n")).acl == acl
    assert reader.call(rq.get_acl(f"{base}/n")).acl == (
        Acl(31, "digest", "ann:x"),
        Acl(1, "digest", ":x"),
        *acl[2:],
    )


def test_super_sees_digests_and_breaks_in(connect: Connect, base: str) -> None:
    ann, root = connect(), connect()
    login(ann, ANN)
    login(root, SUPER_CREDENTIALS)
    ann.call(rq.create(f"{base}/n", acl=CREATOR_ALL))
    assert root.call(rq.get_acl(f"{base}/n")).acl == (Acl(31, "digest", digest(ANN)),)
    assert root.call(rq.set_acl(f"{base}/n", OPEN)).err == Code.OK
    assert root.call(rq.who_am_i()).pairs == {
        ("ip", "127.0.0.1"),
        ("super", ""),
        ("digest", "super"),
    }


def test_a_digest_acl_of_the_super_user_is_no_back_door(connect: Connect, base: str) -> None:
    client = connect()
    login(client, b"super:guess")
    client.call(rq.create(f"{base}/n", acl=(Acl(31, "digest", digest(SUPER_CREDENTIALS)),)))
    assert client.call(rq.get_data(f"{base}/n")).err == Code.NO_AUTH


def test_identities_belong_to_the_connection_not_the_session(connect: Connect, base: str) -> None:
    first = connect()
    login(first, ANN)
    first.call(rq.create(f"{base}/n", acl=CREATOR_ALL))
    first.disconnect()
    second = connect(session_id=first.session_id, password=first.password)
    assert second.session_id == first.session_id
    assert second.call(rq.get_data(f"{base}/n")).err == Code.NO_AUTH
    login(second, ANN)
    assert second.call(rq.get_data(f"{base}/n")).err == Code.OK


def test_a_request_after_the_auth_in_one_write_has_its_identity(
    connect: Connect, base: str
) -> None:
    client = connect()
    client.call(rq.create(f"{base}/n", acl=(Acl(1, "digest", digest(ANN)),)))
    replies = client.calls(rq.auth("digest", ANN), rq.get_data(f"{base}/n"))
    assert [reply.err for reply in replies] == [Code.OK, Code.OK]


def test_a_request_before_the_auth_in_one_write_has_it_not(
    server: Server, connect: Connect, base: str
) -> None:
    client = connect()
    client.call(rq.create(f"{base}/n", acl=(Acl(1, "digest", digest(ANN)),)))
    replies = client.calls(rq.get_data(f"{base}/n"), rq.auth("digest", ANN))
    assert {reply.xid: reply.err for reply in replies} == {2: Code.NO_AUTH, -4: Code.OK}
    if AUTH_WAITS_ITS_TURN.on(server):
        assert [reply.xid for reply in replies] == [2, -4]

"""Who a client is after what it has sent."""

from __future__ import annotations

from paddock.errors import AUTH_FAILED, OK
from paddock.protocol.acl import Identity
from paddock.server.sessions.authentication import IDENTITIES_BYTES_MAX, Authenticator


def test_a_client_may_be_several_but_not_without_end() -> None:
    authenticator = Authenticator("127.0.0.1", None)
    identities = authenticator.start()
    code, count = OK, 0
    while code == OK:
        assert count < 1_000
        code, identities = authenticator.receive("digest", b"user%d:secret" % count, identities)
        count += 1
    assert code == AUTH_FAILED
    assert count > 30
    assert len(identities.wire) <= IDENTITIES_BYTES_MAX


def test_the_same_identity_again_changes_nothing() -> None:
    authenticator = Authenticator("::ffff:10.0.0.1", None)
    first = authenticator.start()
    assert first.entries == (Identity("ip", "10.0.0.1"),)
    _, second = authenticator.receive("digest", b"a:b", first)
    assert authenticator.receive("digest", b"a:b", second) == (OK, second)
    assert authenticator.receive("ip", b"", second) == (OK, second)


def test_a_super_digest_that_is_no_text_fits_nobody() -> None:
    authenticator = Authenticator("127.0.0.1", "super:\udcff")
    code, identities = authenticator.receive("digest", b"super:secret", authenticator.start())
    assert code == OK
    assert not identities.is_super


def test_a_certificate_is_an_identity_from_the_beginning() -> None:
    certified = (Identity("super", "CN=a"), Identity("x509", "CN=a"))
    authenticator = Authenticator("127.0.0.1", None, certified)
    first = authenticator.start()
    assert first.entries == (Identity("ip", "127.0.0.1"), *certified)
    assert first.is_super
    assert authenticator.receive("x509", None, first) == (OK, first)


def test_who_has_no_certificate_cannot_claim_one() -> None:
    authenticator = Authenticator("127.0.0.1", None)
    first = authenticator.start()
    assert authenticator.receive("x509", b"CN=a", first) == (AUTH_FAILED, first)

"""Who a client is after what it has sent."""

from __future__ import annotations

from paddock.errors import AUTH_FAILED, OK
from paddock.protocol.acl import Identity
from paddock.server.authentication import Conversation


def test_a_client_may_be_several_but_not_without_end() -> None:
    conversation = Conversation("127.0.0.1", None)
    identities = conversation.start()
    code, count = OK, 0
    while code == OK:
        assert count < 1_000
        code, identities = conversation.receive("digest", b"user%d:secret" % count, identities)
        count += 1
    assert code == AUTH_FAILED
    assert count > 100
    assert len(identities.wire) <= 1 << 14


def test_the_same_identity_again_changes_nothing() -> None:
    conversation = Conversation("::ffff:10.0.0.1", None)
    first = conversation.start()
    assert first.entries == (Identity("ip", "10.0.0.1"),)
    _, second = conversation.receive("digest", b"a:b", first)
    assert conversation.receive("digest", b"a:b", second) == (OK, second)
    assert conversation.receive("ip", b"", second) == (OK, second)


def test_a_super_digest_that_is_no_text_fits_nobody() -> None:
    conversation = Conversation("127.0.0.1", "super:\udcff")
    code, identities = conversation.receive("digest", b"super:secret", conversation.start())
    assert code == OK
    assert not identities.is_super

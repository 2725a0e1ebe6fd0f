"""The owners of nodes as Apache keeps them."""

import pytest

from paddock.upgrade.state import is_session, is_ttl, ttl_of_3_5_3


def owner(text: str) -> int:
    """Read an owner as it is usually written, in hexadecimal without a sign."""
    return (int(text, 16) + (1 << 63)) % (1 << 64) - (1 << 63)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("0", "nobody"),
        ("1000010a2b3c0000", "session"),
        ("7f00010a2b3c0000", "session"),
        # Of the servers from 128 on.
        ("8000010a2b3c0000", "session"),
        ("fe00010a2b3c0000", "session"),
        ("8000000000000000", "container"),
        ("ff00000000000001", "TTL"),
        ("ff0000ffffffffff", "TTL"),
        # The bits between are for what is not invented yet.
        ("ff00010000000001", "session"),
        ("ff00000000000000", "session"),
    ],
)
def test_an_owner_is_a_session_a_ttl_a_container_or_nobody(text: str, kind: str) -> None:
    assert is_session(owner(text)) == (kind == "session")
    assert is_ttl(owner(text)) == (kind == "TTL")


def test_a_ttl_of_3_5_3_is_told_from_a_session_of_server_128() -> None:
    assert ttl_of_3_5_3(owner("80000000000003e8")) == owner("ff000000000003e8")
    assert ttl_of_3_5_3(owner("8000000000000000")) is None
    assert ttl_of_3_5_3(owner("8000010a2b3c0000")) is None
    assert ttl_of_3_5_3(1000) is None

"""ACLs as callers write them."""

from __future__ import annotations

import pytest

from paddock import ACL, Identity, InvalidArgumentError, Permission, digest_acl, ip_acl, world_acl


def test_each_helper_gives_the_acl_that_the_wire_has() -> None:
    assert digest_acl("alice", "secret") == ACL(
        31, Identity("digest", "alice:aYXlLOpEooaV1cRAvUL1fp9Qt7E=")
    )
    assert ip_acl("10.0.0.0/8", Permission.READ) == ACL(1, Identity("ip", "10.0.0.0/8"))
    some = Permission.READ | Permission.ADMIN
    assert world_acl(some) == ACL(17, Identity("world", "anyone"))


@pytest.mark.parametrize(
    ("user", "password", "named"),
    [("", "x", "user: "), ("a:b", "x", "user: "), (b"a", "x", "user: "), ("a", b"x", "password: ")],
)
def test_what_is_no_user_or_password_is_named(user: str, password: str, named: str) -> None:
    with pytest.raises(InvalidArgumentError, match=named):
        digest_acl(user, password)


@pytest.mark.parametrize("permissions", ["rw", None, True, 1.0])
def test_what_are_no_permissions_is_named(permissions: int) -> None:
    named = "permissions: expected some Permission"
    with pytest.raises(InvalidArgumentError, match=named):
        digest_acl("alice", "secret", permissions)
    with pytest.raises(InvalidArgumentError, match=named):
        ip_acl("10.0.0.0/8", permissions)
    with pytest.raises(InvalidArgumentError, match=named):
        world_acl(permissions)

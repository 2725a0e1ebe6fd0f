"""Who may do what with a node, as callers write it.

    await client.create("/secret", acl=[digest_acl("alice", "password")])
    await client.create("/public", acl=[digest_acl("alice", "password"), *READ_ONLY_ACL])

A node has a list of entries; what no entry grants is refused. `OPEN_ACL`, the default, grants
everything to everyone; `READ_ONLY_ACL` grants reads to everyone; `CREATOR_ALL_ACL` grants
everything to the creator, as authenticated by `add_auth`.
"""

from __future__ import annotations

from enum import IntFlag
from typing import Final

from paddock.errors import InvalidArgumentError
from paddock.protocol import acl as wire
from paddock.protocol.acl import ACL, Identity, digest_id


class Permission(IntFlag):
    """Permissions of an ACL entry; `|` joins several."""

    READ = wire.READ
    WRITE = wire.WRITE
    CREATE = wire.CREATE
    DELETE = wire.DELETE
    ADMIN = wire.ADMIN
    ALL = wire.ALL


OPEN_ACL: Final[tuple[ACL, ...]] = wire.OPEN
READ_ONLY_ACL: Final[tuple[ACL, ...]] = wire.READ_ONLY
CREATOR_ALL_ACL: Final[tuple[ACL, ...]] = wire.CREATOR_ALL


def digest_acl(user: str, password: str, permissions: int = Permission.ALL) -> ACL:
    """Return an entry for a user who authenticates by `add_auth("digest", b"user:password")`.

    The ACL holds a digest, not the password itself.
    """
    for name, value in (("user", user), ("password", password)):
        if not isinstance(value, str):
            raise InvalidArgumentError(f"{name}: expected text, not {type(value).__name__}")
    if not user or ":" in user:
        raise InvalidArgumentError("user: expected a name without a colon")
    return ACL(_checked(permissions), Identity("digest", digest_id(f"{user}:{password}")))


def ip_acl(network: str, permissions: int = Permission.ALL) -> ACL:
    """Return an entry for clients of an address, or of a network such as `10.0.0.0/8`."""
    return ACL(_checked(permissions), Identity("ip", network))


def world_acl(permissions: int = Permission.ALL) -> ACL:
    """Return an entry for everyone."""
    return ACL(_checked(permissions), wire.ANYONE)


def _checked(permissions: object) -> int:
    if isinstance(permissions, int) and not isinstance(permissions, bool):
        return int(permissions)
    raise InvalidArgumentError(f"permissions: expected some Permission, not {permissions!r}")

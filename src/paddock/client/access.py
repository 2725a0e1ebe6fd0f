"""Who may do what with a node, as callers write it.

    await client.create("/secret", acl=[digest_acl("alice", "password")])
    await client.create("/public", acl=[digest_acl("alice", "password"), *READ_ONLY_ACL])

A node has a list of these, and what no entry grants is refused. `OPEN_ACL`, the default, lets
anybody do anything; `READ_ONLY_ACL` lets anybody read; `CREATOR_ALL_ACL` lets whoever creates the
node do anything, known by what `add_auth` has said.
"""

from __future__ import annotations

from enum import IntFlag
from typing import Final

from paddock.errors import InvalidArgumentError
from paddock.protocol import acl as wire
from paddock.protocol.acl import ACL, Identity, digest_id


class Permission(IntFlag):
    """What somebody may do; `|` joins several."""

    READ = wire.READ
    WRITE = wire.WRITE
    CREATE = wire.CREATE
    DELETE = wire.DELETE
    ADMIN = wire.ADMIN
    ALL = wire.ALL


# Anybody may do anything; anybody may read; whoever creates the node may do anything.
OPEN_ACL: Final[tuple[ACL, ...]] = wire.OPEN
READ_ONLY_ACL: Final[tuple[ACL, ...]] = wire.READ_ONLY
CREATOR_ALL_ACL: Final[tuple[ACL, ...]] = wire.CREATOR_ALL


def digest_acl(user: str, password: str, permissions: int = Permission.ALL) -> ACL:
    """Give what lets somebody in who knows a password: `add_auth("digest", b"user:password")`.

    The ACL holds a digest, not the password itself.
    """
    for name, value in (("user", user), ("password", password)):
        if not isinstance(value, str):
            raise InvalidArgumentError(f"{name}: expected text, not {type(value).__name__}")
    if not user or ":" in user:
        raise InvalidArgumentError("user: expected a name without a colon")
    return ACL(_checked(permissions), Identity("digest", digest_id(f"{user}:{password}")))


def ip_acl(network: str, permissions: int = Permission.ALL) -> ACL:
    """Give what lets in whoever connects from an address, or from a network: `10.0.0.0/8`."""
    return ACL(_checked(permissions), Identity("ip", network))


def world_acl(permissions: int = Permission.ALL) -> ACL:
    """Give what lets anybody do something."""
    return ACL(_checked(permissions), wire.ANYONE)


def _checked(permissions: object) -> int:
    if isinstance(permissions, int) and not isinstance(permissions, bool):
        return int(permissions)
    raise InvalidArgumentError(f"permissions: expected some Permission, not {permissions!r}")

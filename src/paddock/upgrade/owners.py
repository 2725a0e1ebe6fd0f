"""The owner of a node, as Apache keeps it: one number with four meanings.

0 is no owner, and the lowest number a container. With all of the top eight bits set it is a TTL in
milliseconds, in the low 40. Anything else is the session of an ephemeral node; its top eight bits
are the id of the server that gave it, so for the servers from 128 on it is negative.

3.5.3 alone kept a TTL under the top bit. Such a number is told from a session by what is between:
a session has a time there.
"""

from __future__ import annotations

from typing import Final

from paddock.state.node import CONTAINER, TTL_BASE, TTL_MS_MAX


def is_ttl(owner: int) -> bool:
    return TTL_BASE < owner <= TTL_BASE + TTL_MS_MAX


def is_session(owner: int) -> bool:
    return owner not in (0, CONTAINER) and not is_ttl(owner)


def ttl_of_3_5_3(owner: int) -> int | None:
    """Return the owner as later versions write it, if it is a TTL of 3.5.3."""
    ttl_ms = owner - CONTAINER
    return TTL_BASE + ttl_ms if 0 < ttl_ms <= TTL_MS_MAX else None


_SECRET: Final = 0xB3415C00
_MULTIPLIER: Final = 0x5DEECE66D
_MASK: Final = (1 << 48) - 1


def session_password(session: int) -> bytes:
    """Return the password of a session as Apache makes it: Java's random bytes, the id as seed.

    So clients can go on with their sessions.
    """
    seed = (session ^ _SECRET ^ _MULTIPLIER) & _MASK
    password = b""
    for _ in range(4):
        seed = (seed * _MULTIPLIER + 0xB) & _MASK
        password += (seed >> 16).to_bytes(4, "little")
    return password

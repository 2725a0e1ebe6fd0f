"""A recipe that was recognised: who holds it, who waits for it, and since when; as plain data."""

from __future__ import annotations

import base64
import enum
import ipaddress
import re
from dataclasses import dataclass
from typing import Any, Final

from paddock.dashboard.coordination.nodes import Node
from paddock.layouts import read_requests

# Whose layout it is if that cannot be told.
UNKNOWN: Final = "unknown"
# How many holders, and how many waiters, of one recipe are given out; the others are counted.
SHOWN_MAX: Final = 200
# How much of a contender's data is given out.
_DATA_BYTES_MAX: Final = 1024
_HOST_PORT: Final = re.compile(rb"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,253}):(\d{1,5})")


class Kind(enum.StrEnum):
    """What a recipe is for."""

    LOCK = "lock"
    READ_WRITE_LOCK = "read-write lock"
    SEMAPHORE = "semaphore"
    ELECTION = "election"
    QUEUE = "queue"
    BARRIER = "barrier"
    SERVICE = "service"
    MEMBERS = "members"
    #: A line of ephemeral sequential nodes; nobody knows for what.
    CONTENDERS = "contenders"


class Needs(enum.Enum):
    """Whom a waiter waits for. Waiters of other recipes wait for nobody in particular."""

    #: All holders have to go.
    ALL = enum.auto()
    #: One of the holders has to go.
    ANY = enum.auto()


@dataclass(frozen=True, slots=True)
class Contender:
    """Who holds or waits, by the node."""

    path: str
    #: 0 if the node is not ephemeral.
    session: int
    since_ms: int
    czxid: int
    data: bytes
    #: What it does, such as "reads".
    how: str
    address: str | None

    def fields(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "path": self.path,
            "session": session_text(self.session) if self.session else None,
            "address": self.address,
            "since_ms": self.since_ms,
            "data": base64.b64encode(self.data[:_DATA_BYTES_MAX]).decode(),
            "size": len(self.data),
            "is_cut": len(self.data) > _DATA_BYTES_MAX,
            "how": self.how,
        }


@dataclass(frozen=True, slots=True)
class Recipe:
    """One recipe; holders and waiters in order."""

    kind: Kind
    layout: str
    path: str
    holders: tuple[Contender, ...] = ()
    waiters: tuple[Contender, ...] = ()
    #: Items of a queue, members that a barrier waits for, items that a partitioner divides.
    size: int | None = None
    #: How many may hold it.
    limit: int | None = None
    #: Whom its waiters wait for; None: they are in no deadlock.
    needs: Needs | None = None

    def fields(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "kind": self.kind.value,
            "layout": self.layout,
            "path": self.path,
            "holders": [one.fields() for one in self.holders[:SHOWN_MAX]],
            "waiters": [one.fields() for one in self.waiters[:SHOWN_MAX]],
            "holder_count": len(self.holders),
            "waiter_count": len(self.waiters),
            "size": self.size,
            "limit": self.limit,
        }


def contender(
    node: Node, how: str, *, data: bytes | None = None, address: str | None = None
) -> Contender:
    """Return the contender that a node stands for."""
    # Somebody may have asked a holder to let go.
    said = read_requests(node.data).own if data is None else data
    return Contender(
        node.path,
        node.session,
        node.ctime_ms,
        node.czxid,
        said,
        how,
        address or address_of(said),
    )


def address_of(data: bytes) -> str | None:
    """Return the address in data that are nothing else: an IP address, with a port or without.

    Curator leaves the address of its host, unless it is told otherwise.
    """
    if len(data) > 300 or not data.isascii():
        return None
    text = data.decode()
    found = _HOST_PORT.fullmatch(data)
    if found is not None and 0 < int(found[1]) < 65536:
        return text
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None


def session_text(session: int) -> str:
    """Return a session as people write it."""
    return f"0x{session & (1 << 64) - 1:x}"

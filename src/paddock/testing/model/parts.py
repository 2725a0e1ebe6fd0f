"""The parts of the reference model: nodes, paths, ACLs, sessions, callers, requests and answers."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from paddock import errors
from paddock.protocol.acl import ACL, ANYONE, NOT_UNDERSTOOD, Identity
from paddock.protocol.requests import (
    AddWatchRequest,
    CreateRequest,
    CreateTTLRequest,
    PathRequest,
    ReconfigRequest,
    SetACLRequest,
    SetDataRequest,
    SetWatchesRequest,
    VersionRequest,
    WatchedRequest,
    WatchesRequest,
)

WriteRequest: TypeAlias = (
    CreateRequest
    | CreateTTLRequest
    | VersionRequest
    | SetDataRequest
    | SetACLRequest
    | PathRequest
    | ReconfigRequest
)
ReadRequest: TypeAlias = (
    WatchedRequest
    | PathRequest
    | SetWatchesRequest
    | AddWatchRequest
    | WatchesRequest
    | list[tuple[int, WatchedRequest]]
    | None
)
Result: TypeAlias = tuple[int, int, object]
"""One result of a transaction: operation (-1 for an error), error, and the record or None."""

# How many answers an exact session keeps.
WINDOW: Final = 1024

_FORBIDDEN: Final = re.compile("[\0-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\U0010ffff]")


def is_valid_path(path: bytes) -> bool:
    """Return whether a node may have this path."""
    try:
        text = path.decode()
    except UnicodeDecodeError:
        return False
    root, *names = text.split("/")
    are_names = bool(names) and not {"", ".", ".."}.intersection(names)
    return text == "/" or (root == "" and are_names and not _FORBIDDEN.search(text))


@dataclass
class ModelNode:
    """Everything that is known about one node."""

    data: bytes | None
    acls: list[ACL]
    czxid: int
    mzxid: int
    pzxid: int
    ctime: int
    mtime: int
    version: int = 0
    aversion: int = 0
    # Children ever created here, as a 32-bit counter.
    created: int = 0
    # The session that it lives as long as, or 0.
    owner: int = 0
    container: bool = False
    ttl_ms: int = 0


@dataclass
class ModelSession:
    """A session that is not over."""

    password: bytes
    timeout_ms: int
    generation: int = 1
    # What an exact session keeps; None for any other one.
    kept: KeptAnswers | None = None


@dataclass
class KeptAnswers:
    """The last answers of an exact session. Bounds on their bytes are not modelled."""

    generation: int = 0
    confirmed: int = 0
    # The xid, the operation and the answer of each, the eldest first.
    answers: list[tuple[int, int, Answer]] = field(default_factory=list)

    def add(self, generation: int, xid: int, operation: int, answer: Answer) -> None:
        if generation != self.generation:
            self.generation, self.confirmed, self.answers = generation, 0, []
        self.answers.append((xid, operation, answer))
        if len(self.answers) > WINDOW:
            self.confirmed = self.answers.pop(0)[0]


@dataclass(eq=False)
class Caller:
    """One connection: whose it is, who is behind it, and what it was told.

    An event is its type, its path, and the zxid of the change or -1.
    """

    session: int
    generation: int = 1
    identities: tuple[Identity, ...] = ()
    # The number of its last request.
    xid: int = 0
    events: list[tuple[int, bytes, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Answer:
    """The answer to a request. `reply` is the record that the wire would have, or None."""

    error: int
    zxid: int
    reply: object = None


class No(Exception):  # noqa: N818
    """The request is refused with a code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def permitted(acls: list[ACL], permission: int, identities: tuple[Identity, ...]) -> bool:
    """Return whether an ACL grants any of these permissions to any of these identities."""
    granted = [acl.identity for acl in acls if acl.permissions & permission]
    return (
        Identity("super", "") in identities
        or ANYONE in granted
        or any(_covers(entry, one) for entry in granted for one in identities)
    )


def _covers(entry: Identity, one: Identity) -> bool:
    network = _network(entry.id) if one.scheme == entry.scheme == "ip" else None
    return entry == one or (network is not None and ipaddress.ip_address(one.id) in network)


def storable(acls: list[ACL | None] | None, identities: tuple[Identity, ...]) -> list[ACL]:
    """Return the ACL that a node gets for the one in a request; raises No if it is invalid."""
    stored: list[ACL] = []
    for acl in dict.fromkeys(acls or [None]):
        if acl is NOT_UNDERSTOOD:
            raise No(errors.MARSHALLING_ERROR)
        entries = [] if acl is None else _entries(acl, identities)
        if not entries:
            raise No(errors.INVALID_ACL)
        stored += entries
    return stored


def _entries(acl: ACL, identities: tuple[Identity, ...]) -> list[ACL]:
    """Return the entries that one of a request stands for; none if it is invalid."""
    scheme, id = acl.identity.scheme, acl.identity.id
    if scheme == "auth":
        mine = [one for one in identities if one.scheme not in ("ip", "super")]
        return [ACL(acl.permissions, one) for one in mine]
    valid = (
        (scheme == "world" and id == "anyone")
        or (scheme == "digest" and id.rstrip(":").count(":") == 1)
        or (scheme == "ip" and _network(id) is not None)
    )
    return [acl] if valid else []


def masked(acl: ACL) -> ACL:
    """Return an entry as it is shown without ADMIN."""
    if acl.identity.scheme != "digest":
        return acl
    return ACL(acl.permissions, Identity("digest", acl.identity.id.partition(":")[0] + ":x"))


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None

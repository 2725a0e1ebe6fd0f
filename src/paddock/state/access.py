"""Access control: who asks, what a node's ACL grants, and which ACLs are valid.

The schemes are upstream's: `world:anyone` is everybody; `digest` ids are equal or not; `ip` ids
are an address or a network with a prefix length; `x509` ids are the names of certificates, equal or
not, and valid only where clients can show one; whoever has an identity of the scheme `super` may do
everything. `auth` stands in a request for all ids that the client has authenticated with, and is
replaced by them before the ACL is stored; an address is nothing one authenticates with.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv6Address
from typing import Final
from zlib import crc32

from mypy_extensions import i64

from paddock.errors import INVALID_ACL
from paddock.protocol.acl import (
    ACL,
    ANYONE,
    NOT_UNDERSTOOD,
    OPEN,
    OPEN_LIST,
    OPEN_WIRE,
    Identity,
    encode_acls,
    encode_identities,
)
from paddock.protocol.jute import DecodeError
from paddock.protocol.names import is_distinguished_name
from paddock.state.refusal import Refused

_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,10}", re.ASCII)


class Identities:
    """Everybody that one client is, with what the log writes for it."""

    __slots__ = ("entries", "is_super", "wire")

    def __init__(self, entries: tuple[Identity, ...]) -> None:
        self.entries = entries
        self.wire = encode_identities(entries)
        self.is_super = any(one.scheme == "super" for one in entries)

    def adding(self, *more: Identity) -> Identities:
        """Give these and more, each once, in the order in which they came."""
        return Identities(tuple(dict.fromkeys(self.entries + more)))


NOBODY: Final = Identities(())


class NodeACL:
    """One access control list, shared by all nodes that have the same."""

    __slots__ = ("_grants", "anyone", "crc", "entries", "epoch", "number", "users", "wire")

    def __init__(self, entries: tuple[ACL, ...], wire: bytes) -> None:
        self.entries = entries
        self.wire = wire
        # Every change of a node counts it in twice, by the digest.
        self.crc: i64 = crc32(wire)
        # What everybody may do; nearly every check ends here.
        anyone = 0
        for entry in entries:
            if entry.identity == ANYONE:
                anyone |= entry.permissions
        self.anyone = anyone
        # How many nodes have it. Invariant: it is in its table if and only if users > 0.
        self.users = 0
        # Its number in the snapshot being written, and which snapshot that is.
        self.number = 0
        self.epoch = 0
        # Made when somebody first needs more than what everybody may do.
        self._grants: Grants | None = None

    def permits(self, permission: int, identities: Identities) -> bool:
        """Tell whether any of the identities has any of the permissions."""
        if self.anyone & permission or identities.is_super:
            return True
        grants = self._grants
        if grants is None:
            grants = Grants(self.entries)
            self._grants = grants
        return any(grants.to(identity) & permission for identity in identities.entries)


class Grants:
    """What an ACL grants to whom, to be looked up: a list may be as long as a request.

    A network is found by the bits that its prefix has, so an address costs one look for each
    different length of a prefix, and not one for each network.
    """

    __slots__ = ("_by_identity", "_by_network", "_prefixes")

    def __init__(self, entries: tuple[ACL, ...]) -> None:
        self._by_identity: dict[Identity, int] = {}
        # By width, prefix and the bits of it.
        self._by_network: dict[tuple[int, int, int], int] = {}
        self._prefixes: dict[tuple[int, int], None] = {}
        for entry in entries:
            identity = entry.identity
            if identity.scheme != "ip":
                known = self._by_identity.get(identity, 0)
                self._by_identity[identity] = known | entry.permissions
                continue
            network = _network(identity.id)
            if network is not None:
                value, width, prefix = network
                self._prefixes[width, prefix] = None
                key = (width, prefix, value >> (width - prefix))
                self._by_network[key] = self._by_network.get(key, 0) | entry.permissions

    def to(self, identity: Identity) -> int:
        """Give the permissions of one identity."""
        if identity.scheme != "ip":
            return self._by_identity.get(identity, 0)
        address = _address(identity.id)
        granted = 0
        if address is not None:
            value, width = address
            for of_width, prefix in self._prefixes:
                if of_width == width:
                    bits = value >> (width - prefix)
                    granted |= self._by_network.get((width, prefix, bits), 0)
        return granted


class ACLTable:
    """Keeps each different ACL once."""

    __slots__ = ("_by_wire",)

    def __init__(self) -> None:
        self._by_wire: dict[bytes, NodeACL] = {}

    def __len__(self) -> int:
        return len(self._by_wire)

    def acquire(self, entries: tuple[ACL, ...]) -> NodeACL:
        """Give the shared list for one more node."""
        wire = OPEN_WIRE if entries is OPEN else encode_acls(entries)
        acl = self._by_wire.get(wire)
        if acl is None:
            acl = NodeACL(entries, wire)
        return self.retain(acl)

    def retain(self, acl: NodeACL) -> NodeACL:
        """Count one more node that has it."""
        self._by_wire[acl.wire] = acl
        acl.users += 1
        return acl

    def release(self, acl: NodeACL) -> None:
        """Count one node less that has it."""
        acl.users -= 1
        assert acl.users >= 0
        if acl.users == 0:
            del self._by_wire[acl.wire]


def resolve(
    acls: list[ACL | None] | None, identities: Identities, knows_certificates: bool = False
) -> tuple[ACL, ...]:
    """Turn the ACL of a request into one that can be stored: valid, each entry once.

    Raises Refused with INVALID_ACL, or DecodeError for what cannot be understood.
    """
    if acls is OPEN_LIST:
        return OPEN
    if not acls:
        raise Refused(INVALID_ACL)
    resolved: list[ACL] = []
    for acl in dict.fromkeys(acls):
        if acl is None:
            raise Refused(INVALID_ACL)
        if acl is NOT_UNDERSTOOD:
            raise DecodeError("an ACL with a null id")
        scheme = acl.identity.scheme
        if acl.identity == ANYONE:
            resolved.append(acl)
        elif scheme == "auth":
            mine = [ACL(acl.permissions, one) for one in identities.entries if _proves(one)]
            if not mine:
                raise Refused(INVALID_ACL)
            resolved.extend(mine)
        elif (
            (scheme == "digest" and _is_digest(acl.identity.id))
            or (scheme == "ip" and _network(acl.identity.id) is not None)
            or (scheme == "x509" and knows_certificates and is_distinguished_name(acl.identity.id))
        ):
            resolved.append(acl)
        else:
            raise Refused(INVALID_ACL)
    return tuple(resolved)


def without_secrets(entries: tuple[ACL, ...]) -> list[ACL]:
    """Give the ACL as somebody may see it who may not administer the node."""
    return [
        ACL(entry.permissions, Identity("digest", re.sub(":.*", ":x", entry.identity.id)))
        if entry.identity.scheme == "digest"
        else entry
        for entry in entries
    ]


def user_name(identity: Identity) -> str:
    """Give the part of an identity that may be shown to anybody."""
    if identity.scheme == "digest":
        return identity.id.split(":", 1)[0]
    return identity.id


def _proves(identity: Identity) -> bool:
    """Tell whether having this identity took a proof; an address is only where one is."""
    return identity.scheme not in ("ip", "super")


def _is_digest(identifier: str) -> bool:
    """Tell whether it is `user:hash`. Colons at the very end do not count, as upstream."""
    return len(identifier.rstrip(":").split(":")) == 2


def _network(expression: str) -> tuple[int, int, int] | None:
    """Parse `address` or `address/prefix` to its value, its width in bits, and the prefix."""
    text, slash, prefix_text = expression.partition("/")
    address = _address(text)
    if address is None:
        return None
    value, width = address
    if not slash:
        return value, width, width
    prefix = _number(prefix_text)
    return None if prefix is None or not 0 <= prefix <= width else (value, width, prefix)


def _address(text: str) -> tuple[int, int] | None:
    if ":" in text:
        try:
            return int(IPv6Address(text)), 128
        except AddressValueError:
            return None
    parts = text.split(".")
    if len(parts) != 4:
        return None
    value = 0
    for part in parts:
        number = _number(part)
        if number is None or not 0 <= number <= 255:
            return None
        value = value << 8 | number
    return value, 32


def _number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) is not None else None

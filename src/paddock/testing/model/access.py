"""Access control of the reference model."""

from __future__ import annotations

import ipaddress

from paddock import errors
from paddock.protocol.acl import ACL, ANYONE, NOT_UNDERSTOOD, Identity
from paddock.testing.model.parts import No


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

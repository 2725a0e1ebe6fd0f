"""Access control of the reference model."""

from __future__ import annotations

import ipaddress

from paddock import errors
from paddock.protocol.acl import ACL, ANYONE, NOT_UNDERSTOOD, Identity
from paddock.testing.model.parts import No


def permitted(acls: list[ACL], permission: int, identities: tuple[Identity, ...]) -> bool:
    """Return whether an ACL grants any of these permissions to any of these identities."""
    if Identity("super", "") in identities:
        return True
    for acl in acls:
        if not acl.permissions & permission:
            continue
        if acl.identity == ANYONE:
            return True
        for one in identities:
            if one == acl.identity:
                return True
            if one.scheme == acl.identity.scheme == "ip":
                network = _network(acl.identity.id)
                address = ipaddress.ip_address(one.id)
                if network is not None and address in network:
                    return True
    return False


def storable(acls: list[ACL | None] | None, identities: tuple[Identity, ...]) -> list[ACL]:
    """Return the ACL that a node gets for the one in a request; raises No if it is invalid."""
    stored: list[ACL] = []
    seen: list[ACL] = []
    for acl in acls or []:
        if acl is None:
            raise No(errors.INVALID_ACL)
        if acl is NOT_UNDERSTOOD:
            raise No(errors.MARSHALLING_ERROR)
        if acl in seen:
            continue
        seen.append(acl)
        scheme, id = acl.identity.scheme, acl.identity.id
        if scheme == "auth":
            mine = [one for one in identities if one.scheme not in ("ip", "super")]
            stored += [ACL(acl.permissions, one) for one in mine]
            valid = bool(mine)
        else:
            stored.append(acl)
            valid = (
                (scheme == "world" and id == "anyone")
                or (scheme == "digest" and id.rstrip(":").count(":") == 1)
                or (scheme == "ip" and _network(id) is not None)
            )
        if not valid:
            raise No(errors.INVALID_ACL)
    if not stored:
        raise No(errors.INVALID_ACL)
    return stored


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

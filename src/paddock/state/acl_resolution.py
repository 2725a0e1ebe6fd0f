"""From the ACL of a request to one that can be stored: valid, each entry once.

`auth` stands in a request for all ids that the client has authenticated with, and is replaced by
them before the ACL is stored. Certificates and names of SASL are valid in an ACL only where
clients can prove that they have one.

A client chooses its identities, its ACLs and how many of both, so their product has bounds, for all
steps of a request together: `ACL_ENTRIES_MAX` entries, and `EXPANDED_BYTES_MAX` bytes of what
`auth` entries stand for. An ACL that comes again in the same request counts once.

Entries of former rules (`paddock.state.entry`) have no bounds. If such an entry expands to more
than `FORMER_BYTES_MAX`, its node gets an ACL in which all `auth` entries are one: each identity
once, with all its permissions. It grants the same. Only its checksum is that of the full expansion,
by which the digests in that log go.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter

from paddock._checksums import crc32
from paddock.errors import INVALID_ACL
from paddock.protocol.acl import (
    ACL,
    CREATOR,
    NOT_UNDERSTOOD,
    Identity,
    encode_acls,
    is_anyone,
)
from paddock.protocol.distinguished_names import is_distinguished_name
from paddock.protocol.jute import DecodeError
from paddock.protocol.principals import is_sasl_id
from paddock.state.access import Identities, NodeACL
from paddock.state.entry import ACL_ENTRIES_MAX, Refused
from paddock.state.networks import parse_network

EXPANDED_BYTES_MAX: Final = 8 << 10
FORMER_BYTES_MAX: Final = 64 << 10

# The length of a vector, and a permission, on the wire.
_NUMBER_BYTES: Final = 4


class Resolver:
    """Resolves the ACLs of one request, whose sender has these identities."""

    def __init__(
        self,
        identities: Identities,
        knows_certificates: bool,
        is_bounded: bool = True,
        knows_sasl: bool = False,
    ) -> None:
        self._identities = identities
        self._knows_certificates = knows_certificates
        self._knows_sasl = knows_sasl
        # Whether the bounds hold: not for an entry of former rules.
        self._is_bounded = is_bounded
        # What each list of the request has become, once it has.
        self._known: dict[tuple[ACL | None, ...], list[NodeACL]] = {}
        # What the request has had of its bounds so far.
        self._entries = 0
        self._expanded_bytes = 0

    def resolve(self, acls: list[ACL | None] | None) -> NodeACL:
        """Return the ACL to be stored; it is in no table yet.

        Raises Refused with INVALID_ACL, or DecodeError for what cannot be understood.
        """
        if not acls:
            raise Refused(INVALID_ACL)
        # One look: a long list takes milliseconds to hash.
        known = self._known.setdefault(tuple(acls), [])
        if not known:
            known.append(self._resolve(acls))
        return known[0]

    def _resolve(self, acls: list[ACL | None]) -> NodeACL:
        distinct = list(dict.fromkeys(acls))
        creators = [one for one in distinct if one is not None and one.identity.scheme == "auth"]
        expanded_bytes = len(creators) * _expanded_bytes(self._identities)
        if self._is_bounded:
            self._entries += len(acls)
            self._expanded_bytes += expanded_bytes
            if self._entries > ACL_ENTRIES_MAX or self._expanded_bytes > EXPANDED_BYTES_MAX:
                raise Refused(INVALID_ACL)
        elif expanded_bytes > FORMER_BYTES_MAX:
            return self._resolve_former(distinct, creators)
        entries = resolve(distinct, self._identities, self._knows_certificates, self._knows_sasl)
        return NodeACL(entries, encode_acls(entries))

    def _resolve_former(self, distinct: list[ACL | None], creators: list[ACL]) -> NodeACL:
        permissions = 0
        for creator in creators:
            permissions |= creator.permissions
        first = distinct.index(creators[0])
        merged = [one for one in distinct if one is None or one.identity.scheme != "auth"]
        merged.insert(first, ACL(permissions, CREATOR))
        entries = resolve(merged, self._identities, self._knows_certificates)
        former_crc = expanded_crc([one for one in distinct if one is not None], self._identities)
        return NodeACL(entries, encode_acls(entries), former_crc)


def resolve(
    acls: list[ACL | None],
    identities: Identities,
    knows_certificates: bool = False,
    knows_sasl: bool = False,
) -> tuple[ACL, ...]:
    """Return the entries of an ACL, of which none comes twice, with `auth` replaced.

    Raises Refused with INVALID_ACL, or DecodeError for what cannot be understood.
    """
    resolved: list[ACL] = []
    for acl in acls:
        if acl is None:
            raise Refused(INVALID_ACL)
        if acl is NOT_UNDERSTOOD:
            raise DecodeError("an ACL with a null id")
        scheme = acl.identity.scheme
        if is_anyone(acl.identity):
            resolved.append(acl)
        elif scheme == "auth":
            mine = [ACL(acl.permissions, one) for one in _proven(identities)]
            if not mine:
                raise Refused(INVALID_ACL)
            resolved.extend(mine)
        elif (
            (scheme == "digest" and _is_digest(acl.identity.id))
            or (scheme == "ip" and parse_network(acl.identity.id) is not None)
            or (scheme == "x509" and knows_certificates and is_distinguished_name(acl.identity.id))
            or (scheme == "sasl" and knows_sasl and is_sasl_id(acl.identity.id))
        ):
            resolved.append(acl)
        else:
            raise Refused(INVALID_ACL)
    return tuple(resolved)


def expanded_crc(acls: list[ACL], identities: Identities) -> int:
    """Return the checksum of an ACL with `auth` replaced, without having it in memory."""
    mine = [_encoded(one) for one in _proven(identities)]
    creators = sum(1 for acl in acls if acl.identity.scheme == "auth")
    count = len(acls) - creators + creators * len(mine)
    checksum = crc32(count.to_bytes(_NUMBER_BYTES, "big"))
    for acl in acls:
        if acl.identity.scheme == "auth":
            permissions = acl.permissions.to_bytes(_NUMBER_BYTES, "big", signed=True)
            checksum = crc32(permissions.join([b"", *mine]), checksum)
        else:
            checksum = crc32(encode_acls([acl])[_NUMBER_BYTES:], checksum)
    return checksum


def _expanded_bytes(identities: Identities) -> int:
    """Return the bytes of what one `auth` entry stands for."""
    return sum(len(_encoded(one)) + _NUMBER_BYTES for one in _proven(identities))


def _proven(identities: Identities) -> list[Identity]:
    """List the identities that took a proof; an address is only where one is."""
    return [one for one in identities.entries if one.scheme not in ("ip", "super")]


def _encoded(identity: Identity) -> bytes:
    writer = BytesWriter()
    identity.write(writer)
    return writer.getvalue()


def _is_digest(identifier: str) -> bool:
    """Return whether it is `user:hash`. Colons at the very end do not count, as upstream."""
    return len(identifier.rstrip(":").split(":")) == 2

"""Authentication schemes of one packet: how a client proves its identities.

A client sends AUTH packets, each of which is answered and may add identities. SASL, which needs
several steps, is in `paddock.server.sasl`.
"""

from __future__ import annotations

import hmac
from ipaddress import IPv6Address, ip_address
from typing import Final

from paddock.errors import AUTH_FAILED, OK
from paddock.protocol.acl import SUPER, Identity, digest_id
from paddock.state.access import Identities

# Every write carries the client's identities into the log.
IDENTITIES_BYTES_MAX: Final = 1 << 11


class Authenticator:
    """The authentication of one client."""

    def __init__(
        self, address: str, super_digest: str | None, certified: tuple[Identity, ...] = ()
    ) -> None:
        self._address = _plain(address)
        self._super_digest = super_digest
        # The identities of the client's certificate.
        self._certified = certified

    def start(self) -> Identities:
        """Return the identities of a new client: its address, and those of its certificate."""
        return Identities((Identity("ip", self._address), *self._certified))

    def receive(
        self, scheme: str | None, credentials: bytes | None, identities: Identities
    ) -> tuple[int, Identities]:
        """Check a packet. Return the result code, and the client's identities from now on."""
        if scheme == "ip":
            return with_identities(identities, Identity("ip", self._address))
        if scheme == "x509" and self._certified:
            return with_identities(identities, *self._certified)
        if scheme != "digest" or credentials is None:
            return AUTH_FAILED, identities
        digest = digest_id(credentials.decode("utf-8", "replace"))
        identity = Identity("digest", digest)
        if self._is_super(digest):
            return with_identities(identities, SUPER, identity)
        return with_identities(identities, identity)

    def _is_super(self, digest: str) -> bool:
        # A settings file may hold bytes that are not text.
        known = (self._super_digest or "").encode("utf-8", "surrogateescape")
        return hmac.compare_digest(digest.encode(), known)


def with_identities(identities: Identities, *more: Identity) -> tuple[int, Identities]:
    """Return OK and these identities with more, or AUTH_FAILED if they become too many."""
    if all(one in identities.entries for one in more):
        return OK, identities
    grown = identities.adding(*more)
    if len(grown.wire) > IDENTITIES_BYTES_MAX:
        return AUTH_FAILED, identities
    return OK, grown


def _plain(address: str) -> str:
    """Return an IPv4 address as such, also if it is mapped to IPv6."""
    try:
        parsed = ip_address(address.split("%", 1)[0])
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(parsed)

"""Hostname verification: whether a certificate names the host that a client connects from.

The rules are upstream's: the subject alternative names count, and the common name only if there are
none. The address is tried first, then its name in DNS, if that name resolves to the address.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from typing import Any

from paddock.server.connections.ports import parse_address


async def comes_from_its_host(certificate: Mapping[str, Any], address: str) -> bool:
    """Return whether a certificate, as `getpeercert()` returns it, names its client's host.

    True without a certificate.
    """
    if not certificate or names_host(certificate, address):
        return True
    name = await _name_of(address)
    return name is not None and names_host(certificate, name)


def names_host(certificate: Mapping[str, Any], host: str) -> bool:
    """Return whether a certificate is for a host, given by its address or its name."""
    alternatives: list[tuple[str, str]] = [
        (kind, value.strip())
        for kind, value in certificate.get("subjectAltName", ())
        if kind in ("DNS", "IP Address")
    ]
    if not alternatives:
        attributes = (one for level in certificate.get("subject", ()) for one in level)
        names = [str(value) for keyword, value in attributes if keyword == "commonName"]
        # The most specific one is the last.
        return bool(names) and _matches(host, names[-1])
    address = parse_address(host)
    if address is not None:
        return any(
            kind == "IP Address" and parse_address(value) == address for kind, value in alternatives
        )
    return any(kind == "DNS" and _matches(host, value) for kind, value in alternatives)


def _matches(host: str, pattern: str) -> bool:
    """Return whether a name matches; one `*` stands for any text without a dot."""
    host, pattern = host.lower(), pattern.lower()
    prefix, star, suffix = pattern.partition("*")
    if not star:
        return host == pattern
    if len(host) < len(prefix) + len(suffix):
        return False
    middle = host[len(prefix) : len(host) - len(suffix)]
    return host.startswith(prefix) and host.endswith(suffix) and "." not in middle


async def _name_of(address: str) -> str | None:
    loop = asyncio.get_running_loop()
    try:
        name, _ = await loop.getnameinfo((address, 0), socket.NI_NAMEREQD)
        # The owner of an address may give it any name; the owner of the name must agree.
        found = await loop.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError:
        return None
    return name if address in {sockaddr[0] for *_, sockaddr in found} else None

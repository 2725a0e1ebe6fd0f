"""Addresses and networks of the scheme `ip`, parsed to numbers.

Whether an ACL is valid is decided when its entry is applied, so these rules must be the same on
every machine and at every restart. They are written out here, since those of the standard library
change with its versions. An ACL can have thousands of them, so they are quick as well.

An IPv4 address is parsed as upstream does, by `Integer.parseInt`: a number may have a sign and
leading zeros. An IPv6 address may have a zone behind `%`, which is ignored.
"""

from __future__ import annotations

import re
from typing import Final

_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,10}", re.ASCII)
_GROUPS: Final = re.compile(r"(?:[0-9A-Fa-f]{1,4}:){0,7}[0-9A-Fa-f]{1,4}|")
_OCTET: Final = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_DOTTED: Final = re.compile(rf"{_OCTET}(?:\.{_OCTET}){{3}}")


def parse_network(text: str) -> tuple[int, int, int] | None:
    """Parse `address` or `address/prefix` to its value, its width in bits, and the prefix.

    What is neither is None.
    """
    address_text, slash, prefix_text = text.partition("/")
    address = parse_address(address_text)
    if address is None:
        return None
    value, width = address
    if not slash:
        return value, width, width
    prefix = _number(prefix_text)
    return None if prefix is None or not 0 <= prefix <= width else (value, width, prefix)


def parse_address(text: str) -> tuple[int, int] | None:
    """Parse an address to its value and its width in bits; None if it is none."""
    if ":" in text:
        number = _ipv6(text)
        return None if number is None else (number, 128)
    parts = text.split(".")
    if len(parts) != 4:
        return None
    value = 0
    for part in parts:
        octet = _number(part)
        if octet is None or not 0 <= octet <= 255:
            return None
        value = value << 8 | octet
    return value, 32


def _number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) is not None else None


def _ipv6(text: str) -> int | None:
    address, percent, zone = text.partition("%")
    if percent and (not zone or "%" in zone):
        return None
    before, colon, last = address.rpartition(":")
    if "." in last:
        # The last two groups as an IPv4 address.
        if _DOTTED.fullmatch(last) is None:
            return None
        a, b, c, d = [int(octet) for octet in last.split(".")]
        address = f"{before}{colon}{a << 8 | b:x}:{c << 8 | d:x}"
    # One gap stands for all groups that are missing, and at least for one.
    head, gap, tail = address.partition("::")
    if _GROUPS.fullmatch(head) is None or _GROUPS.fullmatch(tail) is None:
        return None
    high = head.split(":") if head else []
    low = tail.split(":") if tail else []
    missing = 8 - len(high) - len(low)
    if missing < 1 if gap else missing != 0:
        return None
    number = 0
    for group in high:
        number = number << 16 | int(group, 16)
    number <<= 16 * missing
    for group in low:
        number = number << 16 | int(group, 16)
    return number

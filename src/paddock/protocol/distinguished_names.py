"""Distinguished names as text: which ids of the scheme `x509` are valid in an ACL.

Upstream takes whatever Java can read as a name, in a mixture of RFC 1779 and RFC 2253: attributes
divided by `,` or `;`, several of one level by `+`, each `keyword=value` with a known keyword or a
number; a value may be quoted, escaped or given as `#` and the digits of its encoding. Only whether
a name can be read matters here: ids are compared as they are written.

>>> is_distinguished_name("CN=alice,OU=Sales,O=Example")
True
>>> is_distinguished_name("alice")
False
"""

from __future__ import annotations

import re
from typing import Final

_KEYWORDS: Final = frozenset(
    {"CN", "C", "L", "S", "ST", "O", "OU", "T", "IP", "STREET", "DC", "DNQUALIFIER", "DNQ"}
    | {"SURNAME", "GIVENNAME", "INITIALS", "GENERATION", "EMAIL", "EMAILADDRESS", "UID"}
    | {"SERIALNUMBER"}
)
# Java strips everything up to the blank from a keyword.
_BLANKS: Final = "".join(map(chr, range(0x21)))
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]+)+", re.ASCII)
# A number longer than this is refused by Java, which has to encode it.
_NUMBER_BYTES_MAX: Final = 4096

_HEXADECIMAL: Final = "0123456789abcdefABCDEF"
_ESCAPABLE: Final = ',=\n+<>#;\\" '
_ESCAPABLE_IN_QUOTES: Final = ',=\n+<>#;\\"'
_TO_BE_ESCAPED: Final = ',+<>;"'
_ENDS: Final = ",+;"


def is_distinguished_name(text: str) -> bool:
    """Return whether Java could read this as a distinguished name. The empty one is fine."""
    if not text:
        return True
    for level in _divided(text, ",;"):
        for attribute in _divided(level, "+"):
            if not _is_attribute(attribute):
                return False
    return True


def _divided(text: str, dividers: str) -> list[str]:
    """Divide a name at what is neither quoted nor escaped."""
    parts: list[str] = []
    begin = 0
    is_quoted = False
    is_escaped = False
    for position, character in enumerate(text):
        if is_escaped:
            is_escaped = False
        elif character == "\\":
            is_escaped = True
        elif character == '"':
            is_quoted = not is_quoted
        elif character in dividers and not is_quoted:
            parts.append(text[begin:position])
            begin = position + 1
    parts.append(text[begin:])
    return parts


def _is_attribute(text: str) -> bool:
    keyword, equals, value = text.partition("=")
    if not equals or not _is_keyword(keyword.upper().strip(_BLANKS)):
        return False
    value = value.lstrip(" \n")
    if not value:
        return True
    if value[0] == "#":
        return _is_encoding(value[1:].rstrip(" \n"))
    if value[0] == '"':
        return _is_quoted(value)
    return _is_plain(value)


def _is_keyword(keyword: str) -> bool:
    if keyword in _KEYWORDS:
        return True
    number = keyword.removeprefix("OID.")
    if len(number) > _NUMBER_BYTES_MAX or _NUMBER.fullmatch(number) is None:
        return False
    first, second = number.split(".")[:2]
    return int(first) == 2 or (int(first) < 2 and int(second) < 40)


def _is_encoding(digits: str) -> bool:
    """Return whether it is one whole value in DER, in hexadecimal digits."""
    if len(digits) % 2 or any(one not in _HEXADECIMAL for one in digits):
        return False
    encoding = bytes.fromhex(digits)
    if len(encoding) < 2:
        return False
    length = encoding[1]
    begin = 2
    if length > 0x80:
        begin += length & 0x7F
        length = int.from_bytes(encoding[2:begin], "big")
        if begin > 6 or length < 0x80 or encoding[2] == 0:
            return False
    return length != 0x80 and begin + length == len(encoding)


def _is_quoted(value: str) -> bool:
    position = 1
    while position < len(value):
        character = value[position]
        if character == '"':
            return not value[position + 1 :].strip(" \n")
        if character == "\\":
            width = _escape(value, position, _ESCAPABLE_IN_QUOTES)
            if width == 0:
                return False
            position += width
        else:
            position += 1
    return False


def _is_plain(value: str) -> bool:
    position = 0
    while position < len(value):
        character = value[position]
        if character == "\\":
            width = _escape(value, position, _ESCAPABLE)
            if width == 0:
                return False
            position += width
        elif character in _TO_BE_ESCAPED:
            # Dividers have been taken out by now, so that one here stands where it may not.
            return False
        else:
            position += 1
    return True


def _escape(value: str, position: int, escapable: str) -> int:
    """Return the length of an escape, 0 if it is none: two digits, or what may be escaped."""
    first = value[position + 1 : position + 2]
    if first and first in _HEXADECIMAL:
        second = value[position + 2 : position + 3]
        return 3 if second and second in _HEXADECIMAL else 0
    return 2 if first and first in escapable else 0

"""Distinguished names as text: which ids of the scheme `x509` are valid in an ACL.

Upstream takes whatever Java can read as a name, in a mixture of RFC 1779 and RFC 2253: attributes
divided by `,` or `;`, several of one level by `+`, each `keyword=value` with a known keyword or a
number; a value may be quoted, escaped or given as `#` and the digits of its encoding. Ids are
compared as they are written.

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
# To upper case, also what Java takes for the letters of a keyword. It is written out: this decides
# whether an ACL is valid, and the tables of Unicode change with the version of Python.
_UPPER: Final = str.maketrans(
    {chr(lower): chr(lower - 0x20) for lower in range(ord("a"), ord("z") + 1)}
    | {"\u0131": "I", "\u017f": "S", "\u00df": "SS", "\ufb00": "FF", "\ufb01": "FI"}
    | {"\ufb02": "FL", "\ufb03": "FFI", "\ufb04": "FFL", "\ufb05": "ST", "\ufb06": "ST"}
)
# Java strips everything up to the blank from a keyword.
_BLANKS: Final = "".join(map(chr, range(0x21)))
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]+)+", re.ASCII)
# A number longer than this is refused by Java, which has to encode it.
_NUMBER_BYTES_MAX: Final = 4096

_ESCAPED: Final = r'\\(?:[0-9a-fA-F]{2}|[,=\n+<>#;\\"])'
# Escapes, each with what is plain after it. After every hundred the matcher forgets how it has
# come there: it would need memory for each of them, in a name that may have half a million.
_QUOTED: Final = rf'[^\\"]*+(?>(?:{_ESCAPED}[^\\"]*+){{1,100}})*'
_UNQUOTED: Final = rf'[^\\,+<>;"]*+(?>(?:(?:{_ESCAPED}|\\ )[^\\,+<>;"]*+){{1,100}})*'
# An attribute and its divider. No character fits two parts that follow each other, so none is
# looked at again and again.
_ATTRIBUTE: Final = re.compile(
    r'([^=\\",;+]*+)=[ \n]*+(?:#([0-9a-fA-F]*+)[ \n]*+'
    rf'|"{_QUOTED}"[ \n]*+|(?!#){_UNQUOTED})([,;+]|\Z)'
)


def is_distinguished_name(text: str) -> bool:
    """Return whether Java could read this as a distinguished name. The empty one is fine."""
    end = 0
    divider = text and ","
    while divider:
        match = _ATTRIBUTE.match(text, end)
        if match is None or not _is_keyword(match[1].translate(_UPPER).strip(_BLANKS)):
            return False
        if match[2] is not None and not _is_encoding(match[2]):
            return False
        divider, end = match[3], match.end()
    return True


def _is_keyword(keyword: str) -> bool:
    if keyword in _KEYWORDS:
        return True
    number = keyword.removeprefix("OID.")
    if len(number) > _NUMBER_BYTES_MAX or _NUMBER.fullmatch(number) is None:
        return False
    first, second = number.split(".")[:2]
    return int(first) == 2 or (int(first) < 2 and int(second) < 40)


def _is_encoding(digits: str) -> bool:
    """Return whether these are the digits of one whole value in DER."""
    if len(digits) < 4 or len(digits) % 2:
        return False
    encoding = bytes.fromhex(digits)
    length = encoding[1]
    begin = 2
    if length > 0x80:
        begin += length & 0x7F
        length = int.from_bytes(encoding[2:begin], "big")
        if begin > 6 or length < 0x80 or encoding[2] == 0:
            return False
    return length != 0x80 and begin + length == len(encoding)

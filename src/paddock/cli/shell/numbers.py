"""Numbers in commands, read as Java reads them.

Where upstream does not expect that there is none, it ends with a stack trace; here the last line of
that is the complaint, and the shell goes on.
"""

import re
from typing import Final

from paddock.cli.shell.errors import CommandError

_DECIMAL: Final = re.compile(r"[+-]?[0-9]+")
_HEX: Final = re.compile(r"[+-]?[0-9a-fA-F]+")
_DECODED: Final = re.compile(r"([+-]?)(0[xX]|#|0(?=.))?([0-9a-fA-F]+)")
_ANY_VERSION: Final = -1
# What no node has: it would take two thousand million writes.
_NO_VERSION: Final = 2**31 - 1
_BASES: Final = {"": 10, "0": 8}


def as_int(text: str) -> int | None:
    """Parse a number of 32 bits; return None if it is none."""
    return _bounded(text, 31, _DECIMAL, 10)


def as_long(text: str, base: int = 10) -> int | None:
    """Parse a number of 64 bits; return None if it is none."""
    return _bounded(text, 63, _DECIMAL if base == 10 else _HEX, base)


def version_of(text: str | None) -> int:
    """Parse a version; None stands for any."""
    if text is None:
        return _ANY_VERSION
    number = as_int(text)
    if number is None:
        raise _no_number(text)
    # Below -1 there is none either, but the client would not ask for it.
    return number if number >= _ANY_VERSION else _NO_VERSION


def decoded_int(text: str) -> int:
    """Parse a number in base 10, 8 or 16, such as `8`, `010`, `0x8` or `#8`."""
    match = _DECODED.fullmatch(text)
    if match is None:
        raise _no_number(text)
    sign, prefix, digits = match[1], match[2] or "", match[3]
    try:
        number = int(sign + digits, _BASES.get(prefix, 16))
    except ValueError:
        raise _no_number(text) from None
    if not -(2**31) <= number < 2**31:
        raise _no_number(text)
    return number


def _bounded(text: str, bits: int, pattern: re.Pattern[str], base: int) -> int | None:
    if pattern.fullmatch(text) is None:
        return None
    try:
        number = int(text, base)
    except ValueError:
        # Thousands of digits, which Python does not even read.
        return None
    return number if -(2**bits) <= number < 2**bits else None


def _no_number(text: str) -> CommandError:
    return CommandError(f'For input string: "{text}"')

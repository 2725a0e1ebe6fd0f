"""X.509 certificates: the subject, as ACLs have it, and the dates of validity.

An id of the scheme `x509` is the subject of a certificate as Java writes it, in its reading of RFC
2253, since existing ACLs hold exactly that. It depends on the encoding of each attribute, which
Python's `ssl` does not return, so the few parts that matter are read here from the DER. OpenSSL has
parsed and verified the certificate before.

`cryptography` would not shrink this: it hides the encoding of attributes, escapes unlike Java, and
as an extra it would leave this code for users without it, with a second way to write an identity.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

_SEQUENCE: Final = 0x30
_SET: Final = 0x31
_OBJECT_IDENTIFIER: Final = 0x06
_UTC_TIME: Final = 0x17
_GENERALIZED_TIME: Final = 0x18
_VERSION: Final = 0xA0

# The string types of ASN.1 that Java decodes as text, and how; all others are bytes to it.
_ENCODINGS: Final = {
    0x0C: "utf-8",  # UTF8String
    0x13: "ascii",  # PrintableString
    0x14: "latin-1",  # T61String
    0x16: "ascii",  # IA5String
    0x1B: "ascii",  # GeneralString
    0x1E: "utf-16-be",  # BMPString
}

# The attributes that RFC 2253 names; all others are written as their number.
_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_TO_ESCAPE: Final = ',=+<>#;"\\'


class CertificateError(ValueError):
    """This is not the encoding of a certificate."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """The parts of a certificate that count."""

    # The subject, as Java's `getSubjectX500Principal().getName()` returns it.
    subject: str
    not_before: datetime
    not_after: datetime


def read_certificate(encoded: bytes) -> Certificate:
    """Decode a certificate in DER. Raises CertificateError."""
    try:
        whole = next(_values(encoded)).expect(_SEQUENCE)
        fields = _values(next(_values(whole.content)).expect(_SEQUENCE).content)
        first = next(fields)
        if first.tag == _VERSION:
            first = next(fields)
        # That was the serial number. The algorithm, the issuer, the validity, the subject follow.
        next(fields), next(fields)
        not_before, not_after = _values(next(fields).expect(_SEQUENCE).content)
        subject = next(fields).expect(_SEQUENCE)
        return Certificate(_name(subject.content), _time(not_before), _time(not_after))
    except (StopIteration, IndexError, ValueError) as problem:
        raise CertificateError(f"not a certificate: {problem}") from None


@dataclass(frozen=True, slots=True)
class _Value:
    """One value in DER: its tag, its content, and both with the length between them."""

    tag: int
    content: bytes
    encoded: bytes

    def expect(self, tag: int) -> _Value:
        if self.tag != tag:
            raise CertificateError(f"tag 0x{self.tag:02x} where 0x{tag:02x} was expected")
        return self


def _values(encoded: bytes) -> Iterator[_Value]:
    position = 0
    while position < len(encoded):
        begin = position
        tag = encoded[position]
        length = encoded[position + 1]
        position += 2
        if length >= 0x80:
            count = length & 0x7F
            if not 1 <= count <= 4:
                raise CertificateError("a length that is not DER")
            length = int.from_bytes(encoded[position : position + count], "big")
            position += count
        if position + length > len(encoded):
            raise CertificateError("it is cut off")
        yield _Value(tag, encoded[position : position + length], encoded[begin : position + length])
        position += length


def _name(content: bytes) -> str:
    """Return a name: its levels in reverse, the attributes of a level in their order."""
    levels = [
        "+".join(_attribute(one) for one in _values(level.expect(_SET).content))
        for level in _values(content)
    ]
    return ",".join(reversed(levels))


def _attribute(attribute: _Value) -> str:
    kind, value = _values(attribute.expect(_SEQUENCE).content)
    number = _object_identifier(kind.expect(_OBJECT_IDENTIFIER).content)
    keyword = _KEYWORDS.get(number)
    encoding = _ENCODINGS.get(value.tag)
    if keyword is None or encoding is None:
        return f"{keyword or number}=#{value.encoded.hex()}"
    return f"{keyword}={_escaped(value.content.decode(encoding, 'replace'))}"


def _escaped(text: str) -> str:
    marked = ["\\" + one if one in _TO_ESCAPE else "\\00" if one == "\0" else one for one in text]
    # Blanks are escaped at the ends only, where they would be lost.
    begin = len(text) - len(text.lstrip(" \r"))
    end = max(begin, len(text.rstrip(" \r")))
    blanks = ["\\" + one for one in marked]
    return "".join([*blanks[:begin], *marked[begin:end], *blanks[end:]])


def _object_identifier(content: bytes) -> str:
    numbers: list[int] = []
    number = 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]]))


def _time(value: _Value) -> datetime:
    text = value.content.decode("ascii")
    if value.tag == _UTC_TIME:
        # Two digits of the year, from 1950 on.
        text = ("19" if text[:2] >= "50" else "20") + text
    elif value.tag != _GENERALIZED_TIME:
        raise CertificateError("a time of an unknown kind")
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)

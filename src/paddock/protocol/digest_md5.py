"""DIGEST-MD5 (RFC 2831), as ZooKeeper's clients and servers speak it: what both sides compute.

    server   realm="zk-sasl-md5",nonce="…",charset=utf-8,algorithm=md5-sess
    client   charset=utf-8,username="bob",realm="zk-sasl-md5",nonce="…",nc=00000001,cnonce="…",
             digest-uri="zookeeper/zk-sasl-md5",qop=auth,response=…
    server   rspauth=…

The rules:

* The secret is the MD5 of user, realm and password, and proves as much as the password itself.
  Each of the three is in Latin-1 if that has all of its characters, and else in UTF-8.
* Both sides prove that they know the secret, by nonces of both. Nothing that follows is signed.
* A message is a list of directives, `name=value`, in any order. A value is a token or quoted, with
  backslashes. Elements may be empty, and directives that nobody knows are passed over.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

REALM: Final = "zk-sasl-md5"
"""The name of every ZooKeeper server, and of the realm of its users."""
SERVICE: Final = "zookeeper"

# RFC 2831: the longest message.
MESSAGE_BYTES_MAX: Final = 4096
# It knows 12 of them for a client, and others may come beside these.
_DIRECTIVES_MAX: Final = 32

_SPACE: Final = r"[ \t\r\n]*+"
# A directive with the empty elements before it, up to the comma after it. No character fits two
# of its parts that follow each other, so none is looked at again and again.
_DIRECTIVE: Final = re.compile(
    (
        rf"[ \t\r\n,]*+(?:([!#$%&'*+.^_`|~0-9A-Za-z-]++){_SPACE}={_SPACE}"
        rf'(?:"([^"\\]*+(?:\\.[^"\\]*+)*)"|([^\x00-\x20\x7f",;=]++)){_SPACE})?(?:,|\Z)'
    ).encode(),
    re.DOTALL,
)
_ESCAPED: Final = re.compile(rb"\\(.)", re.DOTALL)


class DirectiveError(ValueError):
    """A message is not a list of directives."""


def read_directives(message: bytes) -> dict[str, bytes]:
    """Return the values of a message by name, in lower case. Raises DirectiveError."""
    if len(message) > MESSAGE_BYTES_MAX:
        raise DirectiveError("the message is too long")
    found: dict[str, bytes] = {}
    at = 0
    while at < len(message):
        match = _DIRECTIVE.match(message, at)
        if match is None:
            raise DirectiveError("the message is not a list of directives")
        at = match.end()
        name, quoted, token = match.groups()
        if name is None:
            continue
        key = name.decode("ascii").lower()
        if key in found:
            raise DirectiveError("a directive comes twice")
        if len(found) == _DIRECTIVES_MAX:
            raise DirectiveError("the message has too many directives")
        found[key] = token if quoted is None else _ESCAPED.sub(rb"\1", quoted)
    return found


def quoted(value: bytes) -> bytes:
    """Return a value as it stands in a message."""
    return b'"' + value.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


def secret_of(user: str, password: str, realm: str = REALM) -> bytes:
    """Return the secret of a user: 16 bytes."""
    return _md5(b":".join((_octets(user), _octets(realm), _octets(password))))


class Proof:
    """What the two sides prove to each other, in one conversation."""

    def __init__(
        self,
        secret: bytes,
        nonce: bytes,
        client_nonce: bytes,
        uri: bytes,
        authorization: bytes | None = None,
    ) -> None:
        session = b":".join((secret, nonce, client_nonce))
        if authorization is not None:
            session += b":" + authorization
        self._key = _hex(session)
        self._middle = b":".join((b"", nonce, b"00000001", client_nonce, b"auth", b""))
        self._uri = uri

    def of_client(self) -> bytes:
        """Return the value of `response`."""
        return self._value(b"AUTHENTICATE:")

    def of_server(self) -> bytes:
        """Return the value of `rspauth`."""
        return self._value(b":")

    def _value(self, prefix: bytes) -> bytes:
        return _hex(self._key + self._middle + _hex(prefix + self._uri))


def _octets(text: str) -> bytes:
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8")


def _md5(data: bytes) -> bytes:
    # A protocol of 2000: nothing but this conversation rests on it.
    return hashlib.md5(data, usedforsecurity=False).digest()


def _hex(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).hexdigest().encode()

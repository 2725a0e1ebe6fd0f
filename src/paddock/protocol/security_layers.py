"""The end of a conversation by GSSAPI (RFC 4752): what both sides agree on once they are proved.

    server   1 byte: the security layers that it offers; 3 bytes: the longest message it takes
    client   1 byte: the layer that it wants; 3 bytes: the same; its name, or nothing

Each of the two goes through the wrap of GSSAPI, which proves that its sender has the session's key:
so a token that somebody has recorded and sends once more leads nowhere.

ZooKeeper has no security layer: later requests are neither signed nor encrypted. For that
there is TLS.
"""

from __future__ import annotations

from typing import Final

NO_LAYER: Final = 1
_HEADER_BYTES: Final = 4
# How the first token begins: an application tag of ASN.1, its length, and the mechanism.
_TOKEN_TAG: Final = 0x60
# 1.2.840.113554.1.2.2: Kerberos 5.
_KERBEROS: Final = bytes.fromhex("06092a864886f712010202")


class LayerError(ValueError):
    """A message is not understood, or wants a security layer."""


def is_kerberos(token: bytes) -> bool:
    """Return whether a conversation that begins with this token is one by Kerberos."""
    if len(token) < 2 or token[0] != _TOKEN_TAG:
        return False
    # The length: a byte, or how many bytes it has.
    start = 2 if token[1] < 0x80 else 2 + (token[1] & 0x7F)
    return token[start : start + len(_KERBEROS)] == _KERBEROS


def offer() -> bytes:
    """Return what the server offers: no layer. Without one, the longest message has to be 0."""
    return bytes((NO_LAYER, 0, 0, 0))


def read_offer(message: bytes) -> None:
    """Check what the server offers. Raises LayerError."""
    if len(message) != _HEADER_BYTES:
        raise LayerError(f"the offer of security layers has {len(message)} bytes, and not 4")
    if not message[0] & NO_LAYER:
        raise LayerError("the server insists on a security layer, which ZooKeeper does not have")


def choice(name: str) -> bytes:
    """Return what the client wants: no layer, and to act as `name`."""
    return bytes((NO_LAYER, 0, 0, 0)) + name.encode()


def read_choice(message: bytes) -> str:
    """Return as whom the client wants to act, or "". Raises LayerError."""
    if len(message) < _HEADER_BYTES:
        raise LayerError(f"the choice of a security layer has {len(message)} bytes")
    if message[0] != NO_LAYER:
        raise LayerError("the client wants a security layer, which was not offered")
    try:
        return message[_HEADER_BYTES:].decode()
    except UnicodeDecodeError:
        raise LayerError("the name that the client wants to act as is not UTF-8") from None

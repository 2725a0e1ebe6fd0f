"""Permissions, identities and access control lists: as records, on the wire and as text.

An identity is a scheme and an id within it. An ACL is a list of identities with the permissions
of each. Its order means nothing, and what it does not grant is refused.

As text an entry is `scheme:id:permissions`. An id may have colons and commas in it, as digests and
the names in certificates do: the scheme ends at the first colon, the permissions begin behind the
last one.

>>> digest_id("alice:secret")
'alice:aYXlLOpEooaV1cRAvUL1fp9Qt7E='
>>> format_acl(parse_acl("world:anyone:rc"))
'world:anyone:cr'
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from librt.strings import BytesWriter, write_i32_be

from paddock.protocol.jute import DecodeError, Reader, write_text

READ: Final = 1
WRITE: Final = 2
CREATE: Final = 4
DELETE: Final = 8
ADMIN: Final = 16
ALL: Final = 31

# In the order in which upstream prints them.
PERMISSION_LETTERS: Final = {"c": CREATE, "d": DELETE, "r": READ, "w": WRITE, "a": ADMIN}
# Shown in the place of a digest without ADMIN on the node.
_MASK: Final = ":x"


@dataclass(frozen=True, slots=True)
class Identity:
    """A client, as one authentication scheme knows it."""

    scheme: str
    id: str

    def __reduce__(self) -> tuple[type[Identity], tuple[str, str]]:
        # A compiled frozen class cannot be copied or pickled otherwise.
        return Identity, (self.scheme, self.id)

    def write(self, writer: BytesWriter) -> None:
        write_text(writer, self.scheme)
        write_text(writer, self.id)


@dataclass(frozen=True, slots=True)
class ACL:
    """One entry of a node's ACL: the permissions of one identity."""

    permissions: int
    identity: Identity

    def __reduce__(self) -> tuple[type[ACL], tuple[int, Identity]]:
        return ACL, (self.permissions, self.identity)

    def __hash__(self) -> int:
        # Compiled, a third of what a dataclass would make.
        return hash((self.permissions, self.identity.scheme, self.identity.id))

    def write(self, writer: BytesWriter) -> None:
        write_i32_be(writer, self.permissions)
        self.identity.write(writer)


ANYONE: Final = Identity("world", "anyone")
CREATOR: Final = Identity("auth", "")
SUPER: Final = Identity("super", "")
# Typed as tuples of any length, since they are compared by identity: compiled code copies a tuple
# of a fixed length.
OPEN: Final[tuple[ACL, ...]] = (ACL(ALL, ANYONE),)
# What users call it.
OPEN_TO_ALL: Final = OPEN
READ_ONLY: Final[tuple[ACL, ...]] = (ACL(READ, ANYONE),)
CREATOR_ALL: Final[tuple[ACL, ...]] = (ACL(ALL, CREATOR),)


def is_anyone(identity: Identity) -> bool:
    """Return whether it is ANYONE; compiled, much faster than `==`."""
    return identity.scheme == "world" and identity.id == "anyone"


def write_acls(writer: BytesWriter, acls: tuple[ACL, ...] | list[ACL]) -> None:
    write_i32_be(writer, len(acls))
    for acl in acls:
        acl.write(writer)


def encode_acls(acls: tuple[ACL, ...] | list[ACL]) -> bytes:
    writer = BytesWriter()
    write_acls(writer, acls)
    return writer.getvalue()


# Compared by identity: an equal ACL in a request is just invalid.
NOT_UNDERSTOOD: Final = ACL(0, Identity("", ""))
OPEN_WIRE: Final = encode_acls(OPEN)
# The open ACL of a request, the same list each time: it must not be changed.
OPEN_LIST: Final[list[ACL | None]] = [*OPEN]
# Compared by identity, too.
TOO_LONG: Final[list[ACL | None]] = [None]


def read_acls(reader: Reader) -> list[ACL | None] | None:
    """Read a vector of ACLs, which may be null. An invalid ACL is None.

    As upstream, a null id is an empty one for `auth`, NOT_UNDERSTOOD for the schemes that look at
    it, and an invalid ACL for all others. A vector with more entries than the reader allows is
    TOO_LONG and is not decoded.
    """
    open_end = reader.position + len(OPEN_WIRE)
    if open_end <= reader.end and reader.data[reader.position : open_end] == OPEN_WIRE:
        # Nearly every create has this one.
        reader.position = open_end
        return OPEN_LIST
    count = reader.int32()
    if count == -1:
        return None
    if count > reader.acl_entries_max:
        for _ in range(count):
            reader.int32()
            reader.skip()
            reader.skip()
        return TOO_LONG
    acls: list[ACL | None] = []
    for _ in range(count):
        permissions = reader.int32()
        scheme = reader.text()
        identifier = reader.text()
        if identifier is None:
            if scheme in ("world", "digest", "ip"):
                acls.append(NOT_UNDERSTOOD)
                continue
            if scheme == "auth":
                identifier = ""
        if scheme is None or identifier is None:
            acls.append(None)
        else:
            acls.append(ACL(permissions, Identity(scheme, identifier)))
    return acls


def read_whole_acls(reader: Reader) -> list[ACL]:
    """Read a vector of ACLs without nulls, as a server sends it."""
    acls = read_acls(reader)
    if acls is None:
        raise DecodeError("null ACL")
    whole = [acl for acl in acls if acl is not None and acl is not NOT_UNDERSTOOD]
    if len(whole) != len(acls):
        raise DecodeError("an ACL without an identity")
    return whole


def write_identities(writer: BytesWriter, identities: tuple[Identity, ...]) -> None:
    write_i32_be(writer, len(identities))
    for identity in identities:
        identity.write(writer)


def encode_identities(identities: tuple[Identity, ...]) -> bytes:
    writer = BytesWriter()
    write_identities(writer, identities)
    return writer.getvalue()


def read_identities(reader: Reader) -> tuple[Identity, ...]:
    """Read a vector of identities without nulls, as the log has it."""
    count = reader.int32()
    try:
        return tuple(
            Identity(reader.string().decode(), reader.string().decode()) for _ in range(count)
        )
    except UnicodeDecodeError as problem:
        raise DecodeError(f"an identity that is not UTF-8: {problem}") from None


def digest_id(credentials: str) -> str:
    """Return the id of the digest scheme for `user:password`, as existing ACLs hold it."""
    user = credentials.split(":", 1)[0]
    digest = hashlib.sha1(credentials.encode("utf-8", "replace"), usedforsecurity=False).digest()
    return f"{user}:{b64encode(digest).decode()}"


def letters(permissions: int) -> str:
    """Return permissions as letters, such as `cdrwa` for all."""
    return "".join([letter for letter, bit in PERMISSION_LETTERS.items() if permissions & bit])


def format_acl(acl: ACL) -> str:
    """Return an entry as `scheme:id:permissions`."""
    return f"{acl.identity.scheme}:{acl.identity.id}:{letters(acl.permissions)}"


def parse_acl(text: str) -> ACL:
    """Parse `scheme:id:permissions`. No letters are no permissions. Raises ValueError."""
    scheme, colon, rest = text.partition(":")
    identifier, second, given = rest.rpartition(":")
    if not (scheme and colon and second):
        raise ValueError(f"{text!r} is not scheme:id:permissions, such as world:anyone:r")
    permissions = 0
    for letter in given:
        if letter not in PERMISSION_LETTERS:
            raise ValueError(f"{text!r}: permissions are of {', '.join(PERMISSION_LETTERS)}")
        permissions |= PERMISSION_LETTERS[letter]
    return ACL(permissions, Identity(scheme, identifier))


def without_secrets(acls: Iterable[ACL]) -> list[ACL]:
    """Return an ACL as a server shows it without ADMIN on the node: digests are masked."""
    return [
        ACL(entry.permissions, Identity("digest", re.sub(":.*", _MASK, entry.identity.id)))
        if entry.identity.scheme == "digest"
        else entry
        for entry in acls
    ]


def is_masked(acls: Iterable[ACL]) -> bool:
    """Return whether a server has masked a digest in the ACL."""
    return any(
        entry.identity.scheme == "digest" and entry.identity.id.endswith(_MASK) for entry in acls
    )

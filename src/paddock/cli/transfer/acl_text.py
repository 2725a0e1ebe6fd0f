"""An ACL as text: `digest:alice:aYXlLOpE…=:cdrwa`, as the shell writes it.

What stands before the first colon is the scheme, what stands behind the last one the permissions;
the id between may have colons of its own. The order of an ACL means nothing, so it is sorted: equal
ones look equal.
"""

from collections.abc import Iterable
from typing import Final

from paddock.protocol.acl import ACL, ADMIN, CREATE, DELETE, READ, WRITE, Identity

_LETTERS: Final = {"c": CREATE, "d": DELETE, "r": READ, "w": WRITE, "a": ADMIN}
# What a server shows in the place of a digest to whoever may not ADMIN the node.
_HIDDEN: Final = ":x"


def to_text(acl: Iterable[ACL]) -> list[str]:
    """Give an ACL as text, sorted."""
    return sorted(_entry_to_text(entry) for entry in set(acl))


def from_text(entries: Iterable[str]) -> tuple[ACL, ...]:
    """Read an ACL from text. Raises ValueError for what is none."""
    return tuple(_entry_from_text(entry) for entry in entries)


def is_hidden(acl: Iterable[ACL]) -> bool:
    """Tell whether a part of it was not shown to us."""
    return any(
        entry.identity.scheme == "digest" and entry.identity.id.endswith(_HIDDEN) for entry in acl
    )


def as_shown(acl: Iterable[ACL]) -> set[ACL]:
    """Give an ACL as it is shown to whoever may not ADMIN the node: without its digests."""
    return {
        ACL(entry.permissions, Identity("digest", entry.identity.id.partition(":")[0] + _HIDDEN))
        if entry.identity.scheme == "digest"
        else entry
        for entry in acl
    }


def _entry_to_text(entry: ACL) -> str:
    letters = "".join(letter for letter, bit in _LETTERS.items() if entry.permissions & bit)
    return f"{entry.identity.scheme}:{entry.identity.id}:{letters}"


def _entry_from_text(text: str) -> ACL:
    scheme, colon, rest = text.partition(":")
    identifier, other_colon, letters = rest.rpartition(":")
    if not (scheme and colon and other_colon):
        raise ValueError(f"{text!r} is not scheme:id:permissions")
    if not set(letters) <= _LETTERS.keys():
        raise ValueError(f"{text!r} has other permissions than {''.join(_LETTERS)}")
    return ACL(sum(_LETTERS[letter] for letter in set(letters)), Identity(scheme, identifier))

"""ACLs as they are written on the command line: `scheme:id:permissions`, as `world:anyone:cdrwa`.

An id may have colons and commas in it, as digests and the names in certificates do, so an entry is
one argument: the scheme ends at the first colon, and the permissions begin behind the last one.
"""

from typing import Final

import click

from paddock.protocol.acl import ACL, ADMIN, CREATE, DELETE, READ, WRITE, Identity

_LETTERS: Final = {"c": CREATE, "d": DELETE, "r": READ, "w": WRITE, "a": ADMIN}


def parse_acl(text: str) -> ACL:
    """Read an entry; raises BadParameter for what is none."""
    scheme, colon, rest = text.partition(":")
    identifier, second, letters = rest.rpartition(":")
    if not (scheme and colon and second and letters) or not set(letters) <= set(_LETTERS):
        raise click.BadParameter(
            f"{text!r} is not SCHEME:ID:PERMISSIONS, such as world:anyone:cdrwa",
            param_hint="--acl",
        )
    permissions = 0
    for letter in letters:
        permissions |= _LETTERS[letter]
    return ACL(permissions, Identity(scheme, identifier))


def acl_text(acl: ACL) -> str:
    """Write an entry as it can be read again."""
    letters = "".join(letter for letter, bit in _LETTERS.items() if acl.permissions & bit)
    return f"{acl.identity.scheme}:{acl.identity.id}:{letters}"

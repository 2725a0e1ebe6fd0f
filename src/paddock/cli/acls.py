"""ACLs on the command line: `scheme:id:permissions`, such as `world:anyone:cdrwa`.

An id may have colons and commas in it, as digests and the names in certificates do, so that an
entry is one argument: the scheme ends at the first colon, the permissions begin after the last.
"""

import re
from typing import Final

import click

from paddock.protocol.acl import ACL, Identity, digest_id, parse_acl

# A user and the base64 text of a SHA-1.
_DIGEST: Final = re.compile(r"[^:]*:[0-9A-Za-z+/]{27}=")


def given_acl(entry: str) -> ACL:
    """Parse an entry; raises BadParameter.

    A digest entry with a password instead of its hash would be a node that nobody can use. The
    password is hashed, and stderr says so.
    """
    try:
        acl = parse_acl(entry)
    except ValueError:
        acl = ACL(0, Identity("", ""))
    if not acl.permissions:
        raise click.BadParameter(
            f"{entry!r} is not SCHEME:ID:PERMISSIONS, such as world:anyone:cdrwa", param_hint="ACL"
        )
    scheme, id = acl.identity.scheme, acl.identity.id
    if scheme != "digest" or ":" not in id or _DIGEST.fullmatch(id):
        return acl
    hashed = digest_id(id)
    user = id.partition(":")[0]
    click.echo(f"paddock: digest:{user}: the password is stored as its hash, {hashed}", err=True)
    return ACL(acl.permissions, Identity(scheme, hashed))

"""Which ACLs would keep us from finishing an import, and what to do about it.

A node whose ACL does not let us create children gets an additional entry for ourselves until its
children exist. An interrupted import leaves the entry; the next one recognises and removes it.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from paddock.client.client import Client
from paddock.errors import RequestError
from paddock.protocol.acl import ACL, ADMIN, ANYONE, CREATE, CREATOR, Identity, digest_id

# The permissions of the entry for ourselves: an unusual combination, so that it is recognised.
_MEANWHILE: Final = CREATE | ADMIN


class Rights:
    """Who we are, as ACLs see it."""

    def __init__(self, ours: Iterable[Identity], ourselves: Identity) -> None:
        self._ours = frozenset(ours)
        self._entry = ACL(_MEANWHILE, ourselves)

    def may_create(self, acl: Iterable[ACL]) -> bool:
        """Return whether the ACL surely lets us create children."""
        return any(entry.permissions & CREATE and entry.identity in self._ours for entry in acl)

    def meanwhile(self, acl: Sequence[ACL]) -> tuple[ACL, ...]:
        """Return the temporary ACL of a node whose children are still to be created."""
        return (*acl, self._entry)

    @staticmethod
    def is_unfinished(found: Iterable[ACL], wanted: Iterable[ACL]) -> bool:
        """Return whether an ACL is the temporary one of an interrupted import."""
        more = set(found) - set(wanted)
        return (
            bool(more)
            and set(wanted) <= set(found)
            and all(entry.permissions == _MEANWHILE for entry in more)
        )


async def rights_of(
    client: Client, credentials: Iterable[tuple[str, str]], *, has_sasl: bool = False
) -> Rights:
    """Find out who we are; the credentials are what we have said about it."""
    ours = {Identity("digest", digest_id(id)) for scheme, id in credentials if scheme == "digest"}
    try:
        told = {Identity(scheme, user) for scheme, user in await client.who_am_i()}
    except RequestError:
        # Servers before 3.7 do not tell.
        told = set()
    # Of a digest the server tells the user, and not what ACLs hold.
    ours |= {one for one in told if one.scheme != "digest"}
    addresses = [one for one in ours if one.scheme == "ip"]
    is_known = has_sasl or len(ours) > len(addresses)
    ourselves = CREATOR if is_known else next(iter(addresses), ANYONE)
    return Rights({ANYONE, *ours}, ourselves)

"""The blocking twin of `paddock.recipes.groups.membership`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.recipes.groups.membership import MemberListener
from paddock.recipes.groups.membership import Membership as AsyncMembership
from paddock.recipes.groups.roster import Member, MembershipEvent
from paddock.sync.bridge import Twin
from paddock.sync.client import Client
from paddock.sync.scopes import Scope
from paddock.sync.streams import Stream


class Membership(Twin[AsyncMembership]):
    """The members at a path, of which we may be one.

        membership = Membership(client, "/workers")
        with membership.joined("worker 7", b"idle") as mates:
            membership.update(b"busy")
            print([one.payload for one in membership.members()])  # [b'busy']

    A `Membership` object is one member at most.
    """

    def __init__(self, client: Client, path: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        self._make("client", client, lambda bridge: AsyncMembership(client._inner, path, acl=acl))

    @property
    def is_member(self) -> bool:
        """Whether we surely are a member, at this moment."""
        return self._inner.is_member

    def join(
        self,
        name: str,
        payload: bytes = b"",
        *,
        on_connect: MemberListener | None = None,
        on_disconnect: MemberListener | None = None,
    ) -> list[Member]:
        """Become a member; return the mates that were there before, in the order they came.

        While we are a member, `on_connect` is called with every member that joins after us, and
        `on_disconnect` with every member that leaves: a listener is called at once, in order. It
        may make calls. What it raises is logged.

        Waits as long as another member has the name. Raises SessionExpiredError; and LockStateError
        if we are a member already.
        """
        return self._bridge.call(
            self._inner.join,
            name,
            payload,
            on_connect=self._bridge.callbacks.relay(on_connect),
            on_disconnect=self._bridge.callbacks.relay(on_disconnect),
        )

    def joined(
        self,
        name: str,
        payload: bytes = b"",
        *,
        on_connect: MemberListener | None = None,
        on_disconnect: MemberListener | None = None,
    ) -> Scope[list[Member]]:
        """Join for the length of a scope, whose value is the mates that were there before.

            with membership.joined("worker 7") as mates:
                print(membership.is_member)  # True

        When we are a member no more, it tells its body when that leaves and raises GrantLostError.
        See also `join`.
        """
        return Scope(
            self._bridge.portal,
            self._bridge.run(
                self._inner.joined,
                name,
                payload,
                on_connect=self._bridge.callbacks.relay(on_connect),
                on_disconnect=self._bridge.callbacks.relay(on_disconnect),
            ),
        )

    def leave(self) -> None:
        """Leave the group; when this returns, our node is gone.

        While the connection is lost it waits for the next one, but not longer than the session
        surely lives. If it is given up, the node is deleted all the same. Raises LockStateError if
        we have not joined, but not if the membership was lost.
        """
        self._bridge.call(self._inner.leave)

    def wait_left(self) -> None:
        """Wait until we have left, or the membership is lost."""
        self._bridge.call(self._inner.wait_left)

    def update(self, payload: bytes) -> None:
        """Change our payload.

        Raises GrantLostError if we are a member no more, and LockStateError if we have not joined.
        """
        self._bridge.call(self._inner.update, payload)

    def members(self) -> list[Member]:
        """Return all members, in the order in which they came."""
        return self._bridge.call(self._inner.members)

    def events(self) -> Stream[MembershipEvent]:
        """Return a stream of all members, as PRESENT, then of who joins, leaves, or changes.

            membership.join("worker 7")
            for event in membership.events():
                print(event.change, event.member.name)  # present worker 7
                break

        Intermediate changes may be left out, and so may a member that comes and goes at once. But
        JOINED and LEFT alternate for each member. The stream survives lost connections, and raises
        SessionExpiredError when the session is over. It does not need a `join`.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.events))

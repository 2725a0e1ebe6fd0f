"""The blocking twin of `paddock.recipes.groups.membership`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.recipes.groups.membership import MemberListener
from paddock.recipes.groups.membership import Membership as AsyncMembership
from paddock.recipes.groups.roster import Member, MembershipEvent
from paddock.sync.bridge import Twin, bridge_of
from paddock.sync.client import Client
from paddock.sync.scopes import Scope
from paddock.sync.streams import Stream


class Membership(Twin[AsyncMembership]):
    """Those who are at a path, of whom we may be one.

        membership = Membership(client, "/workers")
        with membership.joined("worker 7", b"idle") as mates:
            membership.update(b"busy")
            print([one.payload for one in membership.members()])  # [b'busy']

    It is one member at most: whoever wants to be two makes two.
    """

    def __init__(self, client: Client, path: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        bridge = bridge_of("client", client)
        super().__init__(bridge, bridge.run(AsyncMembership, client._inner, path, acl=acl), client)

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
        """Become a member; give the mates who were there before, in the order in which they came.

        While we are a member, `on_connect` is called with everybody who joins after us, and
        `on_disconnect` with everybody who leaves: a listener is called at once, in order. It may
        make calls. What it raises is logged.

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
        """Be a member in a scope, which has the mates who were there before.

            with membership.joined("worker 7") as mates:
                print(membership.is_member)  # True

        When we are a member no more, it tells its body when that leaves and raises GrantLostError.
        For the rest see `join`.
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
        """Be a member no more; when this returns, nobody sees us any more.

        While the connection is lost it waits for the next one, but not longer than the session
        surely lives. If it is given up, the node is deleted all the same. Raises LockStateError if
        we have not joined; that the membership was lost meanwhile is fine.
        """
        self._bridge.call(self._inner.leave)

    def wait_left(self) -> None:
        """Wait until we are a member no more: we have left, or the membership is lost."""
        self._bridge.call(self._inner.wait_left)

    def update(self, payload: bytes) -> None:
        """Say something else about us to everybody.

        Raises GrantLostError if we are a member no more, and LockStateError if we have not joined.
        """
        self._bridge.call(self._inner.update, payload)

    def members(self) -> list[Member]:
        """Give everybody who is there now, in the order in which they came."""
        return self._bridge.call(self._inner.members)

    def events(self) -> Stream[MembershipEvent]:
        """Give everybody who is there, as PRESENT, and then who joins, leaves, or changes.

            membership.join("worker 7")
            for event in membership.events():
                print(event.change, event.member.name)  # present worker 7
                break

        Changes in quick succession may come as one: of who comes and goes again at once nothing may
        be heard. But who was told of as there is there until it is told to have left, and whoever
        left and came again has done both. The stream goes on over lost connections, and raises
        SessionExpiredError when the session is over. Members need not be joined to look.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.events))

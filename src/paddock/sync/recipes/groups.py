"""The blocking twin of `paddock.recipes.groups`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paddock import recipes
from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.recipes import Contender, Member, MemberListener, MembershipEvent, Share
from paddock.sync.bridge import ScopedTwin, Twin
from paddock.sync.client import Client
from paddock.sync.recipes.locks import Grant
from paddock.sync.scopes import Scope
from paddock.sync.streams import Stream


class Barrier(Twin[recipes.Barrier]):
    """A gate: closed while its node exists.

        gate = Barrier(client, "/barriers/start")
        gate.close()
        print(gate.is_open())  # False
        gate.open()
        gate.wait()

    It stays closed when the session that has closed it ends. Closing a closed one does nothing, nor
    does opening an open one.
    """

    def __init__(self, client: Client, path: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        self._make("client", client, lambda bridge: recipes.Barrier(client._inner, path, acl=acl))

    def is_open(self) -> bool:
        """Return whether it is open now."""
        return self._bridge.call(self._inner.is_open)

    def close(self) -> None:
        """Close it, if it is open."""
        self._bridge.call(self._inner.close)

    def open(self) -> None:
        """Open it, if it is closed: all waiters go on."""
        self._bridge.call(self._inner.open)

    def wait(self) -> None:
        """Wait until it is open; it may be closed again by then. Raises SessionExpiredError."""
        self._bridge.call(self._inner.wait)


class DoubleBarrier(ScopedTwin[recipes.DoubleBarrier]):
    """One member of a group that begins together and ends together, any number of times.

        barrier = DoubleBarrier(client, "/barriers/step", 3)
        barrier.enter()  # returns when three have come
        barrier.leave()  # returns when all three have left

    All members of a group use the same size. As a rule the scope, `with barrier`, is better, since
    it tells its body when that leaves when we are not a member any more; if its body fails, it
    leaves without waiting.
    """

    def __init__(
        self, client: Client, path: str, size: int, *, acl: Sequence[ACL] = OPEN_TO_ALL
    ) -> None:
        self._make(
            "client",
            client,
            lambda bridge: recipes.DoubleBarrier(client._inner, path, size, acl=acl),
        )

    @property
    def is_entered(self) -> bool:
        """Whether we have entered, and are surely a member, at this moment."""
        return self._inner.is_entered

    def enter(self) -> None:
        """Wait until as many members have come as the size says.

        Raises SessionExpiredError; and LockStateError if it was entered already, or if our node was
        deleted while we waited.
        """
        self._bridge.call(self._inner.enter)

    def leave(self) -> None:
        """Wait until all members of our round have left or died.

        Raises LockStateError if it was not entered; GrantLostError if we were not a member any
        more, so that the others may have left without us; SessionExpiredError.
        """
        self._bridge.call(self._inner.leave)


class Membership(Twin[recipes.Membership]):
    """The members at a path, of which we may be one.

        membership = Membership(client, "/workers")
        with membership.joined("worker 7", b"idle") as mates:
            membership.update(b"busy")
            print([one.payload for one in membership.members()])  # [b'busy']

    A `Membership` object is one member at most.
    """

    def __init__(self, client: Client, path: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        self._make(
            "client", client, lambda bridge: recipes.Membership(client._inner, path, acl=acl)
        )

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
        """Yield all members, as PRESENT, then who joins, leaves, or changes.

            membership.join("worker 7")
            for event in membership.events():
                print(event.change, event.member.name)  # present worker 7
                break

        Intermediate changes may be left out, and so may a member that comes and goes at once. But
        JOINED and LEFT alternate for each member. The stream survives lost connections, and raises
        SessionExpiredError when the session is over. It does not need a `join`.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.events))


class Partitioner(ScopedTwin[recipes.Partitioner]):
    """One member of a group that divides a set of items.

        with Partitioner(client, "/shards", ["a", "b"]) as partitioner:
            for share in partitioner.shares():
                print(partitioner.grant("a").is_held)  # True
                break

    All members use the same items; if they do not, those of the oldest member count. Others read
    `data` in `members`.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        items: Iterable[str],
        *,
        data: bytes = b"",
        acl: Sequence[ACL] = OPEN_TO_ALL,
    ) -> None:
        self._make(
            "client",
            client,
            lambda bridge: recipes.Partitioner(client._inner, path, items, data=data, acl=acl),
        )

    @property
    def items(self) -> frozenset[str]:
        """The items of the last share."""
        return self._inner.items

    def grant(self, item: str) -> Grant:
        """Return the grant of an item that is ours, or about to be let go.

        Raises LockStateError if it is neither.
        """
        return Grant._of(self._bridge, self._bridge.run(self._inner.grant, item))

    def shares(self) -> Stream[Share]:
        """Return a stream of our shares; requesting the next one lets go of removed items.

            for share in partitioner.shares():
                print(sorted(share.gained), sorted(share.removed))  # ['a', 'b'] []
                break

        The first share comes once we have items, or there is none for us. A member that does not
        request the next share keeps its items until the scope ends, which ends the stream, too.
        Raises GrantLostError when we are a member no more, and LockStateError if there is another
        such stream, or outside the scope.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.shares))

    def wait_settled(self) -> None:
        """Wait until our share is what the present division says.

        Another task has to read `shares` meanwhile. Other members may not have settled yet. Raises
        GrantLostError when we are a member no more.
        """
        self._bridge.call(self._inner.wait_settled)

    def members(self) -> list[Contender]:
        """Return all members, in the order in which they came."""
        return self._bridge.call(self._inner.members)

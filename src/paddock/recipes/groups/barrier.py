"""Barriers: a gate that opens for all, and a double barrier for a group that works together.

    barrier = DoubleBarrier(client, "/barriers/step", 3)
    async with barrier:
        print("all three are here")
    print("all three are done")

A `Barrier` is closed while its node exists, and all waiters go on when it is opened.

A `DoubleBarrier` lets its members begin together and end together. Guaranteed is:

* It opens by one transaction, which fails unless all admitted members are there at that moment. So
  it never opens for fewer than its size, and members that died are not counted.
* The admitted members are a round. Further members, and those that come during a round, wait until
  that round is over, and are admitted to the next one in FIFO order.
* `leave` returns when all members of the round have left or died: the dead block nobody.

Each waiter reads the state again when it is woken. An arrival wakes nobody, the opening wakes all
waiters, and a departure wakes one at most, except the last.

* Suspension (the connection is lost): members stay where they are, as long as the session lives.
* Expiry, or nothing heard for a session timeout: a waiter gets SessionExpiredError. Within a double
  barrier, the scope cancels its body and raises GrantLostError, since for the others we have left.
* Cancellation: a cancelled member has left. Its node is deleted in the background for as long as
  that takes.
* Never promised: that members are at the same place at the same time. One may be told a little
  later than another, and one that was paused may work on after the others have gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Self

from paddock.client.client import Client
from paddock.client.requests.arguments import check_count
from paddock.errors import (
    ConnectionLostError,
    LockStateError,
    NodeExistsError,
    NoNodeError,
    TransactionFailedError,
)
from paddock.layouts import CLOSED_BARRIER, MEMBER
from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.protocol.paths import child_path, parent_path
from paddock.recipes.common.background import Recipe
from paddock.recipes.common.departure import Sweeper
from paddock.recipes.common.receipt import Receipt
from paddock.recipes.common.retry import (
    Signal,
    delete_first,
    make_node,
    read_node,
    retry,
    wait_gone,
    watch_signal,
    write_once,
)
from paddock.recipes.locks.grant import Grant
from paddock.recipes.locks.grant_scope import GrantScope
from paddock.recipes.locks.line import Entry, Line, Place

# The prefix of a member's node.
_MEMBER: Final = MEMBER


class Barrier(Recipe):
    """A gate: closed while its node exists.

        gate = Barrier(client, "/barriers/start")
        await gate.close()
        print(await gate.is_open())  # False
        await gate.open()
        await gate.wait()

    It stays closed when the session that has closed it ends. Closing a closed one does nothing, nor
    does opening an open one.
    """

    def __init__(self, client: Client, path: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        super().__init__(client, path, acl)
        self._sweeper = Sweeper(client)

    async def is_open(self) -> bool:
        """Return whether it is open now."""
        return await retry(self._client, lambda: self._client.exists(self._path)) is None

    async def close(self) -> None:
        """Close it, if it is open."""
        # Others may open it before our reply comes; then it must not be closed again.
        receipt_path = f"{self._path}-closed-{self._client.new_mark()}"
        receipt = Receipt(self._client, receipt_path, self._acl)

        async def create() -> bool:
            while True:
                transaction = self._client.transaction()
                transaction.create(self._path, CLOSED_BARRIER, acl=self._acl)
                try:
                    await receipt.commit(transaction)
                    return True
                except TransactionFailedError as refusal:
                    if isinstance(refusal.results[0], NodeExistsError):
                        return True
                    if not isinstance(refusal.results[0], NoNodeError):
                        raise
                await make_node(self._client, parent_path(self._path))

        async def find(lost: ConnectionLostError) -> bool | None:
            return await receipt.exists(lost) or None

        try:
            await write_once(self._client, create, find)
        finally:
            receipt.delete_later(self._sweeper)

    async def open(self) -> None:
        """Open it, if it is closed: all waiters go on."""
        # If it is closed again meanwhile, it stays closed.
        await retry(self._client, partial(delete_first(self._path), self._client))

    async def wait(self) -> None:
        """Wait until it is open; it may be closed again by then. Raises SessionExpiredError."""
        await wait_gone(self._client, self._path)


class _Round(NamedTuple):
    """The members that were admitted together."""

    # Unique for each round.
    mark: str
    members: tuple[str, ...]

    def encoded(self) -> bytes:
        return "\n".join((self.mark, *self.members)).encode()


def _round(data: bytes) -> _Round:
    mark, *members = data.decode(errors="replace").split("\n")
    return _Round(mark, tuple(members))


class DoubleBarrier(Recipe):
    """One member of a group that begins together and ends together, any number of times.

        barrier = DoubleBarrier(client, "/barriers/step", 3)
        await barrier.enter()  # returns when three have come
        await barrier.leave()  # returns when all three have left

    All members of a group use the same size. As a rule the scope, `async with barrier`, is better,
    since it cancels its body when we are not a member any more; if its body fails, it leaves
    without waiting.
    """

    def __init__(
        self, client: Client, path: str, size: int, *, acl: Sequence[ACL] = OPEN_TO_ALL
    ) -> None:
        check_count("size", size)
        super().__init__(client, path, acl)
        self._line = Line(client, path, [_MEMBER], b"", acl)
        self._size = size
        self._ready_path = child_path(path, "ready")
        # From the beginning of `enter` to the end of `leave`.
        self._is_busy = False
        # Set while we are a member.
        self._inside: tuple[Grant, Place, _Round] | None = None
        self._scope: GrantScope | None = None

    def __repr__(self) -> str:
        return f"<DoubleBarrier {self._path} {'entered' if self.is_entered else 'not entered'}>"

    @property
    def is_entered(self) -> bool:
        """Whether we have entered, and are surely a member, at this moment."""
        return self._inside is not None and self._inside[0].is_held

    async def enter(self) -> None:
        """Wait until as many members have come as the size says.

        Raises SessionExpiredError; and LockStateError if it was entered already, or if our node was
        deleted while we waited.
        """
        if self._is_busy:
            raise LockStateError(f"{self._path}: it is entered already; make another one")
        self._is_busy = True
        place = self._line.new_place(_MEMBER)
        try:
            with place.left_on_error(), watch_signal(self._client) as signal:
                await place.enter()
                own_round = await self._wait_for_round(place, signal)
        except BaseException:
            self._is_busy = False
            raise
        self._inside = Grant(place), place, own_round

    async def leave(self) -> None:
        """Wait until all members of our round have left or died.

        Raises LockStateError if it was not entered; GrantLostError if we were not a member any
        more, so that the others may have left without us; SessionExpiredError.
        """
        if self._inside is None:
            raise LockStateError(f"{self._path}: it has not been entered")
        grant, place, own_round = self._inside
        try:
            if grant.is_lost:
                raise grant.lost()
            await self._leave(grant, place, own_round)
        except BaseException:
            # Not awaited: a cancelled task must not wait for the service.
            self._client.start_task(grant.release())
            raise
        finally:
            self._inside = None
            self._is_busy = False

    async def __aenter__(self) -> Self:
        await self.enter()
        assert self._inside is not None, "it was entered"
        self._scope = GrantScope(self._inside[0])
        return self

    async def __aexit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        scope, self._scope = self._scope, None
        if scope is None:
            raise LockStateError(f"{self._path}: its scope has not been entered")
        if error is None:
            try:
                await self.leave()
            except BaseException as failure:
                await scope.__aexit__(type(failure), failure, failure.__traceback__)
                raise
        else:
            self._inside = None
            self._is_busy = False
        await scope.__aexit__(kind, error, traceback)

    # Entering.

    async def _wait_for_round(self, place: Place, signal: Signal) -> _Round:
        """Wait until we are admitted; return our round."""
        while True:
            members, ready = await retry(self._client, lambda: self._look(place, signal))
            if ready is not None and place.name in ready.members:
                return ready
            if ready is not None:
                await self._wait_for_end(ready, members, signal)
            elif len(members) >= self._size:
                await retry(self._client, partial(self._open, members[: self._size]))
            else:
                await signal.wait()

    async def _look(self, place: Place, signal: Signal) -> tuple[list[Entry], _Round | None]:
        """Return the members, and the present round, if there is one.

        The signal is set when a round begins or ends, or our own node is deleted.
        """
        own, _, ready, members = await asyncio.gather(
            self._client.exists(place.path, watch=signal),
            # Not `get`, which sets no watch on a node that does not exist yet.
            self._client.exists(self._ready_path, watch=signal),
            read_node(self._client, self._ready_path),
            self._line.entries(),
        )
        if own is None:
            raise LockStateError(f"{place.path}: our node was deleted")
        return members, None if ready is None else _round(ready.data)

    async def _open(self, members: list[Entry]) -> None:
        """Admit these members, if all of them still exist."""
        names = tuple(entry.name for entry in members)
        new_round = _Round(self._client.new_mark(), names)
        try:
            async with self._client.transaction() as transaction:
                for name in names:
                    transaction.check(child_path(self._path, name))
                transaction.create(self._ready_path, new_round.encoded(), acl=self._acl)
                # Ending a round deletes this node, so it never ends another one.
                transaction.create(child_path(self._ready_path, new_round.mark), acl=self._acl)
        except TransactionFailedError as refusal:
            if not any(isinstance(one, NoNodeError | NodeExistsError) for one in refusal.results):
                raise
            # One is gone, or another member has opened it; our server may not know yet.
            await self._client.sync(self._path)

    async def _wait_for_end(self, ready: _Round, members: list[Entry], signal: Signal) -> None:
        """Wait until a round without us may have ended, and end it if none of it is left."""
        left = [entry for entry in members if entry.name in ready.members]
        if left:
            # Its last member ends it; but all of them may die.
            path = child_path(self._path, left[0].name)
            if await retry(self._client, lambda: read_node(self._client, path, signal)) is None:
                return
        elif await retry(self._client, lambda: self._end(ready)):
            return
        await signal.wait()

    # Leaving.

    async def _leave(self, grant: Grant, place: Place, own_round: _Round) -> None:
        """Leave, the first member last: all others wait for it, and only it for all."""
        while True:
            members = await self._line.entries()
            left = [entry for entry in members if entry.name in own_round.members]
            others = [entry for entry in left if entry.name != place.name]
            if not others:
                await grant.release()
                await retry(self._client, lambda: self._end(own_round))
                return
            if left[0].name == place.name:
                await place.wait_gone(others[-1])
            else:
                await grant.release()
                await place.wait_gone(others[0])

    async def _end(self, ended: _Round) -> bool:
        """End a round that has no members left; return whether it was us."""
        transaction = self._client.transaction().delete(child_path(self._ready_path, ended.mark))
        try:
            await transaction.delete(self._ready_path).commit()
        except TransactionFailedError:
            # It has ended already.
            return False
        return True

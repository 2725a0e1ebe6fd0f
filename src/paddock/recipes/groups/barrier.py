"""Barriers: a gate for whoever comes by, and a double one for a group that works together.

    barrier = DoubleBarrier(client, "/barriers/step", 3)
    async with barrier:
        print("all three are here")
    print("all three are done")

A `Barrier` is closed while its node is there, and everybody who waits goes on when it is opened.

A `DoubleBarrier` lets its members begin together and end together. Guaranteed is:

* It opens by one transaction, which fails unless all who are let in are there at that moment. So it
  never opens for fewer than its size, and whoever dies before is not counted.
* Those who are let in are a round. Who comes in excess, or while a round is under way, waits until
  everybody of that round has left, and is let in with the next one, in the order of coming.
* `leave` returns when everybody of the round has left, or has died: the dead block nobody.

Whatever wakes up a waiter, it looks again how things are. To come wakes up nobody, to open the
barrier all who wait for it, and to leave one at most, but for the last.

* Suspension (the connection is lost): members stay where they are, as long as the session lives.
* Expiry, or nothing heard for a session timeout: whoever waits gets SessionExpiredError. Within a
  double barrier, the scope cancels its body and raises GrantLostError, since for the others we have
  left.
* Cancellation: whoever is cancelled, wherever it is, has left. Its node is deleted in the
  background for as long as that takes.
* Never promised: that members are at the same place at the same time. One may be told a little
  later than another, and one that was paused may work on when the others have gone without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from types import TracebackType
from typing import Final, NamedTuple, Self

from paddock.client.client import Client
from paddock.client.requests.arguments import check_count, checked_acl, checked_path
from paddock.errors import (
    ConnectionLostError,
    LockStateError,
    NodeExistsError,
    NoNodeError,
    NotReadOnlyError,
    TransactionFailedError,
)
from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.recipes.common.retry import Signal, child, parent, until_answered, wait_writable
from paddock.recipes.common.sweeper import Sweeper
from paddock.recipes.locks.grant import Grant, GrantScope
from paddock.recipes.locks.line import Entry, Line, Place

# What the name of a member's node says before its number.
_MEMBER: Final = "member-"


class Barrier:
    """A gate: closed while its node is there, by whomever it was made.

        gate = Barrier(client, "/barriers/start")
        await gate.close()
        print(await gate.is_open())  # False
        await gate.open()
        await gate.wait()

    It stays closed when whoever has closed it goes. Closing what is closed does nothing, nor does
    opening what is open.
    """

    def __init__(self, client: Client, path: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        checked_path(path)
        checked_acl(acl)
        self._client = client
        self._path = path
        self._acl = acl
        self._sweeper = Sweeper(client)

    def __repr__(self) -> str:
        return f"<Barrier {self._path}>"

    async def is_open(self) -> bool:
        """Tell whether nobody would have to wait now."""
        return await until_answered(self._client, lambda: self._client.exists(self._path)) is None

    async def close(self) -> None:
        """Close it, if it is open: from then on, everybody waits."""
        mark = self._client.new_mark()
        # Others may open it before we hear that it was closed; then it must not be closed again.
        receipt_path = f"{self._path}-closed-{mark}"
        try:
            while not await self._close_once(receipt_path):
                pass
        finally:
            self._sweeper.add(receipt_path)

    async def open(self) -> None:
        """Open it, if it is closed: everybody who waits goes on."""
        before = await until_answered(self._client, lambda: self._client.exists(self._path))
        while before is not None:
            try:
                await self._client.delete(self._path)
            except NoNodeError:
                return
            except NotReadOnlyError:
                await wait_writable(self._client)
            except ConnectionLostError:
                # If it was closed anew meanwhile, that is not ours to open.
                now = await until_answered(self._client, self._look)
                if now != before.czxid:
                    return
            else:
                return

    async def wait(self) -> None:
        """Wait until it is open, as long as it takes; that may be at once.

        If it is closed again in the next moment, that may go unnoticed. Raises SessionExpiredError.
        """
        signal = Signal()
        try:
            while await until_answered(
                self._client, lambda: self._client.exists(self._path, watch=signal)
            ):
                await signal.wait()
        finally:
            self._client.forget_watcher(signal)

    async def _close_once(self, receipt_path: str) -> bool:
        """Close it; tell whether it is closed, or was and has been opened since."""
        transaction = self._client.transaction()
        transaction.create(self._path, acl=self._acl)
        transaction.create(receipt_path, acl=self._acl, ephemeral=True)
        try:
            await transaction.commit()
        except NotReadOnlyError:
            await wait_writable(self._client)
            return False
        except ConnectionLostError:
            return await until_answered(self._client, lambda: self._has_closed(receipt_path))
        except TransactionFailedError as refusal:
            if isinstance(refusal.results[0], NodeExistsError):
                return True
            if not isinstance(refusal.results[0], NoNodeError):
                raise
            await self._make_parents(parent(self._path))
            return False
        return True

    async def _has_closed(self, receipt_path: str) -> bool:
        # The server we are attached to now may be behind the one that took our request.
        await self._client.sync(self._path)
        return await self._client.exists(receipt_path) is not None

    async def _make_parents(self, above: str) -> None:
        async def make() -> None:
            try:
                await self._client.create(above, make_parents=True)
            except NodeExistsError:
                pass

        await until_answered(self._client, make)

    async def _look(self) -> int | None:
        """Give the zxid of its closing, or None if it is open."""
        await self._client.sync(self._path)
        stat = await self._client.exists(self._path)
        return None if stat is None else stat.czxid


class _Round(NamedTuple):
    """Those who were let in together."""

    # Tells its node from that of every other round.
    mark: str
    members: tuple[str, ...]

    def encoded(self) -> bytes:
        return "\n".join((self.mark, *self.members)).encode()


def _round(data: bytes) -> _Round:
    mark, *members = data.decode(errors="replace").split("\n")
    return _Round(mark, tuple(members))


class DoubleBarrier:
    """A group of so many, who begin together and end together, as often as they like.

        barrier = DoubleBarrier(client, "/barriers/step", 3)
        await barrier.enter()  # returns when three have come
        await barrier.leave()  # returns when all three have left

    A double barrier is one member: whoever takes part needs one of its own. All of a group give
    the same size. As a rule the scope, `async with barrier`, is better, since it ends what is done
    in it when we are not a member any more; if its body fails, it leaves and waits for nobody.
    """

    def __init__(
        self, client: Client, path: str, size: int, *, acl: Sequence[ACL] = OPEN_TO_ALL
    ) -> None:
        check_count("size", size)
        self._line = Line(client, path, [_MEMBER], b"", acl)
        self._client = client
        self._path = path
        self._size = size
        self._acl = acl
        self._ready_path = child(path, "ready")
        # From the beginning of `enter` to the end of `leave`.
        self._is_busy = False
        # What we are in, while we are.
        self._grant: Grant | None = None
        self._place: Place | None = None
        self._round: _Round | None = None
        self._scope: GrantScope | None = None

    def __repr__(self) -> str:
        return f"<DoubleBarrier {self._path} {'entered' if self.is_entered else 'not entered'}>"

    @property
    def is_entered(self) -> bool:
        """Whether we have entered, and are surely a member, at this moment."""
        return self._grant is not None and self._grant.is_held

    async def enter(self) -> None:
        """Wait until as many have come as there are to be, as long as it takes.

        Raises SessionExpiredError; and LockStateError if it was entered already, or if somebody has
        deleted our node while we waited.
        """
        if self._is_busy:
            raise LockStateError(f"{self._path}: it is entered already; make another one")
        self._is_busy = True
        place = self._line.new_place(_MEMBER)
        signal = Signal()
        try:
            await place.enter()
            self._round = await self._wait_for_round(place, signal)
        except BaseException:
            # Not awaited: whoever is cancelled must not wait for the service.
            self._client.start_task(place.leave())
            self._is_busy = False
            raise
        finally:
            self._client.forget_watcher(signal)
        self._place, self._grant = place, Grant(place)

    async def leave(self) -> None:
        """Wait until everybody who was let in with us has left, or has died.

        Raises LockStateError if it was not entered; GrantLostError if we had ceased to be a member
        before, so that the others may have left without us; SessionExpiredError.
        """
        grant, place, own_round = self._grant, self._place, self._round
        if grant is None or place is None or own_round is None:
            raise LockStateError(f"{self._path}: it has not been entered")
        try:
            if grant.is_lost:
                raise grant.lost()
            await self._leave(grant, place, own_round)
        except BaseException:
            # Not awaited: whoever is cancelled must not wait for the service.
            self._client.start_task(grant.release())
            raise
        finally:
            self._grant = None
            self._is_busy = False

    async def __aenter__(self) -> Self:
        await self.enter()
        assert self._grant is not None, "it was entered"
        self._scope = GrantScope(self._grant)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        scope, self._scope = self._scope, None
        if scope is None:
            raise LockStateError(f"{self._path}: its scope has not been entered")
        if error is None:
            try:
                await self.leave()
            except BaseException as failure:
                await scope.leave(type(failure), failure, failure.__traceback__)
                raise
        else:
            self._grant = None
            self._is_busy = False
        await scope.leave(kind, error, traceback)

    # Entering.

    async def _wait_for_round(self, place: Place, signal: Signal) -> _Round:
        """Wait until we are let in; give the round that we are in."""
        while True:
            members, ready = await until_answered(self._client, lambda: self._look(place, signal))
            if ready is not None and place.name in ready.members:
                return ready
            if ready is not None:
                await self._wait_for_end(ready, members, signal)
            elif len(members) >= self._size:
                await until_answered(self._client, partial(self._open, members[: self._size]))
            else:
                await signal.wait()

    async def _look(self, place: Place, signal: Signal) -> tuple[list[Entry], _Round | None]:
        """Give who is there, and the round that is under way, if one is.

        The signal is given when that one comes or goes, or somebody deletes our own node.
        """
        own, _, ready, members = await asyncio.gather(
            self._client.exists(place.path, watch=signal),
            # Not by `get`, which sets no watch for a node that is still to come.
            self._client.exists(self._ready_path, watch=signal),
            self._ready(),
            self._line.entries(),
        )
        if own is None:
            raise LockStateError(f"{place.path}: our node was deleted by somebody")
        return members, ready

    async def _ready(self) -> _Round | None:
        try:
            return _round((await self._client.get(self._ready_path)).data)
        except NoNodeError:
            return None

    async def _open(self, members: list[Entry]) -> None:
        """Let these in, if all of them are still there."""
        names = tuple(entry.name for entry in members)
        new_round = _Round(self._client.new_mark(), names)
        transaction = self._client.transaction()
        for name in names:
            transaction.check(child(self._path, name))
        transaction.create(self._ready_path, new_round.encoded(), acl=self._acl)
        # Who ends a round names it, and so never ends another one.
        transaction.create(child(self._ready_path, new_round.mark), acl=self._acl)
        try:
            await transaction.commit()
        except TransactionFailedError as refusal:
            if not any(isinstance(one, NoNodeError | NodeExistsError) for one in refusal.results):
                raise
            # One has gone, or another has opened it; and our server may not know of that yet.
            await self._client.sync(self._path)

    async def _wait_for_end(self, ready: _Round, members: list[Entry], signal: Signal) -> None:
        """Wait until a round that we are not in may have ended, and end it if nobody is left."""
        left = [entry for entry in members if entry.name in ready.members]
        if left:
            # Whoever is left last ends it; but all of them may die.
            path = child(self._path, left[0].name)
            try:
                await until_answered(self._client, lambda: self._client.get(path, watch=signal))
            except NoNodeError:
                return
        elif await until_answered(self._client, lambda: self._end(ready)):
            return
        await signal.wait()

    # Leaving.

    async def _leave(self, grant: Grant, place: Place, own_round: _Round) -> None:
        """Leave, the first one last: so all others wait for one, and only that one for all."""
        while True:
            members = await self._line.entries()
            left = [entry for entry in members if entry.name in own_round.members]
            others = [entry for entry in left if entry.name != place.name]
            if not others:
                await grant.release()
                await until_answered(self._client, lambda: self._end(own_round))
                return
            if left[0].name == place.name:
                await place.wait_gone(others[-1])
            else:
                await grant.release()
                await place.wait_gone(others[0])

    async def _end(self, ended: _Round) -> bool:
        """End a round of which nobody is left; tells whether it was us."""
        transaction = self._client.transaction()
        transaction.delete(child(self._ready_path, ended.mark)).delete(self._ready_path)
        try:
            await transaction.commit()
        except TransactionFailedError:
            # Somebody else has ended it, or we before a reply was lost.
            return False
        return True

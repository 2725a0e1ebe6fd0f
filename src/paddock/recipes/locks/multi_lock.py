"""Multi-lock: several locks as one; all of them are held, or none.

    both = MultiLock([Lock(client, "/locks/from"), Lock(client, "/locks/to")])
    async with both as grant:
        async with grant.guard() as transaction:
            transaction.create("/transfer", b"7")

They are taken one after the other, in the order of their paths, whatever the order in which they
were given. So nobody can wait in a circle: whoever waits for one holds only what comes before it.
Others who take several of them one by one have to do it in the order of their paths, too; Curator's
InterProcessMultiLock takes them in the order in which they are given.

Each may be a lock of any kind here: `Lock`, `SimpleMutex`, a side of a `ReadWriteLock`, or a lease
of a `Semaphore`. They belong to one client, so that a guarded write can check all of them.

There is a fencing token for each lock, and none for all of them. The largest would not do: of the
locks A and B, somebody may have waited for A alone since before we came to B, and have A after us;
its token is larger than ours of A, but smaller than ours of B. So what A protects is to see the
token of A, and what B protects that of B.

* Suspension (the connection is lost): the holder is told and goes on, a waiter keeps its place.
* Expiry, or nothing heard for a session timeout, or one of them lost in another way: all of them
  are given back, the holder's scope cancels its body and raises GrantLostError. A waiter gets
  SessionExpiredError if the session is over; if it loses one while it waits for the next, it gives
  back all and begins again.
* Cancellation, or an error: what was taken so far is given back, in the background for as long as
  that takes.
* Never promised: that a holder is alone by the clock (`paddock.recipes.locks.lock` says why).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import TypeAlias

from paddock.client.client import Client
from paddock.client.transaction import Transaction
from paddock.errors import InvalidArgumentError, LockStateError
from paddock.recipes.common.listeners import Listeners
from paddock.recipes.locks.grant import BaseGrant, Grant, GrantEvent, GrantListener, GrantScopes
from paddock.recipes.locks.holder import Holder
from paddock.recipes.locks.lock import Lock, SimpleMutex
from paddock.recipes.locks.rw_lock import ReadLock, WriteLock
from paddock.recipes.locks.semaphore import Semaphore

AnyLock: TypeAlias = Lock | SimpleMutex | ReadLock | WriteLock | Semaphore


class MultiLock:
    """Several locks that are held together.

        lock = MultiLock([Lock(client, "/locks/a"), Semaphore(client, "/locks/b", leases=3)])
        async with lock as grant:
            print(grant.is_held, len(grant.tokens))  # True 2

    The locks are its own while it waits or holds: whoever takes one of them beside it is told that
    it is held already, and whoever releases one ends the grant.
    """

    def __init__(self, locks: Sequence[AnyLock]) -> None:
        self._locks = _checked(locks)
        self._in_order = sorted(range(len(self._locks)), key=lambda one: self._locks[one].path)
        self._client = self._locks[0].client
        self._name = ", ".join(lock.path for lock in self._locks)
        self._is_waiting = False
        self._grant: MultiGrant | None = None
        self._scopes = GrantScopes()
        self._listeners = Listeners[GrantEvent]()

    def __repr__(self) -> str:
        state = "held" if self.is_held else "waited for" if self._is_waiting else "not held"
        return f"<MultiLock {self._name} {state}>"

    @property
    def is_held(self) -> bool:
        """Whether we surely hold all of them, at this moment."""
        return self._grant is not None and self._grant.is_held

    async def acquire(self) -> MultiGrant:
        """Wait until all are ours, as long as it takes; the grant is to be released.

            grant = await lock.acquire()
            await grant.release()

        As a rule `async with lock` is better, since it ends what is done in it when the grant is
        lost. Raises SessionExpiredError; and LockStateError if one of them is ours already, or if
        somebody has deleted our node while we waited.
        """
        while True:
            taken = await self._take(waits=True)
            if taken is not None:
                return self._hold(taken)

    async def try_acquire(self) -> MultiGrant | None:
        """Take all of them if they can be had at once; give None otherwise."""
        taken = await self._take(waits=False)
        return None if taken is None else self._hold(taken)

    async def release(self) -> None:
        """Release what `acquire` gave; raises LockStateError if it is not held.

        That it was lost meanwhile is fine: then there is nothing to release.
        """
        if self._grant is None or self._grant.is_released:
            raise LockStateError(f"{self._name}: it is not held")
        await self._grant.release()

    def add_listener(self, listener: GrantListener) -> None:
        """Have something called when it is acquired, suspended, resumed, released or lost.

        It must not block. What it raises goes to the event loop's exception handler.
        """
        self._listeners.add(listener)

    def remove_listener(self, listener: GrantListener) -> None:
        """Call it no more; that it was never called is fine."""
        self._listeners.remove(listener)

    async def __aenter__(self) -> MultiGrant:
        grant = await self.acquire()
        self._scopes.enter(grant)
        return grant

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._scopes.leave(kind, error, traceback)

    async def _take(self, *, waits: bool) -> list[Grant] | None:
        """Take one after the other; give None if one could not be had, or was lost meanwhile."""
        if self._is_waiting:
            raise LockStateError(f"{self._name}: it is waited for already; make another one")
        if self.is_held:
            raise LockStateError(f"{self._name}: it is held already; make another one")
        taken: dict[int, Grant] = {}
        self._is_waiting = True
        try:
            for number in self._in_order:
                lock = self._locks[number]
                grant = await (lock.acquire() if waits else lock.try_acquire())
                if grant is None:
                    break
                taken[number] = grant
            if len(taken) == len(self._locks) and all(one.is_held for one in taken.values()):
                return [taken[number] for number in range(len(self._locks))]
            await _finished(self._give_back(taken))
        except BaseException:
            # Not awaited: whoever is cancelled must not wait for the service.
            self._give_back(taken)
            raise
        finally:
            self._is_waiting = False
        return None

    def _give_back(self, taken: dict[int, Grant]) -> list[asyncio.Task[None]]:
        tasks = [self._client.start_task(grant.release()) for grant in taken.values()]
        taken.clear()
        return tasks

    def _hold(self, taken: Sequence[Grant]) -> MultiGrant:
        self._grant = grant = MultiGrant(self._client, taken)
        grant.add_listener(self._listeners.tell)
        self._listeners.tell(GrantEvent.ACQUIRED)
        return grant


class MultiGrant(BaseGrant):
    """That several locks are held, until they are released, or one of them is lost."""

    def __init__(self, client: Client, grants: Sequence[Grant]) -> None:
        super().__init__()
        # The nodes that stand for it, in the order in which the locks were given.
        self.paths: tuple[str, ...] = tuple(grant.path for grant in grants)
        # The fencing tokens, in the same order: of each lock its own.
        self.tokens: tuple[int, ...] = tuple(grant.token for grant in grants)
        self._client = client
        self._grants = grants
        self._leaving: list[asyncio.Task[None]] = []
        for grant in grants:
            grant.add_listener(self._on_event)

    def __repr__(self) -> str:
        return f"<MultiGrant {self._name} {self._state} tokens {self.tokens}>"

    @property
    def is_held(self) -> bool:
        """Whether all of them are surely held, at this moment."""
        return not self._is_over and all(grant.is_held for grant in self._grants)

    def check(self) -> None:
        """Raise GrantLostError unless all of them are surely held at this moment."""
        if self.is_released:
            raise LockStateError(f"{self._name}: it was released")
        if not self.is_held:
            raise self.lost()

    def guard(self) -> Transaction:
        """Begin a transaction that only succeeds while all of them are held.

            async with grant.guard() as transaction:
                transaction.set("/report", b"done")

        It begins with a check of each, whose results are None. Raises GrantLostError if one is lost
        already; the commit raises TransactionFailedError if the service finds that it is.
        """
        transaction = self._client.transaction()
        self.fence(transaction)
        return transaction

    def fence(self, transaction: Transaction) -> None:
        """Have a transaction succeed only while all of them are held, beside what else it needs.

        It adds what `guard` begins with. Raises GrantLostError if one is lost already.
        """
        self.check()
        for grant in self._grants:
            grant.fence(transaction)

    async def release(self) -> None:
        """Give up all of them; when this returns, the next ones have them or can have them.

        While the connection is lost it waits for the next one, but not longer than the session
        surely lives: then they are others' anyway. If it is cancelled, the nodes are deleted all
        the same, as soon as a server can be reached. Releasing again, or what was lost, does
        nothing.
        """
        self._end(GrantEvent.RELEASED)
        if self.is_released:
            await _finished(self._leaving)

    @property
    def _name(self) -> str:
        return ", ".join(self.paths)

    def _on_event(self, event: GrantEvent) -> None:
        if event in (GrantEvent.RELEASED, GrantEvent.LOST):
            # Without one of them the others are not what they were taken for.
            self._end(GrantEvent.LOST)
        else:
            self._become(event)

    def _end(self, event: GrantEvent) -> None:
        if self._is_over:
            return
        for grant in self._grants:
            grant.remove_listener(self._on_event)
        self._leaving = [self._client.start_task(grant.release()) for grant in self._grants]
        self._become(event)


def _checked(locks: Sequence[AnyLock]) -> list[Holder]:
    checked: list[Holder] = []
    for lock in locks:
        if not isinstance(lock, Holder):
            raise InvalidArgumentError(f"locks: {lock!r} is no lock")
        if any(lock.path == other.path for other in checked):
            raise InvalidArgumentError(f"locks: {lock.path} is there twice, and waits for itself")
        if checked and lock.client is not checked[0].client:
            raise InvalidArgumentError("locks: they are of more than one client")
        checked.append(lock)
    if not checked:
        raise InvalidArgumentError("locks: there are none")
    return checked


async def _finished(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Wait for what goes on also if we do not."""
    if tasks:
        await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.result()

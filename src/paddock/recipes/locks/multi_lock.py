"""Multi-lock: several locks as one; all of them are held, or none.

    both = MultiLock([Lock(client, "/locks/from"), Lock(client, "/locks/to")])
    async with both as grant:
        async with grant.guard() as transaction:
            transaction.create("/transfer", b"7")

They are acquired one after the other, in the order of their paths, whatever order they were given
in. So there is no deadlock: a waiter holds only what comes before the lock it waits for. Others who
acquire several of them one by one have to do it in the order of their paths, too; Curator's
InterProcessMultiLock acquires them in the order in which they are given.

Each may be a lock of any kind: `Lock`, `SimpleMutex`, a side of a `ReadWriteLock`, or a lease of a
`Semaphore`. They belong to one client, so that a guarded write can check all of them.

There is a fencing token for each lock, and none for all of them. The largest would not do: of the
locks A and B, another contender may have waited for A alone since before we came to B, and hold A
after us; its token is larger than ours of A, but smaller than ours of B. So what A protects is to
see the token of A, and what B protects that of B.

* Suspension (the connection is lost): the holder is told and goes on, a waiter keeps its place.
* Expiry, or nothing heard for a session timeout, or one of them lost in another way: all of them
  are released, the holder's scope cancels its body and raises GrantLostError. A waiter gets
  SessionExpiredError if the session is over; if it loses one while it waits for the next, it
  releases all and begins again.
* Cancellation, or an error: what was acquired so far is released, in the background for as long as
  that takes.
* Never promised: that a holder is alone by the clock (`paddock.recipes.locks.lock` says why).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeAlias

from paddock.client.client import Client
from paddock.client.transaction import Transaction
from paddock.errors import InvalidArgumentError
from paddock.recipes.common.retry import wait_finished
from paddock.recipes.locks.grant import BaseGrant, Grant, GrantEvent, ReleaseRequest
from paddock.recipes.locks.holder import BaseHolder, Holder
from paddock.recipes.locks.lock import Lock, SimpleMutex
from paddock.recipes.locks.rw_lock import ReadLock, WriteLock
from paddock.recipes.locks.semaphore import Semaphore

AnyLock: TypeAlias = Lock | SimpleMutex | ReadLock | WriteLock | Semaphore


class MultiLock(BaseHolder):
    """Several locks that are held together.

        lock = MultiLock([Lock(client, "/locks/a"), Semaphore(client, "/locks/b", leases=3)])
        async with lock as grant:
            print(grant.is_held, len(grant.tokens))  # True 2

    The locks are its own while it waits or holds: acquiring one of them beside it raises
    LockStateError, and releasing one ends the grant.
    """

    _grant: MultiGrant | None

    def __init__(self, locks: Sequence[AnyLock]) -> None:
        self._locks = _checked(locks)
        super().__init__(", ".join(lock.path for lock in self._locks))
        self._in_order = sorted(range(len(self._locks)), key=lambda one: self._locks[one].path)
        self._client = self._locks[0].client

    async def acquire(self, *, timeout: float | None = None) -> MultiGrant:  # noqa: ASYNC109
        """Wait until all are ours; the grant is to be released.

            grant = await lock.acquire(timeout=10)
            await grant.release()

        As a rule `async with lock` is better, since it ends what is done in it when the grant is
        lost. Raises TimeoutError, which names a holder, after `timeout` seconds;
        SessionExpiredError; and LockStateError if one of them is ours already, or if our node was
        deleted while we waited.
        """
        taking = self._take_all()
        return await (taking if timeout is None else self._within(timeout, taking))

    async def try_acquire(self) -> MultiGrant | None:
        """Acquire all of them if that is possible at once; return None otherwise."""
        taken = await self._take(waits=False)
        return None if taken is None else self._hold(MultiGrant(self._client, taken))

    async def __aenter__(self) -> MultiGrant:
        return self._enter(await self.acquire())

    async def _take_all(self) -> MultiGrant:
        while (taken := await self._take(waits=True)) is None:
            pass
        return self._hold(MultiGrant(self._client, taken))

    async def _take(self, *, waits: bool) -> list[Grant] | None:
        """Acquire one after the other; return None if one is not free, or was lost meanwhile."""
        self._check_free()
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
            await wait_finished(self._give_back(taken))
        except BaseException:
            # Not awaited: a cancelled task must not wait for the service.
            self._give_back(taken)
            raise
        finally:
            self._is_waiting = False
        return None

    def _give_back(self, taken: dict[int, Grant]) -> list[asyncio.Task[None]]:
        tasks = [self._client.start_task(grant.release()) for grant in taken.values()]
        taken.clear()
        return tasks


class MultiGrant(BaseGrant):
    """Proof that several locks are held, until they are released, or one of them is lost."""

    def __init__(self, client: Client, grants: Sequence[Grant]) -> None:
        super().__init__(client)
        # The nodes that stand for it, in the order in which the locks were given.
        self.paths: tuple[str, ...] = tuple(grant.path for grant in grants)
        # The fencing tokens, in the same order: of each lock its own.
        self.tokens: tuple[int, ...] = tuple(grant.token for grant in grants)
        self._grants = grants
        self._why = ""
        self._leaving: list[asyncio.Task[None]] = []
        for grant in grants:
            grant.add_listener(self._on_event)
        # Somebody may have asked for the first of them while we waited for the last.
        self._asked = self._asked_for()

    def __repr__(self) -> str:
        return f"<MultiGrant {self._name} {self._state} tokens {self.tokens}>"

    def _is_valid(self) -> bool:
        return all(grant.is_held for grant in self._grants)

    def _fence(self, transaction: Transaction) -> None:
        for grant in self._grants:
            grant.fence(transaction)

    def _release(self) -> Awaitable[None] | None:
        self._end(GrantEvent.RELEASED)
        return wait_finished(self._leaving) if self.is_released else None

    def _why_lost(self) -> str:
        return self._why or next(
            (f"{one.path}: {one._why_lost()}" for one in self._grants if not one.is_held), ""
        )

    def _is_lost_with_session(self) -> bool:
        return any(one._is_lost_with_session() for one in self._grants if not one.is_held)

    @property
    def _name(self) -> str:
        return ", ".join(self.paths)

    def _on_event(self, event: GrantEvent) -> None:
        if event in (GrantEvent.RELEASED, GrantEvent.LOST):
            # Without one of them the others are of no use.
            one = next((one for one in self._grants if one.is_lost), None)
            self._why = "one of the locks was released" if one is None else self._why_lost()
            self._end(GrantEvent.LOST)
        elif event is GrantEvent.ASKED:
            self._become_asked(self._asked_for())
        else:
            self._become(event)

    def _asked_for(self) -> tuple[ReleaseRequest, ...]:
        """Return the requests for all of them, lock by lock."""
        return tuple(one for grant in self._grants for one in grant.asked)

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

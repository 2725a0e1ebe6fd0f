"""What all have in common that can be held by somebody: acquired, released, lost, in a scope."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol

from paddock.client.client import Client
from paddock.errors import LockStateError
from paddock.recipes.common.listeners import Listeners
from paddock.recipes.locks.grant import Grant, GrantEvent, GrantListener, GrantScopes, Held


class Contending(Held, Protocol):
    """Something that is wanted, and held once it is reached."""

    async def enter(self) -> None:
        """Begin to contend. Whatever is raised, `leave` has to follow."""

    async def reach(self) -> None:
        """Wait until it is ours."""

    async def is_reached(self) -> bool:
        """Tell whether it is ours now."""


class Holder:
    """One contender for something: it waits for a grant, and holds it."""

    def __init__(self, client: Client, path: str, *, reentrant: bool = False) -> None:
        # The client whose session it is held by.
        self.client: Client = client
        # Where it is.
        self.path: str = path
        self._is_reentrant = reentrant
        self._is_waiting = False
        self._grant: Grant | None = None
        self._scopes = GrantScopes()
        self._listeners: Listeners[GrantEvent] = Listeners()

    def __repr__(self) -> str:
        state = "held" if self.is_held else "waited for" if self._is_waiting else "not held"
        return f"<{type(self).__name__} {self.path} {state}>"

    @property
    def is_held(self) -> bool:
        """Whether we surely hold it, at this moment."""
        return self._grant is not None and self._grant.is_held

    async def acquire(self) -> Grant:
        """Wait until it is ours, as long as it takes; the grant is to be released.

            grant = await lock.acquire()
            await grant.release()

        As a rule `async with lock` is better, since it ends what is done in it when the grant is
        lost. Raises SessionExpiredError; and LockStateError if it is ours already, or if somebody
        has deleted our node while we waited.
        """
        grant = await self._take(waits=True)
        assert grant is not None, "we have waited"
        return grant

    async def try_acquire(self) -> Grant | None:
        """Take it if it can be had at once; give None otherwise."""
        return await self._take(waits=False)

    async def release(self) -> None:
        """Release what `acquire` gave; raises LockStateError if it is not held.

        That it was lost meanwhile is fine: then there is nothing to release.
        """
        if self._grant is None or self._grant.is_released:
            raise LockStateError(f"{self.path}: it is not held")
        await self._grant.release()

    def add_listener(self, listener: GrantListener) -> None:
        """Have something called when it is acquired, suspended, resumed, released or lost.

        It must not block. What it raises goes to the event loop's exception handler.
        """
        self._listeners.add(listener)

    def remove_listener(self, listener: GrantListener) -> None:
        """Call it no more; that it was never called is fine."""
        self._listeners.remove(listener)

    async def __aenter__(self) -> Grant:
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

    def _new_place(self) -> Contending:
        """Give what is to be held, before anything was sent."""
        raise NotImplementedError

    async def _take(self, *, waits: bool) -> Grant | None:
        if self._is_waiting:
            raise LockStateError(f"{self.path}: it is waited for already; make another one")
        grant = self._grant
        if grant is not None and grant.is_held:
            if not self._is_reentrant:
                raise LockStateError(f"{self.path}: it is held already; make another one")
            grant.deepen()
            return grant
        place = self._new_place()
        self._is_waiting = True
        try:
            await place.enter()
            if waits:
                await place.reach()
            elif not await place.is_reached():
                await place.begin_to_leave().wait()
                return None
        except BaseException:
            # Not awaited: whoever is cancelled must not wait for the service.
            place.begin_to_leave()
            raise
        finally:
            self._is_waiting = False
        return self._hold(self._grant_of(place))

    def _grant_of(self, place: Contending) -> Grant:
        """Give the grant of what was reached."""
        return Grant(place)

    def _hold(self, grant: Grant) -> Grant:
        self._grant = grant
        grant.add_listener(self._listeners.tell)
        self._listeners.tell(GrantEvent.ACQUIRED)
        return grant

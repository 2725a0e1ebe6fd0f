"""The common part of all locks: acquire, release, scopes, listeners."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from paddock.client.client import Client
from paddock.client.requests.arguments import check_seconds
from paddock.client.time_limits import limited, waited_for
from paddock.errors import LockStateError
from paddock.recipes.common.departure import OwnedNode
from paddock.recipes.common.listeners import Listeners
from paddock.recipes.common.retry import check_recipe, name_of
from paddock.recipes.locks.grant import BaseGrant, Grant, GrantEvent, GrantListener
from paddock.recipes.locks.grant_scope import GrantScope

T = TypeVar("T")
G = TypeVar("G", bound=BaseGrant)


class Contending(OwnedNode, ABC):
    """A node that contends for something, and stands for it once it is reached."""

    @abstractmethod
    async def enter(self) -> None:
        """Begin to contend. Whatever is raised, `leave` has to follow."""

    @abstractmethod
    async def reach(self) -> None:
        """Wait until it is held; raise LockStateError if our node was deleted."""

    @abstractmethod
    async def is_reached(self) -> bool:
        """Return whether it is held now."""

    def is_own(self, name: str) -> bool:
        """Return whether a node with this name is ours, as far as that is known."""
        return name == name_of(self.path)


@contextmanager
def acquiring(place: OwnedNode, kind: str, path: str) -> Iterator[None]:
    """A scope that acquires something at a path, of which the client's observer is told."""
    observer = place.client.observer
    if observer is None:
        yield
    else:
        with observer.acquire(kind, path) as wait:
            place.observe(wait)
            yield


class BaseHolder:
    """One contender for something: its grant, its scopes, its listeners."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._is_waiting = False
        self._grant: BaseGrant | None = None
        # Each is left by the task that has entered it.
        self._scopes: list[GrantScope] = []
        self._listeners: Listeners[GrantEvent] = Listeners()

    def __repr__(self) -> str:
        state = "held" if self.is_held else "waited for" if self._is_waiting else "not held"
        return f"<{type(self).__name__} {self._name} {state}>"

    @property
    def is_held(self) -> bool:
        """Whether we surely hold it, at this moment."""
        return self._grant is not None and self._grant.is_held

    async def release(self) -> None:
        """Release what `acquire` returned; raises LockStateError if it is not held.

        If it was lost, there is nothing to release, and no error.
        """
        if self._grant is None or self._grant.is_released:
            raise LockStateError(f"{self._name}: it is not held")
        await self._grant.release()

    def add_listener(self, listener: GrantListener) -> None:
        """Call a function when it is acquired, asked for, suspended, resumed, released or lost.

        It must not block. What it raises goes to the event loop's exception handler.
        """
        self._listeners.add(listener)

    def remove_listener(self, listener: GrantListener) -> None:
        """Remove a listener, if it is there."""
        self._listeners.remove(listener)

    async def __aexit__(self, *raised: Any) -> None:
        task = asyncio.current_task()
        for number in reversed(range(len(self._scopes))):
            if self._scopes[number].task is task:
                await self._scopes.pop(number).__aexit__(*raised)
                return
        raise LockStateError("this task has not entered the scope that it leaves")

    def _check_free(self) -> None:
        if self._is_waiting or self.is_held:
            state = "waited for" if self._is_waiting else "held"
            raise LockStateError(f"{self._name}: it is {state} already; make another one")

    async def _within(self, seconds: float, waiting: Coroutine[Any, Any, T]) -> T:
        """Wait; after some seconds raise a TimeoutError that names the holder."""
        try:
            check_seconds("timeout", seconds)
            async with limited(asyncio.timeout(seconds)):
                return await waiting
        except TimeoutError as error:
            holder = "; ".join(waited_for(error)) or "waiting for an answer"
            raise TimeoutError(f"{self._name}: not acquired in {seconds} s, {holder}") from None
        finally:
            waiting.close()

    def _enter(self, grant: G) -> G:
        self._scopes.append(GrantScope(grant))
        return grant

    def _hold(self, grant: G) -> G:
        self._grant = grant
        grant.add_listener(self._listeners.notify)
        self._listeners.notify(GrantEvent.ACQUIRED)
        if grant.asked:
            self._listeners.notify(GrantEvent.ASKED)
        return grant


class Holder(BaseHolder, ABC):
    """One contender for something that has a node of its own in the service."""

    _grant: Grant | None

    def __init__(self, client: Client, path: str, *, reentrant: bool = False) -> None:
        check_recipe(client, path)
        super().__init__(path)
        # The client whose session it is held by.
        self.client: Client = client
        # Where it is.
        self.path: str = path
        self._is_reentrant = reentrant
        # Our latest attempt.
        self._place: Contending | None = None

    # A parameter, since the message of `asyncio.timeout` cannot name the holder.
    async def acquire(self, *, timeout: float | None = None) -> Grant:  # noqa: ASYNC109
        """Wait until it is ours; the grant is to be released.

            grant = await lock.acquire(timeout=10)
            await grant.release()

        As a rule `async with lock` is better, since it ends what is done in it when the grant is
        lost. Raises TimeoutError, which names the holder, after `timeout` seconds;
        SessionExpiredError; and LockStateError if it is ours already, or if our node was deleted
        while we waited, which is noticed when it is time to look at the line again.
        """
        taking = self._take(waits=True)
        grant = await (taking if timeout is None else self._within(timeout, taking))
        assert grant is not None, "we have waited"
        return grant

    async def try_acquire(self) -> Grant | None:
        """Acquire it if that is possible at once; return None otherwise."""
        return await self._take(waits=False)

    async def __aenter__(self) -> Grant:
        return self._enter(await self.acquire())

    @abstractmethod
    def _new_place(self) -> Contending:
        """Return a node to contend with, before anything was sent."""

    async def _take(self, *, waits: bool) -> Grant | None:
        grant = self._grant
        if self._is_reentrant and grant is not None and grant.is_held and not self._is_waiting:
            grant.deepen()
            return grant
        self._check_free()
        place = self._place = self._new_place()
        with acquiring(place, type(self).__name__, self.path):
            self._is_waiting = True
            try:
                await place.enter()
                if waits:
                    await place.reach()
                elif not await place.is_reached():
                    await place.begin_to_leave().wait()
                    return None
            except BaseException as error:
                place.abandon(error)
                raise
            finally:
                self._is_waiting = False
            return self._hold(self._grant_of(place))

    def _grant_of(self, place: Contending) -> Grant:
        """Return the grant of a place that was reached."""
        return Grant(place)

"""Calls of the store: repeated until their outcome is known, and paced to leave room for others.

* A call without an answer is made again: every call here is idempotent. Errors that do not pass by
  themselves (forbidden, not trusted, full, compacted) are raised at once.
* A swap that is refused after an attempt without an answer may have been carried out by that very
  attempt, so the key is read: if it holds our value, the swap is ours.
* Work in the background rests after each call, usually four times as long as the call took: so it
  uses at most a fifth of the time, however slow etcd is. A `Pace` may ask for less rest.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, ParamSpec, TypeVar

from paddock.log.etcd.pace import REST, Pace
from paddock.log.etcd.statuses import UntrustedError
from paddock.log.etcd.store import (
    CompactedError,
    Guard,
    Store,
    StoreError,
    StoreForbiddenError,
    StoreFullError,
)

P = ParamSpec("P")
T = TypeVar("T")

# What the same call would meet again.
FINAL_ERRORS: Final = (StoreForbiddenError, UntrustedError, StoreFullError, CompactedError)

# How often a call is made before its error is raised. With the pauses between them that is half a
# minute and more: an election of etcd's takes two seconds.
ATTEMPTS_MAX: Final = 20
PAUSE_S_MIN: Final = 0.1
PAUSE_S_MAX: Final = 2.0


class Calls:
    """How calls are repeated and paced. Many tasks may share one."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rest: float = REST,
        attempts_max: int = ATTEMPTS_MAX,
        pace: Pace | None = None,
    ) -> None:
        # What decides how long a paced call is rested after; None if that does not change.
        self.pace = pace
        self._clock = clock
        self._sleep = sleep
        # In terms of the call's own time.
        self._rest = rest
        self._attempts_max = attempts_max

    async def repeat(self, call: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Make an idempotent call until it is answered."""
        result, _ = await self._repeat(call, *args, **kwargs)
        return result

    async def paced(self, call: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Make an idempotent call until it is answered, then rest."""
        result, took_s = await self._repeat(call, *args, **kwargs)
        rest = self._rest if self.pace is None else self.pace.rest()
        if rest:
            await self._sleep(rest * took_s)
        return result

    async def _repeat(
        self, call: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> tuple[T, float]:
        """Return the answer, and how long the attempt took that was answered."""
        pause_s = PAUSE_S_MIN
        attempts = 1
        while True:
            begun = self._clock()
            try:
                return await call(*args, **kwargs), self._clock() - begun
            except FINAL_ERRORS:
                raise
            except StoreError:
                if attempts >= self._attempts_max:
                    raise
            await self._sleep(pause_s)
            pause_s = min(2 * pause_s, PAUSE_S_MAX)
            attempts += 1

    async def swap(
        self, store: Store, key: bytes, value: bytes, mod_revision: int, guard: Guard | None = None
    ) -> int:
        """Write a key if it still has a revision, and rest; return the revision of the write.

        Returns 0 if the key or its guard has changed. No other process may write the same value:
        it would be taken for ours.
        """
        revision = await self.paced(store.swap, key, value, mod_revision, guard)
        if revision:
            return revision
        found = (await self.repeat(store.read, key)).found[0]
        if found is not None and found.value == value and found.mod_revision != mod_revision:
            return found.mod_revision
        return 0


# For work in the background, and for commands that somebody waits for.
PACED: Final = Calls()
UNPACED: Final = Calls(rest=0)

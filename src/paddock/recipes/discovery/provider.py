"""Service provider: the instances of a service in memory, and a choice among them.

    async with ServiceProvider(registry, "search", Choice.ROUND_ROBIN) as provider:
        instance = provider.choose()

The instances are kept up to date in the background; `choose` sends no request, and never waits.

* Suspension (the connection is lost): it keeps the last known instances, and `is_stale` says so.
* Expiry: it goes on in another session, as the registry does.
* Cancellation: leaving the scope ends it.
* Never promised: that a chosen instance is still there. If it cannot be used, call `report_error`,
  and choose again.
"""

from __future__ import annotations

import asyncio
import enum
from bisect import bisect
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from paddock.client.requests.arguments import check_count, check_seconds
from paddock.errors import InvalidArgumentError
from paddock.recipes.cache.cache import Cache
from paddock.recipes.common.background import Background
from paddock.recipes.common.retry import check_name
from paddock.recipes.discovery.discovery import ServiceRegistry
from paddock.recipes.discovery.instance import ServiceInstance


class ServiceCache(Background):
    """The instances of one service, in memory.

        async with ServiceCache(registry, "search") as cache:
            print([one.id for one in cache.instances])  # ['search-1']

    Entering the scope waits until they were read.
    """

    def __init__(self, registry: ServiceRegistry, name: str) -> None:
        given: object = registry
        if not isinstance(given, ServiceRegistry):
            raise InvalidArgumentError(f"registry: expected a ServiceRegistry, not {given!r}")
        check_name("name", name)
        super().__init__(f"the cache of service {name}")
        self.name: Final = name
        self._registry = registry
        # All known instances, in the order of their ids.
        self.instances: tuple[ServiceInstance, ...] = ()
        # Where they come from.
        self._cache: Cache | None = None
        self._is_ready = False

    @property
    def is_stale(self) -> bool:
        """Whether changes may be missing, as while the connection is lost."""
        return self._cache is None or self._cache.is_stale

    def start(self) -> None:
        """Begin to read, as entering the scope does; `close` has to follow."""
        self._check_unstarted()
        self._task = self._registry.start_task(self._follow())

    async def wait_ready(self) -> None:
        """Wait until all instances were read."""
        await self._wait_until(lambda: self._is_ready)

    async def watch(self) -> AsyncIterator[tuple[ServiceInstance, ...]]:
        """Yield all instances, once they were read, then again at every change.

        It ends when this is closed.
        """
        await self.wait_ready()
        told: tuple[ServiceInstance, ...] | None = None
        while not self._is_over:
            if told != self.instances:
                told = self.instances
                yield told
            else:
                await self._changed.wait()
        if not self._is_closed and self._failure is not None:
            raise self._failure

    async def _open(self) -> None:
        self.start()
        await self.wait_ready()

    async def _follow(self) -> None:
        try:
            async with aclosing(self._registry.follow_cached(self.name)) as states:
                async for instances, self._cache in states:
                    self.instances = tuple(instances)
                    self._is_ready = True
                    self._wake()
            self._failure = self._closed()
        except Exception as error:
            # Raised to the waiters.
            self._failure = error
        finally:
            self._cache = None
            self._wake()


class Choice(enum.StrEnum):
    """How an instance is chosen."""

    #: Any of them.
    RANDOM = "random"
    #: One after the other, in the order of their ids.
    ROUND_ROBIN = "round robin"
    #: The same one, as long as it exists.
    STICKY = "sticky"
    #: Any of them, those with more weight more often.
    WEIGHTED = "weighted"


@dataclass(slots=True)
class _Record:
    """The errors of an instance."""

    errors: int
    # Errors until then count together, by the event loop's clock.
    until: float
    down_until: float


class ServiceProvider(ServiceCache):
    """Chooses an instance of a service that is not marked down.

        async with ServiceProvider(registry, "search") as provider:
            instance = provider.choose()
            print(instance.id)  # search-1

    An instance with `errors_max` errors within `down_seconds` is marked down, and is not chosen for
    so long.
    """

    def __init__(
        self,
        registry: ServiceRegistry,
        name: str,
        choice: Choice = Choice.RANDOM,
        *,
        errors_max: int = 3,
        down_seconds: float = 30.0,
    ) -> None:
        super().__init__(registry, name)
        given: object = choice
        if not isinstance(given, Choice):
            raise InvalidArgumentError(f"choice: expected a Choice, not {given!r}")
        check_count("errors_max", errors_max)
        check_seconds("down_seconds", down_seconds)
        self._choice = choice
        self._errors_max = errors_max
        self._down_seconds = down_seconds
        self._loop = asyncio.get_running_loop()
        self._records: dict[str, _Record] = {}
        # The id of the last choice.
        self._last = ""

    def choose(self) -> ServiceInstance | None:
        """Return an instance that is not marked down; None if there is none."""
        chosen = self._choose([one for one in self.instances if not self.is_down(one)])
        if chosen is not None:
            self._last = chosen.id
        return chosen

    def report_error(self, instance: ServiceInstance) -> None:
        """Count an error of an instance, which may mark it down."""
        now = self._loop.time()
        # Old errors do not pile up.
        self._records = {id: one for id, one in self._records.items() if now < one.until}
        record = self._records.setdefault(instance.id, _Record(0, now + self._down_seconds, now))
        record.errors += 1
        if record.errors >= self._errors_max:
            record.errors = 0
            record.until = record.down_until = now + self._down_seconds

    def is_down(self, instance: ServiceInstance) -> bool:
        """Return whether an instance is marked down."""
        record = self._records.get(instance.id)
        return record is not None and self._loop.time() < record.down_until

    def _choose(self, candidates: list[ServiceInstance]) -> ServiceInstance | None:
        if not candidates:
            return None
        if self._choice is Choice.ROUND_ROBIN:
            later = [one for one in candidates if one.id > self._last]
            return (later or candidates)[0]
        if self._choice is Choice.STICKY and self._last in (ids := [one.id for one in candidates]):
            return candidates[ids.index(self._last)]
        if self._choice is Choice.WEIGHTED:
            ends = [*accumulate(one.weight for one in candidates)]
            return candidates[bisect(ends, self._registry.new_number() % ends[-1])]
        return candidates[self._registry.new_number() % len(candidates)]

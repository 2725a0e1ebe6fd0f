"""Service provider: all instances of a service at hand, and one of them chosen.

    async with ServiceProvider(registry, "search", Choice.ROUND_ROBIN) as provider:
        instance = provider.choose()

The instances are kept up to date in the background; `choose` asks nobody, and never waits.

* Suspension (the connection is lost): it goes on with what was last known, and `is_stale` says so.
* Expiry: it goes on, too, and follows in another session, as the registry does.
* Cancellation: leaving the scope ends it.
* Never promised: that an instance that is chosen is still there. Whoever cannot use it says so with
  `report_error`, and chooses again.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from paddock.client.requests.arguments import check_count, check_seconds
from paddock.errors import InvalidArgumentError, RecipeClosedError, UsageError
from paddock.recipes.cache.cache import Cache
from paddock.recipes.discovery.discovery import ServiceRegistry
from paddock.recipes.discovery.instance import ServiceInstance, check_name


class ServiceCache:
    """All instances of one service, at hand.

        async with ServiceCache(registry, "search") as cache:
            print([one.id for one in cache.instances])  # ['search-1']

    Entering the scope waits until they were read once.
    """

    def __init__(self, registry: ServiceRegistry, name: str) -> None:
        check_name("name", name)
        self.name: Final = name
        self._registry = registry
        self._instances: tuple[ServiceInstance, ...] = ()
        # Where they come from.
        self._cache: Cache | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False
        self._failure: Exception | None = None
        # They were read once, or it is over.
        self._ready = asyncio.Event()
        # They have changed, or it is over; there is a new one for each time.
        self._news = asyncio.Event()

    async def __aenter__(self) -> Self:
        self.start()
        try:
            await self.wait_ready()
        except BaseException:
            self._stop()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def instances(self) -> tuple[ServiceInstance, ...]:
        """All instances that there are, as far as we know, in the order of their ids."""
        return self._instances

    @property
    def is_stale(self) -> bool:
        """Whether there may be news that have not reached us, as while the connection is lost."""
        return self._cache is None or self._cache.is_stale

    def start(self) -> None:
        """Begin to read, as entering the scope does; whoever calls this calls `close`, too."""
        if self._is_closed:
            raise self._closed()
        if self._task is not None:
            raise UsageError(f"the instances of {self.name} were asked for before")
        self._task = self._registry.start_task(self._follow())

    async def wait_ready(self) -> None:
        """Wait until all instances were read once."""
        if self._task is None and not self._is_closed:
            raise UsageError(f"the instances of {self.name} were not asked for; enter the scope")
        await self._ready.wait()
        if self._failure is not None:
            raise self._failure
        if self._is_closed:
            raise self._closed()

    async def watch(self) -> AsyncIterator[tuple[ServiceInstance, ...]]:
        """Give all instances, once they were read, then again whenever they have changed.

        What is given is what is at hand from that moment on. It ends when this is closed.
        """
        await self.wait_ready()
        told: tuple[ServiceInstance, ...] | None = None
        while not self._is_closed and self._failure is None:
            if told != self._instances:
                told = self._instances
                yield told
            else:
                await self._news.wait()
        if not self._is_closed and self._failure is not None:
            raise self._failure

    async def close(self) -> None:
        """Follow no more; what is known stays there. Closing twice is fine."""
        self._stop()
        if self._task is not None:
            await asyncio.wait([self._task])

    def _closed(self) -> RecipeClosedError:
        return RecipeClosedError(f"the instances of {self.name} are followed no more")

    def _tell(self) -> None:
        self._ready.set()
        news, self._news = self._news, asyncio.Event()
        news.set()

    def _stop(self) -> None:
        self._is_closed = True
        self._tell()
        if self._task is not None:
            self._task.cancel()

    async def _follow(self) -> None:
        try:
            async with aclosing(self._registry.follow_cached(self.name)) as states:
                async for instances, self._cache in states:
                    self._instances = tuple(instances)
                    self._tell()
            self._failure = self._closed()
        except Exception as error:
            # Whoever waits for us is told.
            self._failure = error
        finally:
            self._cache = None
            self._tell()


class Choice(enum.Enum):
    """How an instance is chosen."""

    #: Each time any of them.
    RANDOM = "random"
    #: One after the other, in the order of their ids.
    ROUND_ROBIN = "round robin"
    #: Always the same one, as long as it is there.
    STICKY = "sticky"
    #: Any of them, those with more weight more often.
    WEIGHTED = "weighted"

    def __str__(self) -> str:
        return self.value


@dataclass(slots=True)
class _Record:
    """What is held against an instance."""

    errors: int
    # They count together when they come within this time, by the event loop's clock.
    until: float
    down_until: float


class ServiceProvider(ServiceCache):
    """Chooses an instance of a service, of those that are there and not marked down.

        async with ServiceProvider(registry, "search") as provider:
            instance = provider.choose()
            print(instance.id)  # search-1

    An instance with `errors_max` errors within `down_seconds` is marked down, and is not chosen for
    so long; then it has another chance.
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
        # The id of the last one that was chosen.
        self._last = ""

    def choose(self) -> ServiceInstance | None:
        """Give an instance to use; None if there is none that is not marked down."""
        now = self._loop.time()
        chosen = self._choose([one for one in self.instances if not self._is_down(one, now)])
        if chosen is not None:
            self._last = chosen.id
        return chosen

    def report_error(self, instance: ServiceInstance) -> None:
        """Say that an instance could not be used; after some of these it is marked down."""
        now = self._loop.time()
        self._forget_old(now)
        record = self._records.get(instance.id)
        if record is None:
            record = self._records[instance.id] = _Record(0, now + self._down_seconds, now)
        record.errors += 1
        if record.errors >= self._errors_max:
            record.errors = 0
            record.until = record.down_until = now + self._down_seconds

    def is_down(self, instance: ServiceInstance) -> bool:
        """Tell whether an instance is marked down at the moment."""
        return self._is_down(instance, self._loop.time())

    def _is_down(self, instance: ServiceInstance, now: float) -> bool:
        record = self._records.get(instance.id)
        return record is not None and now < record.down_until

    def _forget_old(self, now: float) -> None:
        """Keep nothing in mind that is over, so that it cannot pile up."""
        self._records = {id: one for id, one in self._records.items() if now < one.until}

    def _choose(self, candidates: list[ServiceInstance]) -> ServiceInstance | None:
        if not candidates:
            return None
        if self._choice is Choice.ROUND_ROBIN:
            later = [one for one in candidates if one.id > self._last]
            return (later or candidates)[0]
        if self._choice is Choice.STICKY:
            for one in candidates:
                if one.id == self._last:
                    return one
        if self._choice is Choice.WEIGHTED:
            number = self._registry.new_number() % sum(one.weight for one in candidates)
            for one in candidates:
                number -= one.weight
                if number < 0:
                    return one
        return candidates[self._registry.new_number() % len(candidates)]

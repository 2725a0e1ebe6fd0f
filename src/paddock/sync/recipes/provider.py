"""The blocking twin of `paddock.recipes.discovery.provider`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from paddock.recipes.discovery.instance import ServiceInstance
from paddock.recipes.discovery.provider import Choice
from paddock.recipes.discovery.provider import ServiceCache as AsyncServiceCache
from paddock.recipes.discovery.provider import ServiceProvider as AsyncServiceProvider
from paddock.sync.recipes.background import Background
from paddock.sync.recipes.discovery import ServiceRegistry
from paddock.sync.streams import Stream


class ServiceCache(Background):
    """The instances of one service, in memory.

        with ServiceCache(registry, "search") as cache:
            print([one.id for one in cache.instances])  # ['search-1']

    Entering the scope waits until they were read.
    """

    _inner: AsyncServiceCache

    def __init__(self, registry: ServiceRegistry, name: str) -> None:
        self._make("registry", registry, lambda bridge: AsyncServiceCache(registry._inner, name))

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def instances(self) -> tuple[ServiceInstance, ...]:
        """All known instances, in the order of their ids."""
        return self._inner.instances

    @property
    def is_stale(self) -> bool:
        """Whether changes may be missing, as while the connection is lost."""
        return self._inner.is_stale

    def start(self) -> None:
        """Begin to read, as entering the scope does; `close` has to follow."""
        self._bridge.run(self._inner.start)

    def wait_ready(self) -> None:
        """Wait until all instances were read."""
        self._bridge.call(self._inner.wait_ready)

    def watch(self) -> Stream[tuple[ServiceInstance, ...]]:
        """Yield all instances, once they were read, then again at every change.

        It ends when this is closed.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.watch))


class ServiceProvider(ServiceCache):
    """Chooses an instance of a service that is not marked down.

        with ServiceProvider(registry, "search") as provider:
            instance = provider.choose()
            print(instance.id)  # search-1

    An instance with `errors_max` errors within `down_seconds` is marked down, and is not chosen for
    so long.
    """

    _inner: AsyncServiceProvider

    def __init__(
        self,
        registry: ServiceRegistry,
        name: str,
        choice: Choice = Choice.RANDOM,
        *,
        errors_max: int = 3,
        down_seconds: float = 30.0,
    ) -> None:
        self._make(
            "registry",
            registry,
            lambda bridge: AsyncServiceProvider(
                registry._inner, name, choice, errors_max=errors_max, down_seconds=down_seconds
            ),
        )

    def choose(self) -> ServiceInstance | None:
        """Return an instance that is not marked down; None if there is none."""
        return self._bridge.run(self._inner.choose)

    def report_error(self, instance: ServiceInstance) -> None:
        """Count an error of an instance, which may mark it down."""
        self._bridge.run(self._inner.report_error, instance)

    def is_down(self, instance: ServiceInstance) -> bool:
        """Return whether an instance is marked down."""
        return self._bridge.run(self._inner.is_down, instance)

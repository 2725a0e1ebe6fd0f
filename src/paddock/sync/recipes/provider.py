"""The blocking twin of `paddock.recipes.discovery.provider`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from typing import Self

from paddock.recipes.discovery.instance import ServiceInstance
from paddock.recipes.discovery.provider import Choice
from paddock.recipes.discovery.provider import ServiceCache as AsyncServiceCache
from paddock.recipes.discovery.provider import ServiceProvider as AsyncServiceProvider
from paddock.sync.bridge import Twin, bridge_of
from paddock.sync.recipes.discovery import ServiceRegistry
from paddock.sync.streams import Stream


class ServiceCache(Twin[AsyncServiceCache]):
    """All instances of one service, at hand.

        with ServiceCache(registry, "search") as cache:
            print([one.id for one in cache.instances])  # ['search-1']

    Entering the scope waits until they were read once.
    """

    def __init__(self, registry: ServiceRegistry, name: str) -> None:
        bridge = bridge_of("registry", registry)
        super().__init__(bridge, bridge.run(AsyncServiceCache, registry._inner, name), registry)

    @property
    def name(self) -> str:
        return self._inner.name

    def __enter__(self) -> Self:
        self._enter_scope(self._inner)
        return self

    @property
    def instances(self) -> tuple[ServiceInstance, ...]:
        """All instances that there are, as far as we know, in the order of their ids."""
        return self._inner.instances

    @property
    def is_stale(self) -> bool:
        """Whether there may be news that have not reached us, as while the connection is lost."""
        return self._inner.is_stale

    def start(self) -> None:
        """Begin to read, as entering the scope does; whoever calls this calls `close`, too."""
        self._bridge.run(self._inner.start)

    def wait_ready(self) -> None:
        """Wait until all instances were read once."""
        self._bridge.call(self._inner.wait_ready)

    def watch(self) -> Stream[tuple[ServiceInstance, ...]]:
        """Give all instances, once they were read, then again whenever they have changed.

        What is given is what is at hand from that moment on. It ends when this is closed.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.watch))

    def close(self) -> None:
        """Follow no more; what is known stays there. Closing twice is fine."""
        self._bridge.call(self._inner.close)


class ServiceProvider(Twin[AsyncServiceProvider]):
    """Chooses an instance of a service, of those that are there and not marked down.

        with ServiceProvider(registry, "search") as provider:
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
        bridge = bridge_of("registry", registry)
        super().__init__(
            bridge,
            bridge.run(
                AsyncServiceProvider,
                registry._inner,
                name,
                choice,
                errors_max=errors_max,
                down_seconds=down_seconds,
            ),
            registry,
        )

    @property
    def name(self) -> str:
        return self._inner.name

    def choose(self) -> ServiceInstance | None:
        """Give an instance to use; None if there is none that is not marked down."""
        return self._bridge.run(self._inner.choose)

    def report_error(self, instance: ServiceInstance) -> None:
        """Say that an instance could not be used; after some of these it is marked down."""
        self._bridge.run(self._inner.report_error, instance)

    def is_down(self, instance: ServiceInstance) -> bool:
        """Tell whether an instance is marked down at the moment."""
        return self._bridge.run(self._inner.is_down, instance)

    def __enter__(self) -> Self:
        self._enter_scope(self._inner)
        return self

    @property
    def instances(self) -> tuple[ServiceInstance, ...]:
        """All instances that there are, as far as we know, in the order of their ids."""
        return self._inner.instances

    @property
    def is_stale(self) -> bool:
        """Whether there may be news that have not reached us, as while the connection is lost."""
        return self._inner.is_stale

    def start(self) -> None:
        """Begin to read, as entering the scope does; whoever calls this calls `close`, too."""
        self._bridge.run(self._inner.start)

    def wait_ready(self) -> None:
        """Wait until all instances were read once."""
        self._bridge.call(self._inner.wait_ready)

    def watch(self) -> Stream[tuple[ServiceInstance, ...]]:
        """Give all instances, once they were read, then again whenever they have changed.

        What is given is what is at hand from that moment on. It ends when this is closed.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.watch))

    def close(self) -> None:
        """Follow no more; what is known stays there. Closing twice is fine."""
        self._bridge.call(self._inner.close)

"""The blocking twin of `paddock.recipes.discovery`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paddock import recipes
from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.recipes import Choice, InstancesListener, ServiceInstance
from paddock.sync.bridge import ScopedTwin
from paddock.sync.client import Client
from paddock.sync.streams import Stream


class ServiceRegistry(ScopedTwin[recipes.ServiceRegistry]):
    """All services below a node, and our own registrations.

        registry = ServiceRegistry(client, "/services")
        with registry:
            registry.register(ServiceInstance("search", "search-1"))
            print(registry.services())  # ['search']

    The `acl` is for the nodes of instances.
    """

    def __init__(self, client: Client, base: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        self._make(
            "client", client, lambda bridge: recipes.ServiceRegistry(client._inner, base, acl=acl)
        )

    @property
    def base(self) -> str:
        return self._inner.base

    def register(self, instance: ServiceInstance) -> None:
        """Register an instance, until it is unregistered.

        Registering it again changes its data. If an older session has left a node there, such as
        that of our own program before a restart, it waits until that is gone.
        """
        self._bridge.call(self._inner.register, instance)

    def unregister(self, name: str, id: str) -> None:
        """Unregister an instance, ours or not, if it exists.

        It does not come back, although its owner lives. For one of ours it waits no longer than the
        session surely lives: then its node goes with the session, or as soon as a server answers.
        """
        self._bridge.call(self._inner.unregister, name, id)

    def instances(self, name: str) -> list[ServiceInstance]:
        """Return all instances of a service, in the order of their ids."""
        return self._bridge.call(self._inner.instances, name)

    def services(self) -> list[str]:
        """Return the names of all services that have instances, sorted."""
        return self._bridge.call(self._inner.services)

    def watch(self, name: str) -> Stream[list[ServiceInstance]]:
        """Yield all instances of a service, by their ids, then again at every change.

            for instances in registry.watch("search"):
                print([one.id for one in instances])  # ['search-1']
                break

        Intermediate states may be left out, the last one never. It ends when the registry is
        closed.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.watch, name))

    def follow(
        self,
        name: str,
        *,
        started: InstancesListener | None = None,
        changed: InstancesListener | None = None,
        stopped: Callable[[], None] | None = None,
    ) -> None:
        """Watch a service with callbacks, until the registry is closed, or the call is given up.

        First `started` is called with all instances, then `changed` with all of them at every
        change, and finally `stopped`. A callback is like any listener. It may make calls. What it
        raises is logged.
        """
        self._bridge.call(
            self._inner.follow,
            name,
            started=self._bridge.callbacks.relay(started),
            changed=self._bridge.callbacks.relay(changed),
            stopped=self._bridge.callbacks.relay(stopped),
        )

    def close(self) -> None:
        """Unregister everything that was registered through it, and end its watches.

        If it is given up, that goes on in the background. Closing twice is fine.
        """
        self._bridge.call(self._inner.close)


class ServiceCache(ScopedTwin[recipes.ServiceCache]):
    """The instances of one service, in memory.

        with ServiceCache(registry, "search") as cache:
            print([one.id for one in cache.instances])  # ['search-1']

    Entering the scope waits until they were read.
    """

    def __init__(self, registry: ServiceRegistry, name: str) -> None:
        self._make("registry", registry, lambda bridge: recipes.ServiceCache(registry._inner, name))

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

    def close(self) -> None:
        """Stop; what is known stays. Closing twice is fine."""
        self._bridge.call(self._inner.close)


class ServiceProvider(ServiceCache):
    """Chooses an instance of a service that is not marked down.

        with ServiceProvider(registry, "search") as provider:
            instance = provider.choose()
            print(instance.id)  # search-1

    An instance with `errors_max` errors within `down_seconds` is marked down, and is not chosen for
    so long.
    """

    _inner: recipes.ServiceProvider

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
            lambda bridge: recipes.ServiceProvider(
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

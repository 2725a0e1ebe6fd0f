"""The blocking twin of `paddock.recipes.discovery.discovery`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.recipes.discovery.discovery import InstancesListener
from paddock.recipes.discovery.discovery import ServiceRegistry as AsyncServiceRegistry
from paddock.recipes.discovery.instance import ServiceInstance
from paddock.sync.bridge import Twin
from paddock.sync.client import Client
from paddock.sync.streams import Stream


class ServiceRegistry(Twin[AsyncServiceRegistry]):
    """All services below a node, and our own registrations.

        registry = ServiceRegistry(client, "/services")
        with registry:
            registry.register(ServiceInstance("search", "search-1"))
            print(registry.services())  # ['search']

    The `acl` is for the nodes of instances.
    """

    def __init__(self, client: Client, base: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        self._make(
            "client", client, lambda bridge: AsyncServiceRegistry(client._inner, base, acl=acl)
        )

    @property
    def base(self) -> str:
        return self._inner.base

    def __enter__(self) -> Self:
        self._enter_scope(self._inner)
        return self

    def register(self, instance: ServiceInstance) -> None:
        """Register an instance, until it is unregistered.

        Registering it again changes its data. If an older session has left a node there, such as
        that of our own program before a restart, it waits until that is gone.
        """
        self._bridge.call(self._inner.register, instance)

    def unregister(self, name: str, id: str) -> None:
        """Unregister an instance, ours or not, if it exists.

        It does not come back, although its owner lives.
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
        """Unregister everything that was registered through it, and end its watches."""
        self._bridge.call(self._inner.close)

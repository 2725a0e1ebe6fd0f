"""Service discovery: instances register, and clients find and watch them.

    async with ServiceRegistry(client, "/services") as registry:
        await registry.register(ServiceInstance("search", "search-1", "10.0.0.1", 8080))
        print([one.id for one in await registry.instances("search")])  # ['search-1']

An instance is an ephemeral node, `/services/search/search-1`, in the layout of Curator's service
discovery. Guaranteed is that a registered instance exists while its owner's session lives, unless
it is unregistered, and that a watch sees the last state. Nodes that hold no instance are skipped,
with a warning in the log.

* Suspension (the connection is lost): registrations stay as long as the session lives; a watch
  goes on later.
* Expiry: another session is opened, by a client with the same settings; registrations and watches
  go on. That ends when the registry or its client is closed.
* Cancellation: a cancelled registration is taken back, in the background. Leaving the scope
  unregisters everything that was registered through it.
* An unregistered instance stays gone, although its owner lives. The exception, and so not promised:
  an owner that is cut off at that time until its session has expired registers again.

`ServiceProvider` chooses one of the instances of a service.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import aclosing
from typing import Any, Final, Self, TypeAlias

from paddock.client.client import Client
from paddock.client.requests.arguments import check_watcher
from paddock.client.states import SessionState
from paddock.errors import RecipeClosedError, SessionExpiredError
from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.protocol.paths import child_path
from paddock.recipes.cache.cache import Cache
from paddock.recipes.cache.tree import CachedNode, Snapshot
from paddock.recipes.common.background import Recipe
from paddock.recipes.common.recreated_node import RecreatedNode, SessionRenewer
from paddock.recipes.common.retry import (
    check_name,
    delete_first,
    list_children,
    request_each,
    wait_finished,
)
from paddock.recipes.discovery.instance import (
    MalformedInstanceError,
    ServiceInstance,
    decoded,
    encoded,
)

logger = logging.getLogger(__name__)

# Called with all instances.
InstancesListener: TypeAlias = Callable[[list[ServiceInstance]], None]


class ServiceRegistry(Recipe):
    """All services below a node, and our own registrations.

        registry = ServiceRegistry(client, "/services")
        async with registry:
            await registry.register(ServiceInstance("search", "search-1"))
            print(await registry.services())  # ['search']

    The `acl` is for the nodes of instances.
    """

    def __init__(self, client: Client, base: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        super().__init__(client, base, acl)
        self.base: Final = base
        self._renewer = SessionRenewer(client)
        # Our registrations, by their paths.
        self._own: dict[str, RecreatedNode] = {}
        # The open watches.
        self._caches: set[Cache] = set()
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def register(self, instance: ServiceInstance) -> None:
        """Register an instance, until it is unregistered.

        Registering it again changes its data. If an older session has left a node there, such as
        that of our own program before a restart, it waits until that is gone.
        """
        self._check()
        path = self._path_of(instance.name, instance.id)
        data = encoded(instance)
        node = self._own.get(path)
        if node is not None and not node.is_over:
            return await node.set_data(data)
        self._own[path] = node = RecreatedNode(
            self._renewer, path, data, ephemeral=True, recreate=False, acl=self._acl
        )
        node.start()
        try:
            await node.wait_there()
        except BaseException:
            # Not awaited: a cancelled task must not wait for the service.
            if self._own.get(path) is node:
                del self._own[path]
            node.leave_soon()
            raise

    async def unregister(self, name: str, id: str) -> None:
        """Unregister an instance, ours or not, if it exists.

        It does not come back, although its owner lives. For one of ours it waits no longer than the
        session surely lives: then its node goes with the session, or as soon as a server answers.
        """
        self._check()
        path = self._path_of(name, id)
        node = self._own.pop(path, None)
        if node is not None:
            return await node.close()
        # A later registration stays, also if our reply was lost.
        return await self._renewer.ask(delete_first(path))

    async def instances(self, name: str) -> list[ServiceInstance]:
        """Return all instances of a service, in the order of their ids."""
        self._check()
        path = self._path_of(name)

        async def read(client: Client) -> list[ServiceInstance]:
            paths = [child_path(path, one) for one in await list_children(client, path)]
            found = await request_each(client.get, paths)
            nodes = [CachedNode(one, *node) for one, node in found.items()]
            return _in_order(filter(None, map(_instance_of, nodes)))

        return await self._renewer.ask(read)

    async def services(self) -> list[str]:
        """Return the names of all services that have instances, sorted."""
        self._check()

        async def read(client: Client) -> list[str]:
            names = await list_children(client, self.base)
            stats = await asyncio.gather(*(client.exists(self._path_of(name)) for name in names))
            return sorted(
                name
                for name, stat in zip(names, stats, strict=True)
                if stat is not None and stat.num_children
            )

        return await self._renewer.ask(read)

    async def watch(self, name: str) -> AsyncGenerator[list[ServiceInstance], None]:
        """Yield all instances of a service, by their ids, then again at every change.

            async for instances in registry.watch("search"):
                print([one.id for one in instances])  # ['search-1']
                break

        Intermediate states may be left out, the last one never. It ends when the registry is
        closed.
        """
        async with aclosing(self.follow_cached(name)) as states:
            async for instances, _ in states:
                yield instances

    async def follow(
        self,
        name: str,
        *,
        started: InstancesListener | None = None,
        changed: InstancesListener | None = None,
        stopped: Callable[[], None] | None = None,
    ) -> None:
        """Watch a service with callbacks, until the registry is closed, or the call is cancelled.

        First `started` is called with all instances, then `changed` with all of them at every
        change, and finally `stopped`. A callback is like any listener. It must not block. What it
        raises goes to the event loop's exception handler.
        """
        for what, callback in (("started", started), ("changed", changed), ("stopped", stopped)):
            if callback is not None:
                check_watcher(what, callback)
        is_started = False
        try:
            async with aclosing(self.watch(name)) as states:
                async for instances in states:
                    _call(changed if is_started else started, instances)
                    is_started = True
        finally:
            if is_started:
                _call(stopped)

    async def close(self) -> None:
        """Unregister everything that was registered through it, and end its watches.

        If it is cancelled, that goes on in the background. Closing twice is fine.
        """
        self._is_closed = True
        await wait_finished([self.start_task(self._close())])

    async def _close(self) -> None:
        closing = [one.close() for one in (*self._own.values(), *self._caches)]
        try:
            await asyncio.gather(*closing)
        finally:
            await self._renewer.close()

    async def follow_cached(
        self, name: str
    ) -> AsyncGenerator[tuple[list[ServiceInstance], Cache], None]:
        """Yield what `watch` yields, and the cache that it comes from."""
        self._check()
        path = self._path_of(name)
        told: list[ServiceInstance] | None = None
        while not self._is_closed:
            client = await self._renewer.living()
            cache = Cache(client, path, depth=1)
            self._caches.add(cache)
            try:
                async for instances in _states(cache):
                    if instances != told:
                        told = instances
                        yield list(instances), cache
            except SessionExpiredError:
                if client.state is not SessionState.EXPIRED:
                    raise
            except RecipeClosedError:
                # While it was being opened.
                pass
            finally:
                self._caches.discard(cache)
                await cache.close()

    def new_number(self) -> int:
        """Return a random number of 128 bits."""
        return int(self._renewer.client.new_mark(), 16)

    def start_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task that ends with the user's client."""
        return self._renewer.first.start_task(work)

    def _check(self) -> None:
        if self._is_closed:
            raise RecipeClosedError(f"the registry of {self.base} was closed")

    def _path_of(self, name: str, *ids: str) -> str:
        check_name("name", name)
        path = child_path(self.base, name)
        for one in ids:
            check_name("id", one)
            path = child_path(path, one)
        return path


async def _states(cache: Cache) -> AsyncIterator[list[ServiceInstance]]:
    """Yield the instances in a cache, once it is ready, and again at every change."""
    async with cache:
        seen: Snapshot | None = None
        known: dict[CachedNode, ServiceInstance | None] = {}
        changes = aiter(cache.changes())
        while True:
            if cache.snapshot() is not seen:
                seen = cache.snapshot()
                nodes = [node for path, node in seen.items() if path != cache.path]
                # Each is decoded once, and logged once.
                known = {one: known[one] if one in known else _instance_of(one) for one in nodes}
                yield _in_order(filter(None, known.values()))
            if await anext(changes, None) is None:
                return


def _instance_of(node: CachedNode) -> ServiceInstance | None:
    try:
        return decoded(node.data)
    except MalformedInstanceError as error:
        logger.warning("%s is skipped, it holds no instance of a service: %s", node.path, error)
        return None


def _in_order(instances: Iterator[ServiceInstance]) -> list[ServiceInstance]:
    return sorted(instances, key=lambda one: one.id)


def _call(callback: Callable[..., None] | None, *arguments: Any) -> None:
    if callback is not None:
        try:
            callback(*arguments)
        except Exception as error:
            asyncio.get_running_loop().call_exception_handler(
                {"message": "a callback of a service's watch failed", "exception": error}
            )

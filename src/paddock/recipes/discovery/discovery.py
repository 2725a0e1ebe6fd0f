"""Service discovery: instances of services register, others find them and hear of changes.

    async with ServiceRegistry(client, "/services") as registry:
        await registry.register(ServiceInstance("search", "search-1", "10.0.0.1", 8080))
        print([one.id for one in await registry.instances("search")])  # ['search-1']

An instance is an ephemeral node, `/services/search/search-1`, in the layout of Curator's service
discovery. Guaranteed is that a registered instance is there while its owner's session lives, unless
somebody unregisters it, and that whoever watches comes to see the last state of things. Nodes that
hold no instance are skipped, with a line in the log.

* Suspension (the connection is lost): what is registered stays there as long as the session lives;
  what is watched is told later.
* Expiry: another session is opened, by a client like the one that was given, what was registered is
  registered again, and watching goes on. That ends when the registry or its client is closed.
* Cancellation: a registration that is cancelled is taken back, in the background. Leaving the scope
  unregisters everything that was registered through it.
* An instance that somebody unregisters stays gone, although its owner lives. Never promised is that
  alone for an owner that is cut off at that time and stays so until its session has expired: it
  cannot tell, and registers again.

`ServiceProvider` chooses one of the instances of a service.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from paddock.client.client import Client
from paddock.client.requests.arguments import check_watcher, checked_acl, checked_path
from paddock.client.states import SessionState
from paddock.errors import NoNodeError, RecipeClosedError, SessionExpiredError
from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.recipes.cache.cache import Cache
from paddock.recipes.cache.tree import CachedNode, Snapshot
from paddock.recipes.common.recreated_node import Kept
from paddock.recipes.common.retry import child
from paddock.recipes.common.session_renewer import Keeper
from paddock.recipes.discovery.instance import (
    MalformedInstanceError,
    ServiceInstance,
    check_name,
    decoded,
    encoded,
)

logger = logging.getLogger(__name__)

# How many instances are read at once.
_READS_MAX: Final = 256

# Called with all instances that there are.
InstancesListener: TypeAlias = Callable[[list[ServiceInstance]], None]


class ServiceRegistry:
    """All services below a node, and those that we give ourselves.

        registry = ServiceRegistry(client, "/services")
        async with registry:
            await registry.register(ServiceInstance("search", "search-1"))
            print(await registry.services())  # ['search']

    The `acl` is that of the nodes that it makes for instances.
    """

    def __init__(self, client: Client, base: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        checked_path(base)
        checked_acl(acl)
        self.base: Final = base
        self._acl = acl
        self._keeper = Keeper(client)
        # What we have registered, by its path.
        self._own: dict[str, Kept] = {}
        # What is watched at the moment.
        self._caches: set[Cache] = set()
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def register(self, instance: ServiceInstance) -> None:
        """Have an instance found by others, from now on, until it is unregistered.

        Registering it again is fine, and changes what it says about itself. If an older session has
        left it there, such as that of our own program before it was started again, it waits until
        that one has gone.
        """
        self._check()
        path = self._path_of(instance.name, instance.id)
        data = encoded(instance)
        node = self._own.get(path)
        if node is not None and not node.is_over:
            await node.set_data(data)
            return
        node = Kept(self._keeper, path, data, ephemeral=True, recreate=False, acl=self._acl)
        self._own[path] = node
        node.start()
        try:
            await node.wait_there()
        except BaseException:
            # Not awaited: whoever is cancelled must not wait for the service.
            if self._own.get(path) is node:
                del self._own[path]
            node.leave_soon()
            raise

    async def unregister(self, name: str, id: str) -> None:
        """Have an instance found no more, whoever has registered it; that it is not there is fine.

        It does not come back, although its owner lives.
        """
        self._check()
        path = self._path_of(name, id)
        node = self._own.pop(path, None)
        if node is not None:
            await node.close()
            return
        # Whatever is registered there later is another one, also if our reply was lost.
        czxid = 0

        async def delete(client: Client) -> None:
            nonlocal czxid
            stat = await client.exists(path)
            if stat is None or czxid not in (0, stat.czxid):
                return
            czxid = stat.czxid
            try:
                await client.delete(path)
            except NoNodeError:
                pass

        await self._keeper.ask(delete)

    async def instances(self, name: str) -> list[ServiceInstance]:
        """Give all instances of a service, in the order of their ids."""
        self._check()
        path = self._path_of(name)

        async def read(client: Client) -> list[ServiceInstance]:
            nodes: list[CachedNode] = []
            paths = [child(path, one) for one in await _children(client, path)]
            for start in range(0, len(paths), _READS_MAX):
                some = paths[start : start + _READS_MAX]
                answers = await asyncio.gather(*map(client.get, some), return_exceptions=True)
                for one, answer in zip(some, answers, strict=True):
                    if isinstance(answer, NoNodeError):
                        continue
                    if isinstance(answer, BaseException):
                        raise answer
                    nodes.append(CachedNode(one, *answer))
            return _in_order(filter(None, map(_instance_of, nodes)))

        return await self._keeper.ask(read)

    async def services(self) -> list[str]:
        """Give the names of all services that have instances, in order."""
        self._check()

        async def read(client: Client) -> list[str]:
            names = await _children(client, self.base)
            stats = await asyncio.gather(*(client.exists(self._path_of(name)) for name in names))
            return sorted(
                name
                for name, stat in zip(names, stats, strict=True)
                if stat is not None and stat.num_children
            )

        return await self._keeper.ask(read)

    async def watch(self, name: str) -> AsyncGenerator[list[ServiceInstance], None]:
        """Give all instances of a service, in the order of their ids, then again at every change.

            async for instances in registry.watch("search"):
                print([one.id for one in instances])  # ['search-1']
                break

        Changes in quick succession may come as one; the last state always comes. It ends when the
        registry is closed.
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
        change, and at the end, whatever that is, `stopped`. A callback is like any listener. It
        must not block. What it raises goes to the event loop's exception handler.
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
        """Unregister everything that was registered through it, and watch no more.

        Closing twice is fine.
        """
        self._is_closed = True
        own, self._own = list(self._own.values()), {}
        caches, self._caches = list(self._caches), set()
        await asyncio.gather(*(node.close() for node in own), *(cache.close() for cache in caches))
        await self._keeper.close()

    async def follow_cached(
        self, name: str
    ) -> AsyncGenerator[tuple[list[ServiceInstance], Cache], None]:
        """Give what `watch` gives, and the cache that it comes from."""
        self._check()
        path = self._path_of(name)
        told: list[ServiceInstance] | None = None
        while not self._is_closed:
            client = await self._keeper.living()
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
        """Give a random number of 128 bits."""
        return int(self._keeper.client.new_mark(), 16)

    def start_task(self, work: Any) -> asyncio.Task[None]:
        """Have something done until the client that was given is closed."""
        task: asyncio.Task[None] = self._keeper.first.start_task(work)
        return task

    def _check(self) -> None:
        if self._is_closed:
            raise RecipeClosedError(f"the registry of {self.base} was closed")

    def _path_of(self, name: str, *ids: str) -> str:
        check_name("name", name)
        path = child(self.base, name)
        for one in ids:
            check_name("id", one)
            path = child(path, one)
        return path


async def _states(cache: Cache) -> AsyncIterator[list[ServiceInstance]]:
    """Give the instances in a cache, once it is ready, and again whenever something has changed."""
    async with cache:
        seen: Snapshot | None = None
        known: dict[CachedNode, ServiceInstance | None] = {}

        def instances() -> list[ServiceInstance]:
            nonlocal known
            assert seen is not None, "there is something to look at"
            nodes = [node for path, node in seen.items() if path != cache.path]
            # Each is looked at once, and what is wrong with it is said once.
            known = {node: known[node] if node in known else _instance_of(node) for node in nodes}
            return _in_order(filter(None, known.values()))

        seen = cache.snapshot()
        yield instances()
        async for _ in cache.changes():
            if cache.snapshot() is not seen:
                seen = cache.snapshot()
                yield instances()


def _instance_of(node: CachedNode) -> ServiceInstance | None:
    try:
        return decoded(node.data)
    except MalformedInstanceError as error:
        logger.warning("%s is skipped, it holds no instance of a service: %s", node.path, error)
        return None


def _in_order(instances: Iterator[ServiceInstance]) -> list[ServiceInstance]:
    return sorted(instances, key=lambda one: one.id)


async def _children(client: Client, path: str) -> list[str]:
    try:
        return await client.children(path)
    except NoNodeError:
        return []


def _call(callback: Callable[..., None] | None, *arguments: Any) -> None:
    if callback is not None:
        try:
            callback(*arguments)
        except Exception as error:
            asyncio.get_running_loop().call_exception_handler(
                {"message": "a callback of a service's watch failed", "exception": error}
            )

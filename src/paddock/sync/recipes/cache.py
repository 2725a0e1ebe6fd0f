"""The blocking twin of `paddock.recipes.cache.cache`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from typing import Self

from paddock.recipes.cache.cache import Cache as AsyncCache
from paddock.recipes.cache.cache import CacheChange
from paddock.recipes.cache.tree import CachedNode, Snapshot
from paddock.sync.bridge import Twin, bridge_of
from paddock.sync.client import Client
from paddock.sync.streams import Stream


class Cache(Twin[AsyncCache]):
    """A node and what is below it, in memory, always as new as the service has told us.

        with Cache(client, "/app", depth=1) as cache:
            print(cache.children("/app"))  # ['color']

    Of depth 0 it has the node alone, of depth 1 its children, too, and so on; without a depth it
    has the whole tree. The node need not be there. Entering the scope waits until everything was
    read once.
    """

    def __init__(self, client: Client, path: str, *, depth: int | None = None) -> None:
        bridge = bridge_of("client", client)
        super().__init__(bridge, bridge.run(AsyncCache, client._inner, path, depth=depth), client)

    @property
    def path(self) -> str:
        return self._inner.path

    def __enter__(self) -> Self:
        self._enter_scope(self._inner)
        return self

    @property
    def is_stale(self) -> bool:
        """Whether it may be behind the service by more than what is on its way to us.

        It is, until everything was read once, and again after a lost connection; and as long as the
        server can only be read from, since such a one is cut off itself.
        """
        return self._inner.is_stale

    def start(self) -> None:
        """Begin to read, as entering the scope does; whoever calls this calls `close`, too."""
        self._bridge.run(self._inner.start)

    def wait_ready(self) -> None:
        """Wait until everything was read once.

        Raises SessionExpiredError; and NoAuthError if we may not read the node.
        """
        self._bridge.call(self._inner.wait_ready)

    def sync(self) -> None:
        """Wait until it has everything that was written before, by anybody.

            client.set("/app/color", b"green")
            cache.sync()
            print(cache.get("/app/color").data)  # b'green'

        Raises SessionExpiredError; and NoAuthError if we may not read the node.
        """
        self._bridge.call(self._inner.sync)

    def close(self) -> None:
        """Follow no more; what is known stays there to be read, stale. Closing twice is fine."""
        self._bridge.call(self._inner.close)

    def get(self, path: str) -> CachedNode | None:
        """Give a node, or None if there is no such node.

        Raises InvalidArgumentError for one that could not be in this cache.
        """
        return self._bridge.run(self._inner.get, path)

    def children(self, path: str) -> list[str]:
        """Give the names of a node's children that are in the cache, in order.

        There are none if the node is not there.
        """
        return self._bridge.run(self._inner.children, path)

    def snapshot(self) -> Snapshot:
        """Give everything as it is now, by its path.

            print(*cache.snapshot())  # /app /app/color

        It never changes, and costs next to nothing.
        """
        return self._bridge.run(self._inner.snapshot)

    def changes(self) -> Stream[CacheChange]:
        """Give everything that is there as created, then every change.

            for change in cache.changes():
                print(change.kind, change.path)  # created /app
                break

        Parents come before their children, and go after them. However slowly it is read, there is
        at most one change of each node to be read: what happened meanwhile is one. It ends when the
        cache is closed, and raises SessionExpiredError when the session is over.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.changes))

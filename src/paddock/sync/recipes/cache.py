"""The blocking twin of `paddock.recipes.cache`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from paddock import recipes
from paddock.recipes import CacheChange, CachedNode, Snapshot
from paddock.sync.bridge import ScopedTwin
from paddock.sync.client import Client
from paddock.sync.streams import Stream


class Cache(ScopedTwin[recipes.Cache]):
    """A node and its descendants, in memory.

        with Cache(client, "/app", depth=1) as cache:
            print(cache.children("/app"))  # ['color']

    With depth 0 it has the node alone, with depth 1 its children, too, and so on; without a depth
    the whole tree. The node need not exist. Entering the scope waits until everything was read.
    """

    def __init__(self, client: Client, path: str, *, depth: int | None = None) -> None:
        self._make("client", client, lambda bridge: recipes.Cache(client._inner, path, depth=depth))

    @property
    def path(self) -> str:
        return self._inner.path

    @property
    def is_stale(self) -> bool:
        """Whether it may be behind the service by more than events in flight.

        It is, until everything was read, again after a lost connection, and while the server is
        read-only, since such a server is cut off itself.
        """
        return self._inner.is_stale

    def start(self) -> None:
        """Begin to read, as entering the scope does; `close` has to follow."""
        self._bridge.run(self._inner.start)

    def wait_ready(self) -> None:
        """Wait until everything was read.

        Raises SessionExpiredError; and NoAuthError if we may not read the node.
        """
        self._bridge.call(self._inner.wait_ready)

    def sync(self) -> None:
        """Wait until it has everything that was written before, by any client.

            client.set("/app/color", b"green")
            cache.sync()
            print(cache.get("/app/color").data)  # b'green'

        Raises SessionExpiredError; and NoAuthError if we may not read the node.
        """
        self._bridge.call(self._inner.sync)

    def get(self, path: str) -> CachedNode | None:
        """Return a node, or None.

        Raises InvalidArgumentError for a path that cannot be in this cache.
        """
        return self._bridge.run(self._inner.get, path)

    def children(self, path: str) -> list[str]:
        """Return the names of a node's children in the cache, sorted; none for a missing node."""
        return self._bridge.run(self._inner.children, path)

    def snapshot(self) -> Snapshot:
        """Return all nodes as they are now, by their paths.

            print(*cache.snapshot())  # /app /app/color

        It never changes, and costs next to nothing.
        """
        return self._bridge.run(self._inner.snapshot)

    def changes(self) -> Stream[CacheChange]:
        """Yield all existing nodes as created, then every change.

            for change in cache.changes():
                print(change.kind, change.path)  # created /app
                break

        Parents come before their children, and go after them. For a slow reader, changes of one
        node are merged. It ends when the cache is closed, and raises SessionExpiredError when the
        session is over.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.changes))

    def close(self) -> None:
        """Stop; what is known stays. Closing twice is fine."""
        self._bridge.call(self._inner.close)

"""Cache: a part of the service's tree in memory, kept up to date.

    async with Cache(client, "/app") as cache:
        print(cache.get("/app/color").data)  # b'blue'

Guaranteed is that the cache equals the service's tree whenever both are quiet, whatever connections
were lost. An event only says where to read, and after a gap everything is read again. A node never
goes back to an older state. Intermediate states may be left out, the last state of a node never;
and a re-created node is never taken for the old one. `sync` waits for everything that was written
before.

* Suspension (the connection is lost): the cache keeps its nodes, and `is_stale` says so, until the
  connection is back and everything was read again.
* Expiry: it keeps its nodes, and is stale for good; streams and waits raise SessionExpiredError.
  Another client needs another cache.
* Cancellation: a cancelled wait changes nothing. Leaving the scope ends the watch.
* Never promised: that two nodes are from the same moment, while they are being changed. What must
  be consistent has to be in one node, or read in one request (`client.multi_read`).

Nodes that the client may not read are left out. Memory: every node down to the `depth` is held with
its data, and for each reader of `changes` at most one change a node.
"""

from __future__ import annotations

import asyncio
import enum
import math
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from paddock.client.client import Client
from paddock.client.requests.arguments import check_not_negative, checked_path
from paddock.client.results import NodeData
from paddock.client.states import Event, EventType, SessionState
from paddock.errors import (
    ConnectionLostError,
    InvalidArgumentError,
    NoAuthError,
    NoNodeError,
    SessionExpiredError,
)
from paddock.protocol.paths import child_path, parent_path
from paddock.recipes.cache.tree import CachedNode, Snapshot, Tree, is_below, names_below
from paddock.recipes.common.background import Background
from paddock.recipes.common.retry import Signal, check_recipe, retry

T = TypeVar("T")

# How many nodes are read at once; their data are held.
_READS_MAX: Final = 256


class ChangeKind(enum.StrEnum):
    """A change of a node."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class CacheChange:
    """A change of one node, from what the reader had last to the present state.

    If the node was deleted and re-created in between, the `czxid` of both differs.
    """

    kind: ChangeKind
    path: str
    #: None if it was created.
    old: CachedNode | None
    #: None if it was deleted.
    new: CachedNode | None


class Cache(Background):
    """A node and its descendants, in memory.

        async with Cache(client, "/app", depth=1) as cache:
            print(cache.children("/app"))  # ['color']

    With depth 0 it has the node alone, with depth 1 its children, too, and so on; without a depth
    the whole tree. The node need not exist. Entering the scope waits until everything was read.
    """

    def __init__(self, client: Client, path: str, *, depth: int | None = None) -> None:
        check_recipe(client, path)
        if depth is not None:
            check_not_negative("depth", depth)
        super().__init__(f"the cache of {path}")
        self.path: Final = path
        self._client = client
        self._depth = depth
        self._tree = Tree(path)
        self._backlogs: set[_Backlog] = set()
        # Paths with an event that we have not read yet.
        self._told: dict[str, None] = {}
        # Nodes that exist, but that we may not read.
        self._hidden: set[str] = set()
        # Whether events may have been missed, so that everything has to be read.
        self._has_gap = True
        self._is_stale = True
        # There is something to read.
        self._woken = Signal()
        # Everything was read once; there is nothing to read. Both are set at the end, too.
        self._ready = asyncio.Event()
        self._settled = asyncio.Event()

    def __repr__(self) -> str:
        return f"<Cache {self.path} {'stale' if self._is_stale else 'current'}>"

    @property
    def is_stale(self) -> bool:
        """Whether it may be behind the service by more than events in flight.

        It is, until everything was read, again after a lost connection, and while the server is
        read-only, since such a server is cut off itself.
        """
        return self._is_stale

    def start(self) -> None:
        """Begin to read, as entering the scope does; `close` has to follow."""
        self._check_unstarted()
        self._task = self._client.start_task(self._follow())

    async def wait_ready(self) -> None:
        """Wait until everything was read.

        Raises SessionExpiredError; and NoAuthError if we may not read the node.
        """
        self._check()
        await self._ready.wait()
        self._check()

    async def sync(self) -> None:
        """Wait until it has everything that was written before, by any client.

            await client.set("/app/color", b"green")
            await cache.sync()
            print(cache.get("/app/color").data)  # b'green'

        Raises SessionExpiredError; and NoAuthError if we may not read the node.
        """
        await self.wait_ready()
        await retry(self._client, self._client.sync)
        # The events of earlier writes come before this answer.
        await self._settled.wait()
        self._check()

    async def _open(self) -> None:
        self.start()
        await self.wait_ready()

    def get(self, path: str) -> CachedNode | None:
        """Return a node, or None.

        Raises InvalidArgumentError for a path that cannot be in this cache.
        """
        self._check_path(path)
        return self._tree.get(path)

    def children(self, path: str) -> list[str]:
        """Return the names of a node's children in the cache, sorted; none for a missing node."""
        self._check_path(path)
        return self._tree.children(path)

    def snapshot(self) -> Snapshot:
        """Return all nodes as they are now, by their paths.

            print(*cache.snapshot())  # /app /app/color

        It never changes, and costs next to nothing.
        """
        return self._tree.snapshot()

    async def changes(self) -> AsyncIterator[CacheChange]:
        """Yield all existing nodes as created, then every change.

            async for change in cache.changes():
                print(change.kind, change.path)  # created /app
                break

        Parents come before their children, and go after them. For a slow reader, changes of one
        node are merged. It ends when the cache is closed, and raises SessionExpiredError when the
        session is over.
        """
        backlog = _Backlog(self._tree.nodes())
        self._backlogs.add(backlog)
        try:
            while True:
                while (change := backlog.take()) is not None:
                    yield change
                if self._is_over:
                    break
                await backlog.wait()
        finally:
            self._backlogs.discard(backlog)
        if self._failure is not None:
            raise self._failure

    def _check_path(self, path: str) -> None:
        checked_path(path)
        if path != self.path and not is_below(self.path, path):
            raise InvalidArgumentError(f"path: {path!r} is not below {self.path!r}")
        if not self._is_within(path):
            raise InvalidArgumentError(f"path: {path!r} is too deep for this cache")

    def _is_within(self, path: str) -> bool:
        return self._depth is None or len(names_below(self.path, path)) <= self._depth

    # How it follows.

    def _on_event(self, event: Event) -> None:
        if event.type is not EventType.NONE:
            assert event.path is not None, "only session events have no path"
            if event.type is EventType.CHILDREN_CHANGED or not self._is_within(event.path):
                return
            self._told[event.path] = None
        else:
            self._is_stale = True
            if not event.state.is_connected and not event.state.is_final:
                return
            self._has_gap = True
        self._settled.clear()
        self._woken.set()

    async def _follow(self) -> None:
        client = self._client
        try:
            # With depth 0, events of descendants are of no use.
            await retry(
                client,
                lambda: client.add_watch(self.path, self._on_event, recursive=self._depth != 0),
            )
            while True:
                try:
                    await self._catch_up()
                except ConnectionLostError:
                    self._has_gap = True
                    await client.wait_connected()
                else:
                    await self._woken.wait()
        except asyncio.CancelledError:
            # By `close`, or by the client, which was closed.
            self._end(SessionExpiredError("cache", self.path))
            raise
        except Exception as error:
            # Raised to the waiters and streams.
            self._end(error)

    async def _catch_up(self) -> None:
        """Read until there is nothing to read."""
        while self._has_gap or self._told:
            if self._has_gap:
                self._has_gap = False
                known = [node.path for node in self._tree.nodes()]
                # Events that came meanwhile may be newer than the list.
                self._told = dict.fromkeys([*await self._list(), *known, *self._told])
            told, self._told = list(self._told), {}
            for start in range(0, len(told), _READS_MAX):
                self._apply(await self._ask(self._client.get, told[start : start + _READS_MAX]))
        self._is_stale = self._client.state is SessionState.CONNECTED_READ_ONLY
        self._ready.set()
        self._settled.set()

    async def _list(self) -> list[str]:
        """Return the paths of all nodes that may exist, parents first."""
        level = listed = [self.path]
        depth = 0
        while level and depth != self._depth:
            following: list[str] = []
            for start in range(0, len(level), _READS_MAX):
                some = level[start : start + _READS_MAX]
                for path, names in await self._ask(self._client.children, some):
                    following.extend(child_path(path, name) for name in names or [])
            level, listed = following, listed + following
            depth += 1
        return listed

    async def _ask(
        self, ask: Callable[[str], Awaitable[T]], paths: Sequence[str]
    ) -> list[tuple[str, T | None]]:
        """Send a request for several nodes; None for one that is missing or not readable."""
        answers = await asyncio.gather(*map(ask, paths), return_exceptions=True)
        found: list[tuple[str, T | None]] = []
        for path, answer in zip(paths, answers, strict=True):
            is_hidden = isinstance(answer, NoAuthError) and path != self.path
            (self._hidden.add if is_hidden else self._hidden.discard)(path)
            if isinstance(answer, NoNodeError) or is_hidden:
                found.append((path, None))
            elif isinstance(answer, BaseException):
                raise answer
            else:
                found.append((path, answer))
        return found

    def _apply(self, answers: Iterable[tuple[str, NodeData | None]]) -> None:
        """Update the tree, and tell the readers."""
        # By path: the zxid from which on its descendants may still exist.
        gone: dict[str, float] = {}
        news: list[tuple[int, int, CachedNode]] = []
        for path, found in answers:
            old = self._tree.get(path)
            if old is not None and (found is None or found.stat.czxid != old.stat.czxid):
                since = 0 if path in self._hidden else math.inf
                gone[path] = since if found is None else found.stat.czxid
                old = None
            if found is not None and (old is None or found.stat.mzxid != old.stat.mzxid):
                # In the order of the service; within one transaction, parents first.
                zxid = found.stat.czxid if old is None else found.stat.mzxid
                node = CachedNode(path, found.data, found.stat)
                news.append((zxid, path.count("/"), node))
        for path in sorted(gone, key=lambda one: one.count("/"), reverse=True):
            # Its descendants went before it, even if we have not read so yet; except those that
            # were created after it and read earlier.
            for node in self._tree.remove(path):
                self._tell(node.path, node, None)
                if node.path != path and node.stat.czxid >= gone[path]:
                    news.append((node.stat.czxid, node.path.count("/"), node))
        for _, _, node in sorted(news, key=lambda one: one[:2]):
            if not self._has_place(node.path):
                # It was created since we read its parent, or deleted before.
                self._told |= {parent_path(node.path): None, node.path: None}
                continue
            old = self._tree.get(node.path)
            self._tree.put(node)
            self._tell(node.path, old, node)

    def _has_place(self, path: str) -> bool:
        """Return whether the parent of a node is known."""
        return path == self.path or (
            (above := parent_path(path)) in self._hidden or self._tree.get(above) is not None
        )

    def _tell(self, path: str, old: CachedNode | None, new: CachedNode | None) -> None:
        for backlog in self._backlogs:
            backlog.add(path, old, new)

    def _stop(self) -> None:
        super()._stop()
        self._end(None)

    def _end(self, failure: Exception | None) -> None:
        self._client.forget_watcher(self._on_event)
        self._is_stale = True
        if not self._is_closed and self._failure is None:
            self._failure = failure
        self._ready.set()
        self._settled.set()
        for backlog in self._backlogs:
            backlog.set()


class _Backlog(Signal):
    """The changes that one reader has not read yet: at most one of each node.

    After every change the reader's nodes are a tree: a node comes before its descendants, and goes
    after them.
    """

    def __init__(self, nodes: Iterable[CachedNode]) -> None:
        super().__init__()
        # What the reader had last, and the present state.
        self._pending: OrderedDict[str, tuple[CachedNode | None, CachedNode | None]] = OrderedDict(
            (node.path, (None, node)) for node in nodes
        )

    def add(self, path: str, old: CachedNode | None, new: CachedNode | None) -> None:
        if path in self._pending:
            old, _ = self._pending[path]
            if old is new:
                # It has come and gone, or gone and come back, unread.
                del self._pending[path]
                return
        self._pending[path] = (old, new)
        if new is None:
            # Its descendants have to go first.
            self._pending.move_to_end(path)
        self.set()

    def take(self) -> CacheChange | None:
        if not self._pending:
            return None
        path, (old, new) = self._pending.popitem(last=False)
        kind = ChangeKind.CHANGED if new is not None else ChangeKind.DELETED
        return CacheChange(ChangeKind.CREATED if old is None else kind, path, old, new)

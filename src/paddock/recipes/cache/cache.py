"""Cache: a part of the service's tree in memory, kept up with what changes there.

    async with Cache(client, "/app") as cache:
        print(cache.get("/app/color").data)  # b'blue'

Guaranteed is that the cache equals the service's tree whenever both are quiet: the same nodes with
the same data, whatever connections were lost meanwhile. Nothing is taken from an event but where to
look, and what could have been missed is read again. A node never goes back to an older state.
Changes in quick succession may be seen as one, but the last state of each node is always seen, and
what was deleted and made anew is never taken for what it was before. `sync` waits until everything
is there that was written before.

* Suspension (the connection is lost): the cache keeps what it knows, and `is_stale` says so, until
  the connection is back and everything was read again.
* Expiry: it keeps what it knows, and is stale for good; streams and waits raise
  SessionExpiredError. Another client needs another cache.
* Cancellation: a wait that is cancelled changes nothing. Leaving the scope ends the watch.
* Never promised: that two nodes are as they were at one moment, while they are being changed. What
  has to be seen together is to be in one node, or read in one request (`client.multi_read`).

What the client may not read is left out. Memory: every node down to the `depth` is held with its
data, and for each reader of `changes` at most one change a node.
"""

from __future__ import annotations

import asyncio
import enum
import math
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self, TypeVar

from paddock.client.client import Client
from paddock.client.requests.arguments import check_not_negative, checked_path
from paddock.client.results import NodeData
from paddock.client.states import Event, EventType, SessionState
from paddock.errors import (
    ConnectionLostError,
    InvalidArgumentError,
    NoAuthError,
    NoNodeError,
    RecipeClosedError,
    SessionExpiredError,
    UsageError,
)
from paddock.recipes.cache.tree import CachedNode, Snapshot, Tree, is_below, names_below
from paddock.recipes.common.retry import child, parent, until_answered

T = TypeVar("T")

# How many nodes are read at once: the answers of so many are held.
_READS_MAX: Final = 256


class ChangeKind(enum.Enum):
    """What has happened to a node of a cache."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class CacheChange:
    """A change of one node, from what a reader was told last to what is there now.

    If the node was deleted and made anew in between, the `czxid` of both differs.
    """

    kind: ChangeKind
    path: str
    #: None if it was created.
    old: CachedNode | None
    #: None if it was deleted.
    new: CachedNode | None


class Cache:
    """A node and what is below it, in memory, always as new as the service has told us.

        async with Cache(client, "/app", depth=1) as cache:
            print(cache.children("/app"))  # ['color']

    Of depth 0 it has the node alone, of depth 1 its children, too, and so on; without a depth it
    has the whole tree. The node need not be there. Entering the scope waits until everything was
    read once.
    """

    def __init__(self, client: Client, path: str, *, depth: int | None = None) -> None:
        checked_path(path)
        if depth is not None:
            check_not_negative("depth", depth)
        self.path: Final = path
        self._client = client
        self._depth = depth
        self._tree = Tree(path)
        self._backlogs: set[_Backlog] = set()
        self._task: asyncio.Task[None] | None = None
        # Where something has happened that we have not read yet.
        self._told: dict[str, None] = {}
        # What is there, but not for us to read.
        self._hidden: set[str] = set()
        # Whether events may have been missed, so that everything is to be read.
        self._has_gap = True
        self._is_stale = True
        self._is_closed = False
        self._failure: Exception | None = None
        # Something is to be read.
        self._woken = asyncio.Event()
        # Everything was read once; nothing is to be read. Both are set at the end, too.
        self._ready = asyncio.Event()
        self._settled = asyncio.Event()

    def __repr__(self) -> str:
        return f"<Cache {self.path} {'stale' if self._is_stale else 'current'}>"

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
    def is_stale(self) -> bool:
        """Whether it may be behind the service by more than what is on its way to us.

        It is, until everything was read once, and again after a lost connection; and as long as the
        server can only be read from, since such a one is cut off itself.
        """
        return self._is_stale

    def start(self) -> None:
        """Begin to read, as entering the scope does; whoever calls this calls `close`, too."""
        if self._is_closed:
            raise self._closed()
        if self._task is not None:
            raise UsageError(f"the cache of {self.path} was started before")
        self._task = self._client.start_task(self._follow())

    async def wait_ready(self) -> None:
        """Wait until everything was read once.

        Raises SessionExpiredError; and NoAuthError if we may not read the node.
        """
        self._check()
        await self._ready.wait()
        self._check()

    async def sync(self) -> None:
        """Wait until it has everything that was written before, by anybody.

            await client.set("/app/color", b"green")
            await cache.sync()
            print(cache.get("/app/color").data)  # b'green'

        Raises SessionExpiredError; and NoAuthError if we may not read the node.
        """
        self._check()
        await self._ready.wait()
        await until_answered(self._client, self._client.sync)
        # The events of what was written have come before this answer.
        await self._settled.wait()
        self._check()

    async def close(self) -> None:
        """Follow no more; what is known stays there to be read, stale. Closing twice is fine."""
        self._stop()
        if self._task is not None:
            await asyncio.wait([self._task])

    def get(self, path: str) -> CachedNode | None:
        """Give a node, or None if there is no such node.

        Raises InvalidArgumentError for one that could not be in this cache.
        """
        self._check_path(path)
        return self._tree.get(path)

    def children(self, path: str) -> list[str]:
        """Give the names of a node's children that are in the cache, in order.

        There are none if the node is not there.
        """
        self._check_path(path)
        return self._tree.children(path)

    def snapshot(self) -> Snapshot:
        """Give everything as it is now, by its path.

            print(*cache.snapshot())  # /app /app/color

        It never changes, and costs next to nothing.
        """
        return self._tree.snapshot()

    async def changes(self) -> AsyncIterator[CacheChange]:
        """Give everything that is there as created, then every change.

            async for change in cache.changes():
                print(change.kind, change.path)  # created /app
                break

        Parents come before their children, and go after them. However slowly it is read, there is
        at most one change of each node to be read: what happened meanwhile is one. It ends when the
        cache is closed, and raises SessionExpiredError when the session is over.
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

    @property
    def _is_over(self) -> bool:
        return self._is_closed or self._failure is not None

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._is_closed:
            raise self._closed()
        if self._task is None:
            raise UsageError(f"the cache of {self.path} was not started; enter its scope")

    def _closed(self) -> RecipeClosedError:
        return RecipeClosedError(f"the cache of {self.path} was closed")

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
            assert event.path is not None, "what is not about the session is about a node"
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
            # Of the node alone, others would only be noise.
            await until_answered(
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
                    self._woken.clear()
        except asyncio.CancelledError:
            # By ourselves, or by the client, which has been closed.
            self._end(SessionExpiredError("cache", self.path))
            raise
        except Exception as error:
            # Whoever waits for us, or reads changes, is told.
            self._end(error)

    async def _catch_up(self) -> None:
        """Read until there is nothing to be read."""
        while self._has_gap or self._told:
            if self._has_gap:
                self._has_gap = False
                known = [node.path for node in self._tree.nodes()]
                found = await self._list()
                # With what was told meanwhile, which may be newer than what was found.
                self._told = dict.fromkeys([*found, *known, *self._told])
            told, self._told = list(self._told), {}
            for start in range(0, len(told), _READS_MAX):
                self._apply(await self._ask(self._client.get, told[start : start + _READS_MAX]))
        self._is_stale = self._client.state is SessionState.CONNECTED_READ_ONLY
        self._ready.set()
        self._settled.set()

    async def _list(self) -> list[str]:
        """Give the paths of all that may be there, parents first."""
        level = listed = [self.path]
        depth = 0
        while level and depth != self._depth:
            following: list[str] = []
            for start in range(0, len(level), _READS_MAX):
                some = level[start : start + _READS_MAX]
                for path, names in await self._ask(self._client.children, some):
                    following.extend(child(path, name) for name in names or [])
            level, listed = following, listed + following
            depth += 1
        return listed

    async def _ask(
        self, ask: Callable[[str], Awaitable[T]], paths: Sequence[str]
    ) -> list[tuple[str, T | None]]:
        """Ask about several nodes; None for one that is not there, or that we may not read."""
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
        """Have the tree be as it was found, and tell what is new."""
        # By path: since when what is below it may be there all the same.
        gone: dict[str, float] = {}
        news: list[tuple[int, int, CachedNode]] = []
        for path, found in answers:
            old = self._tree.get(path)
            if old is not None and (found is None or found.stat.czxid != old.stat.czxid):
                gone[path] = self._made_anew(path, found)
                old = None
            if found is not None and (old is None or found.stat.mzxid != old.stat.mzxid):
                # In the order of the service; what was written as one, parents first.
                zxid = found.stat.czxid if old is None else found.stat.mzxid
                node = CachedNode(path, found.data, found.stat)
                news.append((zxid, path.count("/"), node))
        for path in sorted(gone, key=lambda one: one.count("/"), reverse=True):
            # What we knew below it went before it, even if we have not read so yet; unless it was
            # read before this one was, and came after it.
            for node in self._tree.remove(path):
                self._tell(node.path, node, None)
                if node.path != path and node.stat.czxid >= gone[path]:
                    news.append((node.stat.czxid, node.path.count("/"), node))
        for _, _, node in sorted(news, key=lambda one: one[:2]):
            if not self._has_place(node.path):
                # It has come since we read what is above it, or gone before that.
                self._told |= {parent(node.path): None, node.path: None}
                continue
            old = self._tree.get(node.path)
            self._tree.put(node)
            self._tell(node.path, old, node)

    def _made_anew(self, path: str, found: NodeData | None) -> float:
        """Give since when something may be below a node that is not the one that we know."""
        if found is not None:
            return found.stat.czxid
        return 0 if path in self._hidden else math.inf

    def _has_place(self, path: str) -> bool:
        """Tell whether what is above a node is there."""
        if path == self.path:
            return True
        above = parent(path)
        return above in self._hidden or self._tree.get(above) is not None

    def _tell(self, path: str, old: CachedNode | None, new: CachedNode | None) -> None:
        for backlog in self._backlogs:
            backlog.add(path, old, new)

    def _stop(self) -> None:
        self._is_closed = True
        self._end(None)
        if self._task is not None:
            self._task.cancel()

    def _end(self, failure: Exception | None) -> None:
        self._client.forget_watcher(self._on_event)
        self._is_stale = True
        if not self._is_closed and self._failure is None:
            self._failure = failure
        self._ready.set()
        self._settled.set()
        for backlog in self._backlogs:
            backlog.wake()


class _Backlog:
    """What one reader has not been told of yet: at most one change of each node.

    At every point of it, what the reader has been told is a tree: a node is there before those
    below it, and goes after them.
    """

    def __init__(self, nodes: Iterable[CachedNode]) -> None:
        # What the reader was told last, and what is there now.
        self._pending: OrderedDict[str, tuple[CachedNode | None, CachedNode | None]] = OrderedDict(
            (node.path, (None, node)) for node in nodes
        )
        self._woken = asyncio.Event()

    def add(self, path: str, old: CachedNode | None, new: CachedNode | None) -> None:
        if path in self._pending:
            old, _ = self._pending[path]
            if old is new:
                # It has come and gone, and the reader never heard of it; or gone and come back.
                del self._pending[path]
                return
        self._pending[path] = (old, new)
        if new is None:
            # It may have been waiting before those below it.
            self._pending.move_to_end(path)
        self._woken.set()

    def take(self) -> CacheChange | None:
        if not self._pending:
            return None
        path, (old, new) = self._pending.popitem(last=False)
        if old is None:
            kind = ChangeKind.CREATED
        else:
            kind = ChangeKind.CHANGED if new is not None else ChangeKind.DELETED
        return CacheChange(kind, path, old, new)

    def wake(self) -> None:
        self._woken.set()

    async def wait(self) -> None:
        await self._woken.wait()
        self._woken.clear()

"""The recipes of a service, read a bounded number of nodes at a time.

    coordination = Coordination("/")
    while not coordination.is_complete:
        await coordination.look(client)
    print(coordination.fields()["recipes"])

The tree is walked once, in as many calls of `look` as it takes; the walk stands still between them.
After that, only paths that `note_change` names are read again, and recipes are recognised again
only where these are. So a tree of a million nodes costs its size once, and then what changes in it.

* `note_change` wants every created, changed and deleted node below the root, as a recursive watch
  tells them. If some were missed, `restart` walks again; what is known stays until then.
* Of a million nodes few may belong to recipes: only these are kept, at most `KEPT_MAX`. Beyond that
  no more are added, and `is_complete` stays False. The items of queues are counted, not read.
* Given out are at most `RECIPES_SHOWN` recipes, with their number; first those with waiters.
* Nodes without permission to read them are counted in `hidden`.
* One `look` at a time. If it is cancelled or raises, the next one goes on or walks again.
* Nothing here is atomic: while the tree changes, two recipes may be of two moments.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from itertools import islice
from typing import Any, Final, Protocol

from paddock.client.operations.walk import WalkedNode
from paddock.client.results import NodeData
from paddock.dashboard.coordination.deadlocks import Deadlock, Wait, find_deadlocks, find_waits
from paddock.dashboard.coordination.nodes import DATA_BYTES_MAX, Index, Node, may_matter, session_of
from paddock.dashboard.coordination.recipe import Recipe, session_text
from paddock.dashboard.coordination.recognition import affected_by, recipes_at
from paddock.errors import NoAuthError, NoNodeError
from paddock.layouts import item_layout
from paddock.protocol.paths import parent_path
from paddock.protocol.records import Stat

# Nodes that one call looks at, unless it says otherwise.
LOOKED_MAX: Final = 20_000
# Nodes of recipes that are kept, of one service.
KEPT_MAX: Final = 200_000
# Changed paths that are remembered; more of them are a reason to walk again.
_CHANGES_MAX: Final = 100_000
# Requests in flight for changed paths.
_WINDOW: Final = 256
# Touched nodes around which recipes are recognised at a time.
_SLICE: Final = 50
# Recipes, and pairs of sessions, that are given out.
RECIPES_SHOWN: Final = 1000
_WAITS_SHOWN: Final = 1000
# The service's own nodes.
_OWN: Final = "/zookeeper"


class Reader(Protocol):
    """What is used of a client."""

    def walk(
        self, path: str = ..., *, data: bool | Callable[[str, Stat], bool] = ...
    ) -> AsyncGenerator[WalkedNode, None]: ...

    def exists(self, path: str, /) -> Awaitable[Stat | None]: ...

    def get(self, path: str, /) -> Awaitable[NodeData]: ...


class Coordination:
    """The recipes below a root, as far as they were read."""

    def __init__(self, root: str = "/", *, kept_max: int = KEPT_MAX) -> None:
        self.root: Final = root
        self._kept_max = kept_max
        #: How many nodes the present walk has looked at.
        self.looked = 0
        #: How many of them may not be read.
        self.hidden = 0
        self._index = Index()
        # What the present walk has found; at its end it takes the place of what was known before.
        self._walked = self._index
        self._walk: AsyncGenerator[WalkedNode, None] | None = None
        # Whether a walk has begun, and one has come to its end; and whether the last one has.
        self._has_begun = self._has_ended = False
        self._is_walked = False
        # Walks that were given up, and are to be closed.
        self._given_up: list[AsyncGenerator[WalkedNode, None]] = []
        # Paths to read again, in order; after the walk, which may yield what it has read before.
        self._stale: dict[str, None] = {}
        self._is_reading = False
        self._is_full = False
        # By where they are; and around which nodes they are to be recognised again.
        self._recipes: dict[str, list[Recipe]] = {}
        self._touched: set[str] = set()
        self._is_outdated = False
        self._found: tuple[list[Recipe], list[Wait], list[Deadlock]] = ([], [], [])

    @property
    def is_complete(self) -> bool:
        """Whether the whole tree was read, and every change that was noted."""
        return not (self.needs_look or self._is_reading or self._is_full)

    @property
    def is_partial(self) -> bool:
        """Whether some nodes were never read: in the first walk, or if there are too many."""
        return self._is_full or not self._has_ended

    @property
    def needs_look(self) -> bool:
        """Whether there is something to look at."""
        return not self._is_walked or bool(self._stale)

    @property
    def recipes(self) -> list[Recipe]:
        """The recipes, by their paths."""
        return self._evaluated()[0]

    @property
    def deadlocks(self) -> list[Deadlock]:
        """The deadlocks among all of them."""
        return self._evaluated()[2]

    def note_change(self, path: str) -> None:
        """Note that a node was created, changed or deleted."""
        if path == _OWN or path.startswith(_OWN + "/") or not self._is_inside(path):
            return
        if path != "/":
            above = parent_path(path)
            if item_layout(path[path.rfind("/") + 1 :]) and self._index.queue_layout(above):
                # The stat of the node above says how many items there are.
                path = above
        self._stale[path] = None
        if len(self._stale) > _CHANGES_MAX:
            self.restart()

    def restart(self) -> None:
        """Walk the tree again: changes may have been missed. What is known stays until then."""
        if self._walk is not None:
            self._given_up.append(self._walk)
        self._walk = None
        self._is_walked = False
        self._stale.clear()

    async def look(self, reader: Reader, limit: int = LOOKED_MAX) -> int:
        """Look at the next nodes, at most `limit`; return how many these were.

        Raises what the reader raises, such as ConnectionLostError.
        """
        while self._given_up:
            await self._given_up.pop().aclose()
        count = 0
        if not self._is_walked:
            try:
                count = await self._go_on(reader, limit)
            except BaseException:
                # A walk that has raised is over.
                self.restart()
                raise
        while self._stale and count < limit:
            batch = list(islice(self._stale, min(_WINDOW, limit - count)))
            # Those that change again while they are read are read again.
            for path in batch:
                del self._stale[path]
            self._is_reading = True
            try:
                await self._read(reader, batch)
            except BaseException:
                self._stale.update(dict.fromkeys(batch))
                raise
            finally:
                self._is_reading = False
            count += len(batch)
        while self._touched:
            self._recognise(_SLICE)
            # Others have their turn: there may be thousands.
            await asyncio.sleep(0)
        return count

    async def close(self) -> None:
        """End the walk."""
        self.restart()
        while self._given_up:
            await self._given_up.pop().aclose()

    def fields(self) -> dict[str, Any]:
        """Return what is known, as plain data."""
        recipes, waits, deadlocks = self._evaluated()
        shown = recipes
        if len(recipes) > RECIPES_SHOWN:
            # Those that somebody waits for first.
            shown = sorted(recipes, key=lambda one: not one.waiters)[:RECIPES_SHOWN]
            shown.sort(key=lambda one: one.path)
        return {
            "recipes": [one.fields() for one in shown],
            "recipe_count": len(recipes),
            "waits": [one.fields() for one in waits],
            "deadlocks": [[session_text(each) for each in one.sessions] for one in deadlocks],
            "deadlock_waits": [[wait.fields() for wait in one.waits] for one in deadlocks],
            "looked": self.looked,
            "hidden": self.hidden,
            "is_complete": self.is_complete,
            "is_partial": self.is_partial,
        }

    # The walk.

    async def _go_on(self, reader: Reader, limit: int) -> int:
        """Go on with the walk, or begin it; return how many nodes it gave."""
        if self._walk is None:
            self.looked = self.hidden = 0
            self._is_full = False
            # The first one is shown as it goes on.
            self._walked = Index() if self._has_begun else self._index
            self._has_begun = True
            self._walk = reader.walk(self.root, data=_is_read)
        count = 0
        while count < limit:
            try:
                node = await anext(self._walk)
            except (StopAsyncIteration, NoNodeError):
                # Or there is no such root.
                self._end_walk()
                break
            count += 1
            self.looked += 1
            self._take(node)
        return count

    def _take(self, node: WalkedNode) -> None:
        self.hidden += node.error is not None
        if node.path == _OWN:
            node.descends = False
        if node.path == _OWN or node.stat is None or node.is_gone:
            return
        if may_matter(node.path, node.stat):
            node.descends = node.descends and not _is_item(node.path, node.stat)
            self._keep(self._walked, Node.read(node.path, node.data or b"", node.stat))

    def _end_walk(self) -> None:
        self._walk = None
        self._is_walked = self._has_ended = True
        if self._walked is not self._index:
            self._index = self._walked
            self._touched.update(self._recipes, self._index.parents())

    # What has changed.

    async def _read(self, reader: Reader, paths: list[str]) -> None:
        """Read some paths again."""
        stats = dict(zip(paths, await asyncio.gather(*map(reader.exists, paths)), strict=True))
        wanted = {
            path: stat
            for path, stat in stats.items()
            if stat is not None and self._is_kept(path, stat)
        }
        asked = [path for path, stat in wanted.items() if _has_data(path, stat)]
        replies = await asyncio.gather(*map(reader.get, asked), return_exceptions=True)
        data: dict[str, bytes] = {}
        for path, reply in zip(asked, replies, strict=True):
            if isinstance(reply, NoNodeError):
                stats[path] = None
                del wanted[path]
            elif isinstance(reply, NoAuthError):
                self.hidden += 1
            elif isinstance(reply, BaseException):
                raise reply
            else:
                data[path] = reply.data
                # Newer than what `exists` has told.
                wanted[path] = reply.stat
        for index in self._indexes():
            for path in paths:
                if path not in wanted:
                    # It is gone, or no part of a recipe. What is below it goes with it, so this is
                    # first: a new node and its first child may be read together.
                    self._touched.update(index.remove(path))
            for path, stat in wanted.items():
                self._keep(index, Node.read(path, data.get(path, b""), stat))

    def _is_kept(self, path: str, stat: Stat) -> bool:
        return may_matter(path, stat) or any(
            index.below(path) or index.queue_layout(path) for index in self._indexes()
        )

    def _keep(self, index: Index, node: Node) -> None:
        if len(index) >= self._kept_max and index.get(node.path) is None:
            self._is_full = True
            return
        index.add(node)
        above = "/" if node.path == "/" else parent_path(node.path)
        if index is self._index:
            # An ephemeral node has nothing below it; so many siblings are looked at once.
            self._touched.add(above if node.session else node.path)
        if index.get(above) is None and self._is_inside(above):
            # What is above counts, too: its name and its data.
            self._stale[above] = None

    def _indexes(self) -> Iterable[Index]:
        return [self._index] if self._walked is self._index else [self._index, self._walked]

    def _is_inside(self, path: str) -> bool:
        return self.root == "/" or path == self.root or path.startswith(self.root + "/")

    # The recipes.

    def _recognise(self, count: int) -> None:
        """Recognise recipes again around some touched nodes."""
        some = [self._touched.pop() for _ in range(min(count, len(self._touched)))]
        for path in {place for one in some for place in affected_by(one)}:
            found = recipes_at(self._index, path)
            if found != self._recipes.get(path, []):
                self._is_outdated = True
                if found:
                    self._recipes[path] = found
                else:
                    del self._recipes[path]

    def _evaluated(self) -> tuple[list[Recipe], list[Wait], list[Deadlock]]:
        """Return recipes, waits and deadlocks, as of what was read."""
        while self._touched:
            self._recognise(_SLICE)
        if self._is_outdated:
            self._is_outdated = False
            recipes = [one for found in self._recipes.values() for one in found]
            recipes.sort(key=lambda one: (one.path, one.kind, one.layout))
            self._found = recipes, find_waits(recipes, _WAITS_SHOWN), find_deadlocks(recipes)
        return self._found


def _is_item(path: str, stat: Stat) -> bool:
    name = path[path.rfind("/") + 1 :]
    return not session_of(stat.ephemeral_owner) and item_layout(name) is not None


def _has_data(path: str, stat: Stat) -> bool:
    return 0 < stat.data_length <= DATA_BYTES_MAX and not _is_item(path, stat)


def _is_read(path: str, stat: Stat) -> bool:
    return may_matter(path, stat) and _has_data(path, stat)

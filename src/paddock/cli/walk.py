"""Trees walked node by node: parents first, children by name, however large the tree is.

Requests are made ahead of what is looked at, so a walk takes few round trips. What is held of the
tree is bounded: on each level the names of one node's children, the stats of `WINDOW` of them, and
of the next `AHEAD_MAX` what stands in them and below them, unless that is much: then it is asked
for when we come there. Nothing else is remembered.

What goes while we walk is left out. What may not be read is given without it, and says so.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from paddock.client.client import Client
from paddock.client.results import NodeData
from paddock.errors import NoAuthError, NoNodeError
from paddock.protocol.records import Stat

WINDOW: Final = 256
AHEAD_MAX: Final = 32
# What is more than this is not asked for ahead.
MANY_CHILDREN: Final = 1000
MANY_BYTES: Final = 16_384


@dataclass(slots=True)
class Found:
    """A node on our way."""

    path: str
    # How far below the node with which the walk began.
    depth: int
    # Whether no sibling comes after it.
    is_last: bool
    # None if not even that may be read.
    stat: Stat | None
    # None if it was not wanted, or is not ours to read.
    data: bytes | None = None
    # Why there are no data, or nothing below it.
    problem: NoAuthError | None = None
    # How many of its children are not looked at, by the limits of the walk.
    omitted: int = 0
    # Whether none of its children comes in this walk.
    is_leaf: bool = True

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2] or "/"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a tree is looked at; None for everything."""

    depth: int | None = None
    # So many of each node.
    children: int | None = None


EVERYTHING: Final = Limits()


def child_of(path: str, name: str) -> str:
    """Give the path of a child."""
    return f"{path.rstrip('/')}/{name}"


async def walk(
    client: Client,
    path: str,
    limits: Limits = EVERYTHING,
    *,
    wants_data: Callable[[str, Stat], bool] = lambda path, stat: False,
) -> AsyncGenerator[Found, None]:
    """Give a node and everything below it; raises NoNodeError if the node itself is not there.

    Data are read of the nodes of which they are wanted. Whoever leaves the walk early closes it.
    """
    walking = _Walk(client, limits, wants_data)
    try:
        walking.descend([path])
        while (ahead := await walking.next()) is not None:
            yield await walking.look(ahead)
    finally:
        walking.give_up()
    if not walking.has_found:
        raise NoNodeError("exists", path)


class _Ahead:
    """A node that is asked about before we come to it."""

    def __init__(self, path: str, answer: asyncio.Future[Stat | None]) -> None:
        self.path = path
        self.answer = answer
        self.names: asyncio.Future[list[str]] | None = None
        self.content: asyncio.Future[NodeData] | None = None


class _Level:
    """The siblings that are still to come, on one level of the tree."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = iter(paths)
        self.queue: deque[_Ahead] = deque()
        # How many at the head of the queue were asked about in full. Invariant: <= len(queue)
        self.prepared = 0


class _Walk:
    """A walk under way."""

    def __init__(
        self, client: Client, limits: Limits, wants_data: Callable[[str, Stat], bool]
    ) -> None:
        self._client = client
        self._limits = limits
        self._wants_data = wants_data
        # From the root of the walk down to where we are.
        self._levels: list[_Level] = []
        # The one that we look at, which is in no queue any more.
        self._here: _Ahead | None = None
        self.has_found = False

    def descend(self, paths: list[str]) -> None:
        self._levels.append(_Level(paths))

    async def next(self) -> _Ahead | None:
        """Give the next node that is there, or None at the end."""
        while self._levels:
            ahead = await self._first(self._levels[-1])
            if ahead is not None:
                level = self._levels[-1]
                level.queue.popleft()
                level.prepared = max(0, level.prepared - 1)
                return ahead
            self._levels.pop()
        return None

    async def look(self, ahead: _Ahead) -> Found:
        """Look at a node, and go down to its children if there are any to be looked at."""
        self._here = ahead
        problem = ahead.answer.exception()
        assert problem is None or isinstance(problem, NoAuthError)
        stat = None if problem is not None else ahead.answer.result()
        self.has_found = True
        depth = len(self._levels) - 1
        if stat is not None:
            self._prepare(ahead, stat, depth)
        # It is the last one if those behind it, which we had seen, have all gone.
        is_last = await self._first(self._levels[-1]) is None
        found = Found(ahead.path, depth, is_last, stat, problem=problem)
        if stat is None:
            return found
        if ahead.content is not None:
            found.data = await self._content(ahead.content, found)
        names: list[str] = []
        if ahead.names is not None:
            names = sorted(await self._names(ahead.names, found))
        elif stat.num_children:
            found.omitted = stat.num_children
        shown = names[: self._limits.children]
        if shown:
            found.is_leaf = False
            found.omitted = len(names) - len(shown)
            self.descend([child_of(ahead.path, name) for name in shown])
        return found

    def give_up(self) -> None:
        """Wait for no answer any more."""
        asked = [ahead for level in self._levels for ahead in level.queue]
        for ahead in asked if self._here is None else [self._here, *asked]:
            for future in (ahead.answer, ahead.names, ahead.content):
                _drop(future)

    async def _first(self, level: _Level) -> _Ahead | None:
        """Give the next sibling that is there, and leave it in its place."""
        while True:
            self._refill(level)
            if not level.queue:
                return None
            ahead = level.queue[0]
            if await _is_there(ahead.answer):
                self._prepare_some(level)
                return ahead
            level.queue.popleft()
            level.prepared = max(0, level.prepared - 1)

    def _refill(self, level: _Level) -> None:
        for path in islice(level.paths, WINDOW - len(level.queue)):
            level.queue.append(_Ahead(path, self._client.exists(path)))

    def _prepare_some(self, level: _Level) -> None:
        depth = len(self._levels) - 1
        while level.prepared < min(AHEAD_MAX, len(level.queue)):
            ahead = level.queue[level.prepared]
            if not ahead.answer.done():
                return
            stat = ahead.answer.result() if ahead.answer.exception() is None else None
            if (
                stat is not None
                and stat.num_children <= MANY_CHILDREN
                and stat.data_length <= MANY_BYTES
            ):
                self._prepare(ahead, stat, depth)
            level.prepared += 1

    def _prepare(self, ahead: _Ahead, stat: Stat, depth: int) -> None:
        if ahead.names is None and stat.num_children and depth != self._limits.depth:
            ahead.names = self._client.children(ahead.path)
        if ahead.content is None and self._wants_data(ahead.path, stat):
            ahead.content = self._client.get(ahead.path)

    async def _names(self, asked: asyncio.Future[list[str]], found: Found) -> list[str]:
        try:
            return await asked
        except NoAuthError as problem:
            found.problem = problem
        except NoNodeError:
            # It has gone since it was found, and everything below it.
            pass
        return []

    async def _content(self, asked: asyncio.Future[NodeData], found: Found) -> bytes | None:
        try:
            return (await asked).data
        except NoAuthError as problem:
            found.problem = problem
        except NoNodeError:
            pass
        return None


async def _is_there(answer: asyncio.Future[Stat | None]) -> bool:
    """Tell whether a node is there: also one of which no more may be known."""
    try:
        return await answer is not None
    except NoAuthError:
        return True


def _drop(future: asyncio.Future[Any] | None) -> None:
    """Give up a request; that it has failed is no news to anybody."""
    if future is not None and not future.cancel() and not future.cancelled():
        future.exception()

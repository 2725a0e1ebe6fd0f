"""A tree walked in order: parents first, children by name, with a bounded number of requests.

Nodes that come next stand in a queue. The first `WINDOW` of it are read as one batch: their stats
or ACLs, then data and children, as far as the budgets for bytes and names allow. Children are put
into the queue right behind their parent and are read with the next batch, before the parent is
yielded. So a deep tree takes few round trips, as a flat one does, and memory is bounded: the names
of one node's children on each level, and per batch `WINDOW` nodes, `DATA_BYTES_MAX` bytes of data
and `NAMES_MAX` names. Only the next node is read whatever its size. No request is in flight while
a node is yielded: a slow consumer stops the walk.

A live tree is no snapshot. A node that is deleted meanwhile is left out, or `is_gone`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from paddock.client.operations.operations import Operations
from paddock.client.requests.arguments import (
    check_count,
    check_flag,
    check_not_negative,
    checked_path,
)
from paddock.errors import InvalidArgumentError, NoAuthError, NoNodeError
from paddock.protocol.acl import ACL
from paddock.protocol.records import Stat

# Nodes in a batch. Each has at most two requests in flight. Two is the least: whether a node is the
# last of its siblings is known when the next one has been looked at.
WINDOW: Final = 256
# Data held of nodes that were read ahead.
DATA_BYTES_MAX: Final = 4 << 20
# Children of the nodes of a batch, beyond those of its first node.
NAMES_MAX: Final = 1000

# Decides by path and stat whether data are read.
DataFilter: TypeAlias = Callable[[str, Stat], bool]


@dataclass(slots=True)
class WalkedNode:
    """A node that `Client.walk` has found, `depth` levels below the root of the walk.

    Without permission to read it, `error` says so, and stat, data, ACL or children are missing.
    `is_gone`: it was deleted between two requests, and data or children are missing. `is_last`: no
    sibling follows. `is_leaf`: no child follows. `omitted` counts children that the limits of the
    walk leave out. Set `descends` to False to leave out everything below this node.
    """

    path: str
    depth: int
    stat: Stat | None = None
    data: bytes | None = None
    acl: list[ACL] | None = None
    error: NoAuthError | None = None
    is_gone: bool = False
    is_last: bool = True
    is_leaf: bool = True
    omitted: int = 0
    descends: bool = True

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path[self.path.rfind("/") + 1 :] or "/"


@dataclass(slots=True, eq=False)
class _Siblings:
    """The children of one node that were not yielded yet."""

    above: str
    depth: int
    # Not looked at; in reverse order.
    names: list[str]
    # Those in the queue that were found.
    present: int = 0

    def take(self) -> _Entry:
        return _Entry(self, WalkedNode(f"{self.above.rstrip('/')}/{self.names.pop()}", self.depth))


@dataclass(slots=True, eq=False)
class _Entry:
    """A node in the queue."""

    siblings: _Siblings
    node: WalkedNode
    is_looked_at: bool = False
    needs_data: bool = False
    # Whether the children are known. Invariant: they stand right behind it in the queue.
    is_listed: bool = False
    # Between the reply and the place in the queue.
    children: _Siblings | None = None

    @property
    def depth(self) -> int:
        return self.node.depth

    @property
    def is_complete(self) -> bool:
        return (
            self.is_looked_at
            and not self.needs_data
            and self.is_listed
            and (self.siblings.present > 1 or not self.siblings.names)
        )


class TreeWalk:
    """One walk over a tree; `vanished` counts nodes that were deleted while it was walked."""

    def __init__(
        self,
        client: Operations,
        path: str,
        *,
        depth: int | None = None,
        max_children: int | None = None,
        data: bool | DataFilter = False,
        acl: bool = False,
        after: str | None = None,
    ) -> None:
        checked_path(path)
        check_flag("acl", acl)
        if depth is not None:
            check_not_negative("depth", depth)
        if max_children is not None:
            check_count("max_children", max_children)
        if not (isinstance(data, bool) or callable(data)):
            raise InvalidArgumentError(f"data: expected True, False or a function, not {data!r}")
        if after is not None:
            checked_path(after)
            if after != path and not after.startswith(path.rstrip("/") + "/"):
                raise InvalidArgumentError(f"after: {after!r} is not in the tree {path!r}")
        self._client = client
        self._root = path
        self._depth_max = depth
        self._max_children = max_children
        self._data = data
        self._acl = acl
        self._after = after
        # The next one last.
        self._queue: list[_Entry | _Siblings] = []
        # Data in the queue.
        self._bytes = 0
        self.vanished = 0

    async def nodes(self) -> AsyncGenerator[WalkedNode, None]:
        """Yield every node of the tree. Raises NoNodeError if its root does not exist."""
        if self._after is None:
            self._queue.append(_Siblings("", 0, [self._root[1:]]))
        elif (unlisted := await self._skip_to(self._after)) is not None:
            yield unlisted
        while self._queue:
            entry = self._queue[-1]
            if isinstance(entry, _Siblings) or not entry.is_complete:
                await self._read_batch()
                continue
            self._queue.pop()
            self._drop(entry)
            entry.node.is_last = not (entry.siblings.present or entry.siblings.names)
            yield entry.node
            if not entry.node.descends:
                while self._queue and self._queue[-1].depth > entry.depth:
                    below = self._queue.pop()
                    if isinstance(below, _Entry):
                        self._drop(below)

    def _drop(self, entry: _Entry) -> None:
        entry.siblings.present -= 1
        self._bytes -= len(entry.node.data or b"")

    async def _skip_to(self, after: str) -> WalkedNode | None:
        """Queue the nodes after a path: on each level those with a larger name.

        Return the node on the way that may not be listed, if there is one.
        """
        here = self._root
        below = after[len(here.rstrip("/")) + 1 :]
        for depth, name in enumerate([*(below.split("/") if below else []), ""]):
            if depth == self._depth_max:
                break
            try:
                names = await self._client.children(here)
            except NoNodeError:
                if here == self._root:
                    raise NoNodeError("walk", here) from None
                self.vanished += 1
                break
            except NoAuthError as error:
                return WalkedNode(here, depth, error=error)
            shown = [one for one in sorted(names)[: self._max_children] if one > name]
            self._queue.append(_Siblings(here, depth + 1, shown[::-1]))
            here = f"{here.rstrip('/')}/{name}"
        return None

    async def _read_batch(self) -> None:
        """Read on at the head of the queue. Afterwards more is known of its first node."""
        batch = await self._look(self._take_batch())
        await self._fetch(batch)
        for entry in reversed(batch):
            if entry.children is not None:
                self._queue.append(entry.children)
                entry.children = None
            self._queue.append(entry)

    def _take_batch(self) -> list[_Entry]:
        batch: list[_Entry] = []
        while self._queue and len(batch) < WINDOW:
            first = self._queue[-1]
            if isinstance(first, _Siblings) and first.names:
                batch.append(first.take())
                continue
            self._queue.pop()
            if isinstance(first, _Entry):
                batch.append(first)
        return batch

    async def _look(self, batch: list[_Entry]) -> list[_Entry]:
        """Read stats or ACLs; return those nodes that exist."""
        ask: Callable[[str], asyncio.Future[Any]]
        ask = self._client.get_acl if self._acl else self._client.exists
        unknown = [entry for entry in batch if not entry.is_looked_at]
        replies = await asyncio.gather(
            *(ask(entry.node.path) for entry in unknown), return_exceptions=True
        )
        for entry, reply in zip(unknown, replies, strict=True):
            node = entry.node
            if reply is None or isinstance(reply, NoNodeError):
                if node.depth == 0:
                    raise NoNodeError("walk", node.path)
                self.vanished += 1
                continue
            entry.is_looked_at = True
            entry.siblings.present += 1
            if isinstance(reply, NoAuthError):
                node.error = reply
                entry.is_listed = True
            elif isinstance(reply, BaseException):
                raise reply
            else:
                self._take_stat(entry, reply)
        return [entry for entry in batch if entry.is_looked_at]

    def _take_stat(self, entry: _Entry, reply: Any) -> None:
        node = entry.node
        stat: Stat
        node.acl, stat = reply if self._acl else (None, reply)
        node.stat = stat
        if self._data if isinstance(self._data, bool) else self._data(node.path, stat):
            # Empty data need no request.
            node.data = None if stat.data_length else b""
            entry.needs_data = node.data is None
        if not stat.num_children or node.depth == self._depth_max:
            node.omitted = stat.num_children
            entry.is_listed = True

    async def _fetch(self, batch: list[_Entry]) -> None:
        """Read data and children as far as the budgets allow, and always those of the first."""
        bytes_left, names_left = DATA_BYTES_MAX - self._bytes, NAMES_MAX
        # A node is listed once it is known whether a sibling follows it: these are behind it now.
        followed = {entry.siblings: entry for entry in batch}
        asked: list[tuple[_Entry, bool, asyncio.Future[Any]]] = []
        for entry in batch:
            node, stat, is_first = entry.node, entry.node.stat, entry is batch[0]
            if stat is None:
                continue
            gets_data = False
            if entry.needs_data:
                bytes_left -= stat.data_length
                gets_data = is_first or bytes_left >= 0
                if gets_data:
                    asked.append((entry, True, self._client.get(node.path)))
            if entry.is_listed or (entry.needs_data and not gets_data):
                # Children of a node that turns out to be gone must not be in the queue.
                continue
            if entry.siblings.names and followed[entry.siblings] is entry:
                continue
            names_left -= stat.num_children
            if is_first or names_left >= 0:
                asked.append((entry, False, self._client.children(node.path)))
        replies = await asyncio.gather(*(future for _, _, future in asked), return_exceptions=True)
        for (entry, is_data, _), reply in zip(asked, replies, strict=True):
            self._take(entry, is_data, reply)

    def _take(self, entry: _Entry, is_data: bool, reply: Any) -> None:
        node = entry.node
        if is_data:
            entry.needs_data = False
        else:
            entry.is_listed = True
        if isinstance(reply, NoAuthError):
            node.error = reply
        elif isinstance(reply, NoNodeError):
            self.vanished += not node.is_gone
            node.is_gone = entry.is_listed = True
        elif isinstance(reply, BaseException):
            raise reply
        elif is_data:
            node.data = reply.data
            self._bytes += len(reply.data)
        elif not node.is_gone:
            shown = sorted(reply)[: self._max_children]
            node.omitted = len(reply) - len(shown)
            node.is_leaf = not shown
            if shown:
                entry.children = _Siblings(node.path, node.depth + 1, shown[::-1])

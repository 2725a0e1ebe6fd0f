"""Deletes trees node by node, with a bounded number of requests in flight.

A node is deleted before its children are asked for: most nodes have none, and the service refuses
those that have. Only these are listed. So a tree of a million nodes takes little more than a
million requests, and memory holds the children of some nodes on each level.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Iterable
from typing import Final

from paddock.client.operations.compound import ATTEMPTS_MAX
from paddock.client.operations.operations import Operations
from paddock.errors import ConnectionLostError, NoNodeError, NotEmptyError
from paddock.protocol.paths import child_path

# How many nodes are listed at once: the children of so many may have to be held.
_LISTS_MAX: Final = 64


async def delete_tree(client: Operations, path: str, batch: int) -> int:
    """Delete a node and everything below it; return how many deletes were acknowledged."""
    return await _TreeDeletion(client, batch).run([path])


async def delete_everything(client: Operations, batch: int) -> int:
    """Delete everything but the root and /zookeeper."""
    names = await client.children("/")
    return await _TreeDeletion(client, batch).run(
        f"/{name}" for name in names if name != "zookeeper"
    )


class _Known(enum.Enum):
    """What is known of the children of a node."""

    NOTHING = enum.auto()
    THERE_ARE_SOME = enum.auto()
    # All that there were when we listed them come before it.
    THEY_COME_FIRST = enum.auto()


class _TreeDeletion:
    """The deletion of some trees."""

    def __init__(self, client: Operations, batch: int) -> None:
        self._client = client
        self._batch = batch
        # What is to be deleted, the next one last. We look at one run of the same kind at a time.
        self._stack: list[tuple[_Known, str]] = []
        self._deleted = 0
        # How often in a row a connection was lost.
        self._losses = 0

    async def run(self, paths: Iterable[str]) -> int:
        self._push(_Known.NOTHING, paths)
        while self._stack:
            known = self._stack[-1][0]
            if known is _Known.THERE_ARE_SOME:
                await self._list(self._take_run(known, _LISTS_MAX))
            else:
                await self._delete(known, self._take_run(known, self._batch))
        return self._deleted

    def _push(self, known: _Known, paths: Iterable[str]) -> None:
        self._stack.extend((known, path) for path in paths)

    def _take_run(self, known: _Known, limit: int) -> list[str]:
        run: list[str] = []
        while self._stack and len(run) < limit and self._stack[-1][0] is known:
            run.append(self._stack.pop()[1])
        return run

    async def _delete(self, known: _Known, nodes: list[str]) -> None:
        answers = await asyncio.gather(
            *(self._client.delete(node) for node in nodes), return_exceptions=True
        )
        lost: ConnectionLostError | None = None
        for node, answer in reversed([*zip(nodes, answers, strict=True)]):
            if answer is None:
                self._deleted += 1
            elif isinstance(answer, NotEmptyError):
                self._stack.append((_Known.THERE_ARE_SOME, node))
            elif isinstance(answer, ConnectionLostError):
                lost = answer
                self._stack.append((known, node))
            elif not isinstance(answer, NoNodeError):
                raise answer
        if lost is None:
            self._losses = 0
            return
        self._losses += 1
        if self._losses == ATTEMPTS_MAX:
            raise lost
        # A read waits for the next connection, and fails when there may be none in time.
        await self._client.exists(nodes[0])

    async def _list(self, nodes: list[str]) -> None:
        answers = await asyncio.gather(
            *(self._client.children(node) for node in nodes), return_exceptions=True
        )
        self._push(_Known.THEY_COME_FIRST, reversed(nodes))
        for node, answer in zip(nodes, answers, strict=True):
            if isinstance(answer, NoNodeError):
                continue
            if isinstance(answer, BaseException):
                raise answer
            self._push(_Known.NOTHING, (child_path(node, name) for name in answer))

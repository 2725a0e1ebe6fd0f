"""Watches as streams: the present state, then every newer one, however connections come and go.

An event only says where to look; what is yielded was read. So changes in quick succession may come
as one, but the last state always comes. After a reconnect, everything that could have been missed
is read again. A stream ends with an error when the session is over.

    async for change in client.watch("/config"):
        print(change.data)  # b'v1', then b'v2'
        if change.data == b"v2":
            break
        await client.set("/config", b"v2")
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final, NamedTuple, TypeVar

from paddock.client.operations.operations import Operations
from paddock.client.states import Event, EventType
from paddock.errors import ConnectionLostError, NoAuthError, NoNodeError
from paddock.protocol.paths import child_path
from paddock.protocol.records import Stat

T = TypeVar("T")

# How many nodes are read at once: the data of so many are held.
_READS_MAX: Final = 256


class Change(NamedTuple):
    """A node as it was found; without data and stat there was none.

    The zxid of the change that made it so is `stat.mzxid`.
    """

    path: str
    data: bytes | None
    stat: Stat | None


class _Signal:
    """Wakes a stream up, and remembers what for."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        # Where something has happened.
        self.paths: dict[str, None] = {}
        # Whether the connection was lost since we last looked, and with it events.
        self.has_gap = False

    def __call__(self, event: Event) -> None:
        if event.type is not EventType.NONE:
            assert event.path is not None
            self.paths[event.path] = None
        elif event.state.is_connected or event.state.is_final:
            self.has_gap = True
        else:
            return
        self._event.set()

    async def wait(self) -> None:
        await self._event.wait()
        self._event.clear()


async def watch_node(client: Operations, path: str) -> AsyncGenerator[Change, None]:
    """Yield the state of one node."""
    signal = _Signal()
    # Nothing has been yielded yet; a node that is not there is None.
    seen: tuple[int, int] | None = (-1, -1)
    try:
        while True:
            try:
                change = await _read_watched(client, path, signal)
            except ConnectionLostError:
                await client.wait_connected()
                continue
            found = None if change.stat is None else (change.stat.czxid, change.stat.mzxid)
            if found != seen:
                seen = found
                yield change
            await signal.wait()
    finally:
        client.forget_watcher(signal)


async def _read_watched(client: Operations, path: str, signal: _Signal) -> Change:
    while True:
        try:
            data, stat = await client.get(path, watch=signal)
        except NoNodeError:
            if await client.exists(path, watch=signal) is None:
                return Change(path, None, None)
            # It came in between.
        else:
            return Change(path, data, stat)


async def watch_tree(client: Operations, path: str) -> AsyncGenerator[Change, None]:
    """Yield the state of a node and of everything below it, parents first."""
    signal = _Signal()
    signal.has_gap = True
    # What was yielded last of each node that was there. Of the path itself it is always news how it
    # is, also if it is not there.
    known: dict[str, tuple[int, int]] = {path: (-1, -1)}
    try:
        while True:
            try:
                await client.add_watch(path, signal, recursive=True)
                break
            except ConnectionLostError:
                await client.wait_connected()
        while True:
            try:
                if signal.has_gap:
                    signal.has_gap = False
                    found = await _paths_below(client, path)
                    # With what was told meanwhile, which may be newer than what was found.
                    signal.paths = dict.fromkeys([*found, *known, *signal.paths])
                while signal.paths:
                    paths, signal.paths = list(signal.paths), {}
                    for start in range(0, len(paths), _READS_MAX):
                        some = paths[start : start + _READS_MAX]
                        for one, node in await _read_all(client.get, some, path):
                            change = Change(one, *(node or (None, None)))
                            if _is_news(change, known):
                                yield change
            except ConnectionLostError:
                signal.has_gap = True
                await client.wait_connected()
                continue
            await signal.wait()
    finally:
        client.forget_watcher(signal)


def _is_news(change: Change, known: dict[str, tuple[int, int]]) -> bool:
    """Return whether a state is not the last one yielded, and record it."""
    if change.stat is None:
        return known.pop(change.path, None) is not None
    found = (change.stat.czxid, change.stat.mzxid)
    if known.get(change.path) == found:
        return False
    known[change.path] = found
    return True


async def _paths_below(client: Operations, path: str) -> list[str]:
    """Return a node, if it exists, and everything below it, parents first."""
    listed = [path]
    done = 0
    while done < len(listed):
        some = listed[done : done + _READS_MAX]
        done += len(some)
        for one, names in await _read_all(client.children, some, path):
            listed.extend(child_path(one, name) for name in sorted(names or ()))
    return listed


async def _read_all(
    read: Callable[[str], Awaitable[T]], paths: list[str], root: str
) -> list[tuple[str, T | None]]:
    """Read nodes at once; None stands for no node.

    Those below the root without permission to read them are left out: they have no events, either.
    """
    replies = await asyncio.gather(*map(read, paths), return_exceptions=True)
    found: list[tuple[str, T | None]] = []
    for path, reply in zip(paths, replies, strict=True):
        if isinstance(reply, NoNodeError):
            found.append((path, None))
        elif not isinstance(reply, BaseException):
            found.append((path, reply))
        elif not isinstance(reply, NoAuthError) or path == root:
            raise reply
    return found

"""The watches of a client: which watchers get an event, and what is set again after a reconnect.

The server sends an event once per connection; it is passed on to all watchers that it concerns. A
one-shot watch ends with its first event. All paths are the server's, with the chroot. Which watches
the server has is in `served`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Final, TypeAlias

from paddock.client.states import Event, EventType, SessionState
from paddock.client.watches.served import PERSISTENT, RECURSIVE, ServedWatches
from paddock.protocol import paths
from paddock.protocol.requests import SetWatchesRequest

Watcher: TypeAlias = Callable[[Event], None]
Table: TypeAlias = dict[bytes, dict[Watcher, None]]

# The limit of one setWatches, below the frame limit of any server.
_CHUNK_BYTES_MAX: Final = 128 * 1024


class WatchKind(IntEnum):
    """Which watches on a path are meant, as upstream numbers them.

    CHILDREN: those of `children`. DATA: those of `get` and `exists`. PERSISTENT and RECURSIVE:
    those of `add_watch`, without and with `recursive`. ANY: all of them.
    """

    CHILDREN = 1
    DATA = 2
    ANY = 3
    PERSISTENT = 4
    RECURSIVE = 5


class ClientWatches:
    """All watches of one session."""

    def __init__(self) -> None:
        # One-shot, by what set them: get or exists on a node that is there; exists on one that is
        # not; children.
        self.data: Table = {}
        self.exists: Table = {}
        self.child: Table = {}
        self.persistent: Table = {}
        self.recursive: Table = {}
        # In the order of the request that sets them again.
        self._all = (self.data, self.exists, self.child, self.persistent, self.recursive)
        self._one_shot = (self.data, self.exists, self.child)
        self._of_kind: dict[WatchKind, tuple[Table, ...]] = {
            WatchKind.CHILDREN: (self.child,),
            WatchKind.DATA: (self.data, self.exists),
            WatchKind.ANY: self._all,
            WatchKind.PERSISTENT: (self.persistent,),
            WatchKind.RECURSIVE: (self.recursive,),
        }
        # What the server has.
        self.served = ServedWatches()
        # Called with a path where the server's persistent watch was kept for watches of reads, once
        # the last one of them is over.
        self.on_free: Callable[[bytes], None] | None = None
        # Called with every state, and with the events of reads with `watch=True`.
        self.default: Watcher | None = None

    def tell(self, event: Event, path: bytes) -> None:
        """Call the watchers that an event concerns."""
        for watcher in self.take(event.type, path):
            _tell(watcher, event)
        self.settle(path)

    def tell_everybody(self, state: SessionState) -> None:
        """Call every watcher with the state of the session."""
        event = Event(state, EventType.NONE, None)
        watchers = dict.fromkeys(self.everybody())
        if self.default is not None:
            watchers[self.default] = None
        for watcher in watchers:
            _tell(watcher, event)

    def add(self, table: Table, path: bytes, watcher: Watcher) -> None:
        table.setdefault(path, {})[watcher] = None

    def settle(self, path: bytes) -> None:
        """Check whether watches of reads still rely on a persistent one."""
        if path in self.served.relied_on and not self._is_read_watched(path):
            self.served.relied_on.discard(path)
            if self.on_free is not None:
                self.on_free(path)

    def is_recursive(self, path: bytes) -> bool:
        """Return whether there is a recursive watch on a path, or will be."""
        return path in self.recursive or bool(self.served.expected(path) & RECURSIVE)

    def unneeded(self, path: bytes) -> list[int]:
        """Return the modes of persistent watches of the server that no watcher needs."""
        if path in self.served.relied_on and self._is_read_watched(path):
            return []
        tables = ((PERSISTENT, self.persistent), (RECURSIVE, self.recursive))
        modes = self.served.at(path)
        return [mode for mode, table in tables if modes & mode and path not in table]

    def _is_read_watched(self, path: bytes) -> bool:
        return any(path in table for table in self._one_shot)

    def take(self, kind: int, path: bytes) -> list[Watcher]:
        """Return the watchers that an event concerns, each once, and end one-shot watches."""
        concerned: dict[Watcher, None] = {}
        if kind in (EventType.CREATED, EventType.CHANGED, EventType.DELETED):
            concerned.update(self.data.pop(path, {}))
            concerned.update(self.exists.pop(path, {}))
        if kind in (EventType.CHILDREN_CHANGED, EventType.DELETED):
            concerned.update(self.child.pop(path, {}))
        concerned.update(self.persistent.get(path, {}))
        if self.recursive and kind != EventType.CHILDREN_CHANGED:
            above = path
            while True:
                concerned.update(self.recursive.get(above, {}))
                if above == paths.ROOT:
                    break
                above = paths.parent(above)
        return list(concerned)

    def has(self, path: bytes, kind: WatchKind, watcher: Watcher | None = None) -> bool:
        """Return whether there are watches of a kind on a path, or those of one watcher."""
        some = [table.get(path, {}) for table in self._of_kind[kind]]
        return any(some) if watcher is None else any(watcher in one for one in some)

    def are_others(self, path: bytes, kind: WatchKind, watcher: Watcher | None) -> bool:
        """Return whether other watchers need the server's watch, if these are removed there.

        Some servers have one persistent watch for both kinds of reads; others, as far as we know
        them, remove those of reads by themselves. A persistent watch is removed with all others of
        the path, since every server understands that.
        """
        meant = self._of_kind[kind]
        touched: tuple[Table, ...] = self._all
        if kind in (WatchKind.DATA, WatchKind.CHILDREN):
            if self.served.keeps_modes_apart:
                touched = meant
            elif self.served.at(path):
                return True
            else:
                touched = (*meant, self.persistent, self.recursive)
        return any(
            (watcher is not None and other != watcher) or not any(table is one for one in meant)
            for table in touched
            for other in table.get(path, {})
        )

    def remove(self, path: bytes, kind: WatchKind, watcher: Watcher | None = None) -> bool:
        """Remove the watches of a kind, or those of one watcher; return whether there were any."""
        found = self.has(path, kind, watcher)
        for table in self._of_kind[kind]:
            if watcher is not None:
                table.get(path, {}).pop(watcher, None)
            if watcher is None or not table.get(path, True):
                table.pop(path, None)
        return found

    def lasting(self, watcher: Watcher) -> list[bytes]:
        """Return the paths on which a watcher has persistent watches of any kind."""
        tables = (self.persistent, self.recursive)
        return [path for table in tables for path, some in table.items() if watcher in some]

    def discard(self, watcher: Watcher) -> None:
        """Remove a watcher everywhere; events that the server still sends for it are dropped."""
        for table in self._all:
            for path in [path for path, some in table.items() if watcher in some]:
                del table[path][watcher]
                if not table[path]:
                    del table[path]
                    self.settle(path)

    def everybody(self) -> list[Watcher]:
        """Return every watcher once."""
        return list({one: None for table in self._all for some in table.values() for one in some})

    def clear(self) -> None:
        self.served.begin((), ())
        for table in self._all:
            table.clear()

    def requests(self, last_zxid: int) -> Iterator[SetWatchesRequest]:
        """Yield the requests that set all of them again, each of a bounded size."""
        self.served.begin(self.persistent, self.recursive)
        piece: list[list[bytes]] = [[] for _ in self._all]
        size = 0
        for number, table in enumerate(self._all):
            for path in table:
                if size and size + len(path) > _CHUNK_BYTES_MAX:
                    yield self._request(last_zxid, piece)
                    piece, size = [[] for _ in self._all], 0
                piece[number].append(path)
                size += len(path) + 4
        if size:
            yield self._request(last_zxid, piece)

    def _request(self, last_zxid: int, piece: list[list[bytes]]) -> SetWatchesRequest:
        request = SetWatchesRequest(last_zxid, *piece)
        # Persistent ones fire nothing. They come last, so no later reply is waited for.
        if request.data or request.exists or request.child:
            self.served.expect_replay()
        return request


def _tell(watcher: Watcher, event: Event) -> None:
    try:
        watcher(event)
    except Exception as error:
        asyncio.get_running_loop().call_exception_handler(
            {"message": f"a watcher failed on {event}", "exception": error}
        )

"""The watches of a client: who is told of what, and what is set again after a reconnect.

The server tells a connection only once of an event, however many watchers of the client it
concerns; here it is passed on to all of them. A one-shot watch is over with its first event. All
paths are the server's, with the chroot.

The server has one watch for a connection at a path, and the latest request says of which mode, up
to ZooKeeper 3.8: a read with a watch would end a persistent one there, and one persistent watch a
recursive one. So where there is a lasting watch, a read asks for none, and is told by that one; and
a recursive one stays recursive. Such a watch does not tell that children changed, but it tells of
the children, and from that we know.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Final, TypeAlias

from paddock.client.states import Event, EventType, SessionState
from paddock.protocol import paths
from paddock.protocol.requests import SetWatchesRequest

Watcher: TypeAlias = Callable[[Event], None]
Table: TypeAlias = dict[bytes, dict[Watcher, None]]

# What one setWatches may hold, so that it stays below the frame limit of any server.
_CHUNK_BYTES_MAX: Final = 128 * 1024


class WatchKind(IntEnum):
    """Which watches on a path are meant."""

    CHILDREN = 1
    DATA = 2
    ANY = 3


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
        # In the order in which a request has them that sets them again.
        self._all = (self.data, self.exists, self.child, self.persistent, self.recursive)
        # Where the server has a lasting watch, whoever needs it, and whether it is recursive.
        self._served: dict[bytes, bool] = {}
        # The lasting watches that are asked for there, the latest last: whether it is recursive.
        self._expected: dict[bytes, list[bool]] = {}
        # Told of every state, and of the events of those watches that were set for it.
        self.default: Watcher | None = None

    def tell(self, event: Event, path: bytes) -> None:
        """Pass an event on to everybody whom it concerns."""
        for watcher in self.take(event.type, path):
            _tell(watcher, event)

    def tell_everybody(self, state: SessionState) -> None:
        """Pass the state of the session on."""
        event = Event(state, EventType.NONE, None)
        watchers = dict.fromkeys(self.everybody())
        if self.default is not None:
            watchers[self.default] = None
        for watcher in watchers:
            _tell(watcher, event)

    def add(self, table: Table, path: bytes, watcher: Watcher) -> None:
        table.setdefault(path, {})[watcher] = None

    def expect(self, path: bytes, recursive: bool) -> None:
        """Take note that the server is asked for a lasting watch."""
        self._expected.setdefault(path, []).append(recursive)

    def expect_no_more(self, path: bytes, recursive: bool) -> None:
        """Take note that it was answered, or is not waited for."""
        modes = self._expected[path]
        modes.remove(recursive)
        if not modes:
            del self._expected[path]

    def is_recursive(self, path: bytes) -> bool:
        """Tell whether there is a recursive watch on a path, or will be."""
        return path in self.recursive or True in self._expected.get(path, [])

    def serve(self, path: bytes, recursive: bool) -> None:
        """Take note that the server has a lasting watch, and of which mode."""
        self._served[path] = recursive

    def serve_no_more(self, path: bytes) -> None:
        """Take note that it has none."""
        self._served.pop(path, None)

    def is_carried(self, path: bytes, is_child: bool, *, soon: bool = False) -> bool:
        """Tell whether a lasting watch brings what a one-shot watch waits for, or will soon."""
        mode = self._served.get(path)
        if soon and path in self._expected:
            mode = self._expected[path][-1]
        return mode is False if is_child else mode is not None

    def parent_to_tell(self, kind: EventType, path: bytes) -> bytes | None:
        """Give the node whose children changed with an event, if the server does not tell so."""
        if not self._served or path == paths.ROOT:
            return None
        if kind not in (EventType.CREATED, EventType.DELETED):
            return None
        above = paths.parent(path)
        return above if self._served.get(above) else None

    def take(self, kind: int, path: bytes) -> list[Watcher]:
        """Give everybody whom an event concerns, each once; one-shot watches are over with it."""
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
        """Tell whether there are watches of a kind on a path, or those of one watcher."""
        some = [table.get(path, {}) for table in self._tables_of(kind)]
        return any(some) if watcher is None else any(watcher in one for one in some)

    def are_others(self, path: bytes, kind: WatchKind, watcher: Watcher | None) -> bool:
        """Tell whether the server's watch would be missed by others, if these were removed there.

        A persistent watch is one of both kinds there, and has no halves here.
        """
        meant = self._tables_of(kind)
        touched = meant if kind is WatchKind.ANY else (*meant, self.persistent, self.recursive)
        for table in touched:
            others = dict(table.get(path, {}))
            if any(table is one for one in meant):
                if watcher is None:
                    continue
                others.pop(watcher, None)
            if others:
                return True
        return False

    def remove(self, path: bytes, kind: WatchKind, watcher: Watcher | None = None) -> bool:
        """Forget the watches of a kind on a path, or those of one watcher; tell if any were."""
        found = self.has(path, kind, watcher)
        for table in self._tables_of(kind):
            if watcher is not None:
                table.get(path, {}).pop(watcher, None)
            if watcher is None or not table.get(path, True):
                table.pop(path, None)
        return found

    def _tables_of(self, kind: WatchKind) -> tuple[Table, ...]:
        if kind is WatchKind.DATA:
            return (self.data, self.exists)
        if kind is WatchKind.CHILDREN:
            return (self.child,)
        return self._all

    def lasting(self, watcher: Watcher) -> list[bytes]:
        """Give the paths on which a watcher has persistent watches of any kind."""
        tables = (self.persistent, self.recursive)
        return [path for table in tables for path, some in table.items() if watcher in some]

    def discard(self, watcher: Watcher) -> None:
        """Forget a watcher altogether; what the server still sends on its account goes nowhere."""
        for table in self._all:
            for path in [path for path, some in table.items() if watcher in some]:
                del table[path][watcher]
                if not table[path]:
                    del table[path]

    def everybody(self) -> list[Watcher]:
        """Give every watcher once, for what concerns the session."""
        return list({one: None for table in self._all for some in table.values() for one in some})

    def clear(self) -> None:
        self._served.clear()
        for table in self._all:
            table.clear()

    def requests(self, last_zxid: int) -> Iterator[SetWatchesRequest]:
        """Give what sets all of them again, in pieces of a bounded size."""
        # Recursive ones come last, so they count.
        self._served = dict.fromkeys(self.persistent, False) | dict.fromkeys(self.recursive, True)
        piece: list[list[bytes]] = [[] for _ in self._all]
        size = 0
        for number, table in enumerate(self._all):
            for path in table:
                if size and size + len(path) > _CHUNK_BYTES_MAX:
                    yield SetWatchesRequest(last_zxid, *piece)
                    piece, size = [[] for _ in self._all], 0
                piece[number].append(path)
                size += len(path) + 4
        if size:
            yield SetWatchesRequest(last_zxid, *piece)


def _tell(watcher: Watcher, event: Event) -> None:
    try:
        watcher(event)
    except Exception as error:
        asyncio.get_running_loop().call_exception_handler(
            {"message": f"a watcher failed on {event}", "exception": error}
        )

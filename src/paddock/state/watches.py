"""Watches: who is told when what happens.

There are two tables, as upstream: data watches hear of a node's creation, data and deletion, child
watches of its children and its deletion. A watcher stands at most once at a path in a table, with
one mode; setting a watch again replaces the mode. A persistent watch stands in both tables.

* one-shot: the first event takes it away;
* persistent: stays;
* recursive: stays, hears of everything at and below its path, but never that children changed,
  since it hears of the children themselves.

An event is encoded once for everybody who gets it, and withheld from those without READ.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from mypy_extensions import i64, mypyc_attr

from paddock.protocol import events
from paddock.protocol.acl import READ
from paddock.state.access import NOBODY, Identities, NodeACL
from paddock.state.operations import Change

ONE_SHOT: Final = 0
PERSISTENT: Final = 1
RECURSIVE: Final = 2


# Compiled or not, anybody may be a watcher: a connection, a test.
@mypyc_attr(allow_interpreted_subclasses=True)
class Watcher:
    """Somebody who can be told of events; on a server, a connection."""

    def __init__(self) -> None:
        self.identities: Identities = NOBODY
        # What it watches; a persistent watch counts twice, since it stands in both tables.
        self.watch_count = 0
        self.watch_bytes = 0

    def notify(self, event: bytes) -> None:
        """Take the frame of an event."""
        raise NotImplementedError


class RecursiveWatches:
    """The recursive watches of a table, found by whatever happens below them.

    The cuts of a path are looked at from the top, by a checksum that grows with them, so what an
    event costs follows the depth of the deepest watch, once. A cut itself is only taken, and
    compared in full, for somebody of whom it is not known yet that the event concerns him: else
    watches on every level of a deep path would cost its length at each of them.
    """

    def __init__(self) -> None:
        # How many there are.
        self.count: i64 = 0
        self._by_path: dict[bytes, dict[Watcher, None]] = {}
        # The same by the checksum of the path, with how many somebody has of one checksum.
        self._by_checksum: dict[int, dict[Watcher, int]] = {}
        # The length of the longest path; -1 if it has to be found out again.
        self._longest: i64 = 0

    def add(self, path: bytes, watcher: Watcher) -> None:
        self.count += 1
        self._by_path.setdefault(path, {})[watcher] = None
        marks = self._by_checksum.setdefault(crc32(path), {})
        marks[watcher] = marks.get(watcher, 0) + 1
        if self._longest >= 0 and len(path) > self._longest:
            self._longest = len(path)

    def remove(self, path: bytes, watcher: Watcher) -> None:
        self.count -= 1
        here = self._by_path[path]
        del here[watcher]
        if not here:
            del self._by_path[path]
            self._longest = -1
        checksum = crc32(path)
        marks = self._by_checksum[checksum]
        marks[watcher] -= 1
        if not marks[watcher]:
            del marks[watcher]
            if not marks:
                del self._by_checksum[checksum]

    def collect_above(self, path: bytes, concerned: dict[Watcher, None]) -> None:
        """Add everybody who watches above a path; at the path itself is not above it."""
        if path == b"/":
            return
        if b"/" in self._by_path:
            concerned.update(self._by_path[b"/"])
        if self._longest < 0:
            self._longest = max([len(one) for one in self._by_path], default=0)
        checksum = 0
        start = 0
        end = path.find(b"/", 1)
        while 0 < end <= self._longest:
            checksum = crc32(path[start:end], checksum)
            marks = self._by_checksum.get(checksum)
            if marks is not None and not marks.keys() <= concerned.keys():
                here = self._by_path.get(path[:end])
                if here is not None:
                    concerned.update(here)
            start = end
            end = path.find(b"/", start + 1)


class WatchTable:
    """One of the two tables."""

    def __init__(self) -> None:
        self._by_path: dict[bytes, dict[Watcher, int]] = {}
        self._by_watcher: dict[Watcher, dict[bytes, None]] = {}
        # The recursive ones among them, by the paths above an event's.
        self._recursive = RecursiveWatches()
        # Invariant: the number of (path, watcher) pairs.
        self.size: i64 = 0

    def paths(self) -> list[bytes]:
        """List the paths that somebody watches."""
        return list(self._by_path)

    def paths_of(self, watcher: Watcher) -> list[bytes]:
        return list(self._by_watcher.get(watcher, {}))

    def watchers(self) -> list[Watcher]:
        """List everybody who watches something."""
        return list(self._by_watcher)

    def watchers_of(self, path: bytes) -> list[Watcher]:
        return list(self._by_path.get(path, {}))

    def path_count(self) -> int:
        return len(self._by_path)

    def watcher_count(self) -> int:
        return len(self._by_watcher)

    def add(self, path: bytes, watcher: Watcher, mode: int) -> None:
        here = self._by_path.get(path)
        if here is None:
            here = {}
            self._by_path[path] = here
        old = here.get(watcher, -1)
        here[watcher] = mode
        if old < 0:
            self.size += 1
            watcher.watch_count += 1
            watcher.watch_bytes += len(path)
            mine = self._by_watcher.get(watcher)
            if mine is None:
                mine = {}
                self._by_watcher[watcher] = mine
            mine[path] = None
        if (old == RECURSIVE) != (mode == RECURSIVE):
            if mode == RECURSIVE:
                self._recursive.add(path, watcher)
            else:
                self._recursive.remove(path, watcher)

    def contains(self, path: bytes, watcher: Watcher) -> bool:
        here = self._by_path.get(path)
        return here is not None and watcher in here

    def remove(self, path: bytes, watcher: Watcher) -> bool:
        """Take a watch away, and tell whether there was one."""
        here = self._by_path.get(path)
        if here is None or watcher not in here:
            return False
        mine = self._by_watcher[watcher]
        del mine[path]
        if not mine:
            del self._by_watcher[watcher]
        self._drop(path, here, watcher)
        return True

    def remove_watcher(self, watcher: Watcher) -> None:
        """Forget somebody altogether."""
        for path in self._by_watcher.pop(watcher, {}):
            self._drop(path, self._by_path[path], watcher)

    def trigger(
        self,
        kind: int,
        path: bytes,
        acl: NodeACL,
        told: dict[Watcher, None] | None,
        event: bytes | None = None,
    ) -> dict[Watcher, None] | None:
        """Tell everybody whom an event concerns, but not those who were `told` already.

        They hear of it in the order in which they came to watch. Gives all whom it concerned, also
        those who may not see it.
        """
        # Not a set, whose order would differ from one run to the next.
        concerned: dict[Watcher, None] | None = None
        here = self._by_path.get(path)
        if here is not None:
            concerned = self._concerned_here(kind, path, here)
        if self._recursive.count and kind != events.NODE_CHILDREN_CHANGED:
            if concerned is None:
                concerned = {}
            self._recursive.collect_above(path, concerned)
        if concerned:
            open_to_all = acl.anyone & READ
            for watcher in concerned:
                if (told is None or watcher not in told) and (
                    open_to_all or acl.permits(READ, watcher.identities)
                ):
                    if event is None:
                        event = events.notification(kind, path)
                    watcher.notify(event)
        return concerned

    def _concerned_here(
        self, kind: int, path: bytes, here: dict[Watcher, int]
    ) -> dict[Watcher, None] | None:
        concerned: dict[Watcher, None] = {}
        fired: list[Watcher] = []
        for watcher, mode in here.items():
            if mode == RECURSIVE and kind == events.NODE_CHILDREN_CHANGED:
                continue
            concerned[watcher] = None
            if mode == ONE_SHOT:
                fired.append(watcher)
        for watcher in fired:
            mine = self._by_watcher[watcher]
            del mine[path]
            if not mine:
                del self._by_watcher[watcher]
            self._drop(path, here, watcher)
        return concerned

    def _drop(self, path: bytes, here: dict[Watcher, int], watcher: Watcher) -> None:
        mode = here.pop(watcher)
        self.size -= 1
        watcher.watch_count -= 1
        watcher.watch_bytes -= len(path)
        if mode == RECURSIVE:
            self._recursive.remove(path, watcher)
        if not here:
            del self._by_path[path]


class Watches:
    """All watches of this server, with what one watcher may have of them; 0 is no limit."""

    def __init__(self, count_max: int = 0, bytes_max: int = 0) -> None:
        self.data = WatchTable()
        self.child = WatchTable()
        self._count_max = count_max
        self._bytes_max = bytes_max

    def has_room(self, watcher: Watcher, count: int, size: int) -> bool:
        """Tell whether somebody may watch so many more paths of so many bytes together."""
        return not (
            0 < self._count_max < watcher.watch_count + count
            or 0 < self._bytes_max < watcher.watch_bytes + size
        )

    def add_persistent(self, path: bytes, watcher: Watcher, recursive: bool) -> None:
        mode = RECURSIVE if recursive else PERSISTENT
        self.data.add(path, watcher, mode)
        self.child.add(path, watcher, mode)

    def remove_watcher(self, watcher: Watcher) -> None:
        self.data.remove_watcher(watcher)
        self.child.remove_watcher(watcher)

    def publish(self, changes: list[Change]) -> None:
        """Tell everybody of what has just been applied, before anything else is."""
        for change in changes:
            path, acl = change.path, change.node.acl
            if change.kind == Change.DATA:
                if self.data.size:
                    self.data.trigger(events.NODE_DATA_CHANGED, path, acl, None)
            elif change.kind == Change.CREATED:
                self.data.trigger(events.NODE_CREATED, path, acl, None)
                self._children_changed(change)
            elif change.kind == Change.DELETED:
                told = self.data.trigger(events.NODE_DELETED, path, acl, None)
                self.child.trigger(events.NODE_DELETED, path, acl, told)
                self._children_changed(change)

    def _children_changed(self, change: Change) -> None:
        assert change.parent is not None
        cut = change.path.rfind(b"/")
        above = change.path[:cut] if cut else b"/"
        self.child.trigger(events.NODE_CHILDREN_CHANGED, above, change.parent.acl, None)

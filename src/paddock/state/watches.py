"""Watches: which watchers get which events.

There are two tables, as upstream: data watches fire on a node's creation, change and deletion,
child watches on changes of its children and on its deletion. A watcher may watch one path in
several modes, which are independent of each other, as in 3.9:

* one-shot: in one of the tables. The first event removes it, and leaves the other modes.
* persistent: stays, in both tables.
* recursive: stays, in the data table, and fires for every node at and below its path. It gets no
  event that children changed, since it gets those of the children themselves.

A watcher gets an event of one table once, however many of its watches fire; likewise a deletion,
which fires in both. An event is encoded once for all watchers, carries the zxid of its change, and
is withheld without READ. Consecutive events of one entry for the same watchers are sent as one
batch: a transaction, or the end of a session, may be fifty thousand events.

* Adding, removing and finding a watch costs the same whatever is watched at other paths. An event
  costs its watchers, and the levels of its path that lead to recursive watches.
* Each mode in each table counts as one watch with the bytes of its path, once.
* A watcher is removed in parts (`remove_some`). From the first part on it gets no event and can
  add no watch.
* A table that was large and is nearly empty is copied, since dictionaries do not shrink.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from paddock.protocol import events
from paddock.protocol.acl import READ
from paddock.state.access import NodeACL
from paddock.state.operations import Change
from paddock.state.recursive_watches import RecursiveWatches
from paddock.state.table import Table
from paddock.state.watcher import ONE_SHOT, PERSISTENT, RECURSIVE, Watcher

# How many modes a sum of modes has.
_MODE_COUNTS: Final[tuple[int, ...]] = (0, 1, 1, 2, 1, 2, 2, 3)

# With more changes than this, an entry's events are told in pieces, of about this size.
_FEW: Final = 16
_GATHERED_BYTES: Final = 256 << 10
# The kinds of events that have watchers.
_KINDS: Final = (
    events.NODE_CREATED,
    events.NODE_DELETED,
    events.NODE_DATA_CHANGED,
    events.NODE_CHILDREN_CHANGED,
)
# The buckets of a fan-out: 1, 2, 4 and so on to 65,536, and all above that.
_POWERS: Final = 18
# A table of paths is copied when it once had this many, and many times what it has now.
_LARGE: Final = 1024
_SPARSE: Final = 32


class FanOut:
    """How many watchers the events of one kind had; those without any do not count."""

    def __init__(self) -> None:
        self.events: i64 = 0
        self.watchers: i64 = 0
        self.least: i64 = 0
        self.most: i64 = 0
        # How many had up to 2**n watchers, and more than half as many; but none with one watcher,
        # which is the usual case: to count in a list is slower, each number in it is an object.
        self._by_power = [0] * _POWERS

    def note(self, watchers: i64) -> None:
        """Count an event with so many watchers, which are at least one."""
        if watchers < self.least or not self.events:
            self.least = watchers
        if watchers > self.most:
            self.most = watchers
        self.events += 1
        self.watchers += watchers
        if watchers > 1:
            self._by_power[min(int(watchers - 1).bit_length(), _POWERS - 1)] += 1

    def buckets(self) -> list[int]:
        """Return how many events had up to 2**n watchers and more than half as many, by n."""
        return [self.events - sum(self._by_power), *self._by_power[1:]]


class WatchTable:
    """One of the two tables."""

    def __init__(self, fan_outs: list[FanOut]) -> None:
        # By kind of event; both tables count together.
        self._fan_outs = fan_outs
        # Who watches a path, in which modes.
        self._by_path = Table[dict[Watcher, int]]()
        self._by_watcher: dict[Watcher, dict[bytes, None]] = {}
        # The most paths since the table was last copied.
        self._path_count_max: i64 = 0
        # The recursive ones among them, by the paths above an event's.
        self._recursive = RecursiveWatches()
        # Invariant: the number of (path, watcher) pairs, in whatever modes. It is what is reported.
        self.size: i64 = 0

    def paths(self) -> list[bytes]:
        """Return all watched paths."""
        return list(self._by_path)

    def paths_of(self, watcher: Watcher) -> list[bytes]:
        return list(self._by_watcher.get(watcher, {}))

    def watchers(self) -> list[Watcher]:
        """Return all watchers."""
        return list(self._by_watcher)

    def watchers_of(self, path: bytes) -> list[Watcher]:
        return list(self._by_path.get(path) or {})

    def path_count(self) -> int:
        return len(self._by_path)

    def watcher_count(self) -> int:
        return len(self._by_watcher)

    def add(self, path: bytes, watcher: Watcher, mode: i64) -> None:
        """Add a watch of one mode, unless it exists."""
        if watcher.is_leaving:
            return
        here = self._by_path.get(path)
        if here is None:
            here = {}
            self._by_path[path] = here
            if len(self._by_path) > self._path_count_max:
                self._path_count_max = len(self._by_path)
        old: i64 = here.get(watcher, 0)
        if old & mode:
            return
        here[watcher] = old | mode
        watcher.watch_count += 1
        watcher.watch_bytes += len(path)
        if not old:
            self.size += 1
            mine = self._by_watcher.get(watcher)
            if mine is None:
                mine = {}
                self._by_watcher[watcher] = mine
            mine[path] = None
        if mode == RECURSIVE:
            self._recursive.add(path, watcher)

    def has(self, watcher: Watcher) -> bool:
        """Return whether a watcher has a watch."""
        return watcher in self._by_watcher

    def contains(self, path: bytes, watcher: Watcher, modes: i64) -> bool:
        """Return whether a watcher watches a path in one of the modes."""
        here = self._by_path.get(path)
        if here is None:
            return False
        found: i64 = here.get(watcher, 0)
        return found & modes != 0

    def remove(self, path: bytes, watcher: Watcher, modes: i64) -> bool:
        """Remove the watches of some modes; return whether there was one."""
        here = self._by_path.get(path)
        if here is None:
            return False
        old: i64 = here.get(watcher, 0)
        gone = old & modes
        if not gone:
            return False
        if gone != old:
            here[watcher] = old - gone
            self._uncount(path, watcher, gone)
            return True
        self._forget(path, watcher)
        self._drop(path, here, watcher)
        return True

    def remove_some(self, watcher: Watcher, limit: i64) -> i64:
        """Remove the watches at up to `limit` paths of a watcher; return the number of paths."""
        mine = self._by_watcher.get(watcher)
        if mine is None:
            return 0
        done: i64 = 0
        while mine and done < limit:
            # The last one, since the first is behind the gaps that earlier removals left.
            path, _ = mine.popitem()
            self._drop(path, self._by_path[path], watcher)
            done += 1
        if not mine:
            del self._by_watcher[watcher]
        return done

    def trigger(
        self,
        kind: int,
        path: bytes,
        acl: NodeACL,
        zxid: int,
        told: dict[Watcher, int] | None,
        batch: EventBatch | None = None,
    ) -> dict[Watcher, int] | None:
        """Notify the watchers of an event, but not those that were `told` already.

        They are notified in the order in which they came to watch. Returns all of them, including
        those without READ.
        """
        # Not a set, whose order would differ from one run to the next.
        concerned: dict[Watcher, int] | None = None
        here = self._by_path.get(path)
        if here is not None:
            self._fire(path, here)
            concerned = here
        if self._recursive.count:
            concerned = self._recursive.join_above(path, concerned)
        if concerned:
            self._fan_outs[kind].note(len(concerned))
        if concerned and batch is not None:
            batch.add(kind, path, acl, zxid, concerned, told)
        elif concerned:
            event: bytes | None = None
            open_to_all = acl.anyone & READ
            for watcher in concerned:
                if (
                    (told is None or watcher not in told)
                    and not watcher.is_leaving
                    and (open_to_all or acl.permits(READ, watcher.identities))
                ):
                    if event is None:
                        event = events.notification(kind, path, zxid)
                    watcher.notify(event)
        return concerned

    def _fire(self, path: bytes, here: dict[Watcher, int]) -> None:
        """Remove the one-shot watches of a path.

        The remaining ones are in a new dictionary, and the old one is the caller's: a watcher that
        is notified may change the table.
        """
        lasting: dict[Watcher, int] | None = None
        for watcher, found in here.items():
            modes: i64 = found
            if modes & ONE_SHOT:
                watcher.watch_count -= 1
                watcher.watch_bytes -= len(path)
                if modes == ONE_SHOT:
                    self.size -= 1
                    self._forget(path, watcher)
                    continue
            if lasting is None:
                lasting = {}
            lasting[watcher] = modes & ~ONE_SHOT
        if lasting is None:
            self._drop_path(path)
        else:
            self._by_path[path] = lasting

    def _forget(self, path: bytes, watcher: Watcher) -> None:
        """Remove a path from those of its watcher."""
        mine = self._by_watcher[watcher]
        del mine[path]
        if not mine:
            del self._by_watcher[watcher]

    def _drop(self, path: bytes, here: dict[Watcher, int], watcher: Watcher) -> None:
        """Remove a watcher from those of a path."""
        modes: i64 = here.pop(watcher)
        self.size -= 1
        self._uncount(path, watcher, modes)
        if not here:
            self._drop_path(path)

    def _drop_path(self, path: bytes) -> None:
        by_path = self._by_path
        del by_path[path]
        if self._path_count_max > _LARGE and len(by_path) * _SPARSE < self._path_count_max:
            self._by_path = by_path.copy()
            self._path_count_max = len(by_path)

    def _uncount(self, path: bytes, watcher: Watcher, modes: i64) -> None:
        """Subtract the watches of these modes from the counts."""
        count = _MODE_COUNTS[modes]
        watcher.watch_count -= count
        watcher.watch_bytes -= len(path) * count
        if modes & RECURSIVE:
            self._recursive.remove(path, watcher)


class EventBatch:
    """Consecutive events of one entry for the same watchers."""

    def __init__(self) -> None:
        self._watchers: dict[Watcher, int] = {}
        self._events: list[bytes] = []
        self._size: i64 = 0

    def add(
        self,
        kind: int,
        path: bytes,
        acl: NodeACL,
        zxid: int,
        concerned: dict[Watcher, int],
        told: dict[Watcher, int] | None,
    ) -> None:
        """Add an event for those of `concerned` that may see it."""
        if told:
            concerned = {one: modes for one, modes in concerned.items() if one not in told}
        if not acl.anyone & READ:
            concerned = {
                one: modes for one, modes in concerned.items() if acl.permits(READ, one.identities)
            }
        if not concerned:
            return
        if self._size > _GATHERED_BYTES or concerned.keys() != self._watchers.keys():
            self.tell()
            # A copy: the table's own changes.
            self._watchers = dict(concerned)
        event = events.notification(kind, path, zxid)
        self._events.append(event)
        self._size += len(event)

    def tell(self) -> None:
        """Send the events."""
        if self._events:
            piece, count = b"".join(self._events), len(self._events)
            for watcher in self._watchers:
                if not watcher.is_leaving:
                    watcher.notify_all(piece, count)
            self._events = []
            self._size = 0


class Watches:
    """All watches of this server, with limits for one watcher and for all."""

    def __init__(self, count_max: int = 0, bytes_max: int = 0, total_max: int = 0) -> None:
        # By the kind of the event.
        self.fan_outs = [FanOut() for _ in range(max(_KINDS) + 1)]
        self.data = WatchTable(self.fan_outs)
        self.child = WatchTable(self.fan_outs)
        # 0 is no limit.
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._total_max = total_max
        # Watches that are about to be set.
        self.reserved = 0

    def reset(self) -> None:
        """Begin to count the watchers of events anew."""
        self.fan_outs[:] = [FanOut() for _ in self.fan_outs]

    def has_room(self, watcher: Watcher, count: int, size: int) -> bool:
        """Return whether a watcher may have `count` more watches, of `size` bytes together."""
        return not (
            0 < self._count_max < watcher.watch_count + count
            or 0 < self._total_max < self.data.size + self.child.size + self.reserved + count
            or 0 < self._bytes_max < watcher.watch_bytes + size
        )

    def add_persistent(self, path: bytes, watcher: Watcher) -> None:
        self.data.add(path, watcher, PERSISTENT)
        self.child.add(path, watcher, PERSISTENT)

    def add_recursive(self, path: bytes, watcher: Watcher) -> None:
        self.data.add(path, watcher, RECURSIVE)

    def remove_some(self, watcher: Watcher, limit: i64) -> bool:
        """Remove up to `limit` watches of a watcher that leaves; return whether some are left.

        A path counts once for each table that it is in.
        """
        watcher.is_leaving = True
        done = self.data.remove_some(watcher, limit)
        self.child.remove_some(watcher, limit - done)
        return self.data.has(watcher) or self.child.has(watcher)

    def publish(self, changes: list[Change]) -> None:
        """Notify all watchers of the changes of an entry, before the next one is applied."""
        data, child = self.data, self.child
        batch = EventBatch() if len(changes) > _FEW else None
        for change in changes:
            kind = change.kind
            if kind == Change.DATA:
                if data.size:
                    acl = change.node.acl
                    data.trigger(
                        events.NODE_DATA_CHANGED, change.path, acl, change.zxid, None, batch
                    )
            elif kind == Change.CREATED:
                if data.size:
                    acl = change.node.acl
                    data.trigger(events.NODE_CREATED, change.path, acl, change.zxid, None, batch)
                if child.size:
                    self._children_changed(change, batch)
            elif kind == Change.DELETED:
                path, acl, zxid = change.path, change.node.acl, change.zxid
                told: dict[Watcher, int] | None = None
                if data.size:
                    told = data.trigger(events.NODE_DELETED, path, acl, zxid, None, batch)
                if child.size:
                    child.trigger(events.NODE_DELETED, path, acl, zxid, told, batch)
                    self._children_changed(change, batch)
        if batch is not None:
            batch.tell()

    def _children_changed(self, change: Change, batch: EventBatch | None) -> None:
        assert change.parent is not None
        cut = change.path.rfind(b"/")
        above = change.path[:cut] if cut else b"/"
        acl = change.parent.acl
        self.child.trigger(events.NODE_CHILDREN_CHANGED, above, acl, change.zxid, None, batch)

"""Setting watches again after a reconnect, in steps, between which other clients are served.

A request may hold as many watches as a session may have. A one-shot watch is compared with the last
zxid that the client saw when it is set: it fires at once for any later change, also between two
steps. Lasting watches do not fire for earlier changes, as upstream.
"""

from __future__ import annotations

from typing import Final

from paddock.protocol import events
from paddock.protocol.acl import READ
from paddock.protocol.requests import SetWatchesRequest
from paddock.state.machine import StateMachine
from paddock.state.node import Node
from paddock.state.watcher import ONE_SHOT, Watcher
from paddock.state.watches import Watches

_DATA: Final = 0
_EXISTS: Final = 1
_PERSISTENT: Final = 3


class WatchSetting:
    """The watches of one request, for one watcher."""

    def __init__(
        self, request: SetWatchesRequest, machine: StateMachine, watches: Watches, watcher: Watcher
    ) -> None:
        self._zxid = request.relative_zxid
        self._lists = [
            request.data,
            request.exists,
            request.child,
            request.persistent,
            request.recursive,
        ]
        self._machine = machine
        self._watches = watches
        self._watcher = watcher
        # The list that is worked off, and the next path in it.
        self._kind = 0
        self._at = 0
        # How many of the watches that are counted as there are not set yet.
        self._reserved = 0

    def reserve(self) -> bool:
        """Reserve room for all of them; return whether there is any."""
        # A persistent watch stands in two tables.
        lists = [*self._lists, self._lists[_PERSISTENT]]
        count = sum(len(paths) for paths in lists)
        size = sum(len(path) for paths in lists for path in paths)
        if not self._watches.has_room(self._watcher, count, size):
            return False
        self._reserved = count
        self._watches.reserved += count
        return True

    def abandon(self) -> None:
        """Release the room of the watches that are not set."""
        self._watches.reserved -= self._reserved
        self._reserved = 0

    def step(self, limit: int) -> bool:
        """Set at most `limit` of them; return whether some are left."""
        while self._kind < len(self._lists) and not self._watcher.is_leaving:
            paths = self._lists[self._kind]
            end = min(self._at + limit, len(paths))
            limit -= end - self._at
            for at in range(self._at, end):
                self._set(self._kind, paths[at])
            self._at = end
            if end < len(paths):
                return True
            self._kind += 1
            self._at = 0
        self.abandon()
        return False

    def _set(self, kind: int, path: bytes) -> None:
        watches, watcher = self._watches, self._watcher
        if kind == _PERSISTENT:
            watches.add_persistent(path, watcher)
            return
        if kind > _PERSISTENT:
            watches.add_recursive(path, watcher)
            return
        node = self._machine.tree.nodes.get(path)
        if kind == _EXISTS:
            if node is None:
                watches.data.add(path, watcher, ONE_SHOT)
            else:
                self._tell(events.NODE_CREATED, path, node)
        elif node is None:
            self._tell(events.NODE_DELETED, path, None)
        elif kind == _DATA:
            if node.mzxid > self._zxid:
                self._tell(events.NODE_DATA_CHANGED, path, node)
            else:
                watches.data.add(path, watcher, ONE_SHOT)
        elif node.pzxid > self._zxid:
            self._tell(events.NODE_CHILDREN_CHANGED, path, node)
        else:
            watches.child.add(path, watcher, ONE_SHOT)

    def _tell(self, kind: int, path: bytes, node: Node | None) -> None:
        """Fire a watch at once. The event has no zxid, since it may stand for several changes."""
        if node is None or node.acl.permits(READ, self._watcher.identities):
            self._watcher.notify(events.notification(kind, path, events.NO_ZXID))

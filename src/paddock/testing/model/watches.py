"""Watches of the reference model."""

from __future__ import annotations

from typing import Final, TypeAlias

from paddock import errors
from paddock.protocol import events, opcodes
from paddock.protocol.acl import READ
from paddock.protocol.requests import SetWatchesRequest
from paddock.testing.model.parts import Caller, ModelNode, No, permitted

Watchers: TypeAlias = set[tuple[bytes, Caller, str]]
"""The watches of one kind: a path, a caller, and "once", "persistent" or "recursive"."""

Moment: TypeAlias = tuple[Watchers, Watchers, list[tuple[Caller, int]]]
"""The watches as they were, and how much each of their callers had been told."""

_NO_ZXID: Final = -1


class ModelWatches:
    """Both kinds of watches."""

    def __init__(self) -> None:
        self.data: Watchers = set()
        self.child: Watchers = set()

    def add(self, caller: Caller, path: bytes, mode: str) -> None:
        """Watch until it is removed: a recursive watch is told of nodes, never of children."""
        self.data.add((path, caller, mode))
        if mode == "persistent":
            self.child.add((path, caller, mode))

    def forget(self, caller: Caller) -> None:
        """Drop the watches of a connection that is gone."""
        for table in (self.data, self.child):
            table.difference_update([watch for watch in table if watch[1] is caller])

    def moment(self) -> Moment:
        """Return what `go_back` needs to undo everything since."""
        told = [(watcher, len(watcher.events)) for _, watcher, _ in self.data | self.child]
        return set(self.data), set(self.child), told

    def go_back(self, moment: Moment) -> None:
        """Undo everything since: no watch has fired, no event was sent."""
        self.data, self.child, told = moment
        for watcher, count in told:
            del watcher.events[count:]

    def created(
        self, path: bytes, node: ModelNode, above: bytes, parent: ModelNode, zxid: int
    ) -> None:
        """Tell of a new node."""
        _tell(self.data, events.NODE_CREATED, path, node, zxid)
        _tell(self.child, events.NODE_CHILDREN_CHANGED, above, parent, zxid)

    def deleted(
        self, path: bytes, node: ModelNode, above: bytes, parent: ModelNode, zxid: int
    ) -> None:
        """Tell of a node that is gone: each once, though it watches both its data and children."""
        told = _tell(self.data, events.NODE_DELETED, path, node, zxid)
        _tell(self.child, events.NODE_DELETED, path, node, zxid, told)
        _tell(self.child, events.NODE_CHILDREN_CHANGED, above, parent, zxid)

    def changed(self, path: bytes, node: ModelNode, zxid: int) -> None:
        """Tell of new data."""
        _tell(self.data, events.NODE_DATA_CHANGED, path, node, zxid)

    def set_again(
        self, caller: Caller, request: SetWatchesRequest, nodes: dict[bytes, ModelNode]
    ) -> None:
        """Set what a client had on its last connection, and tell it what it has missed."""
        since = request.relative_zxid

        def resume(table: Watchers, path: bytes, missed: int | None) -> None:
            node = nodes.get(path or b"/")
            if missed is None:
                table.add((path, caller, "once"))
            elif node is None or permitted(node.acls, READ, caller.identities):
                caller.events.append((missed, path, _NO_ZXID))

        for path in request.data:
            node = nodes.get(path or b"/")
            changed = events.NODE_DATA_CHANGED if node and node.mzxid > since else None
            resume(self.data, path, changed if node else events.NODE_DELETED)
        for path in request.exists:
            resume(self.data, path, events.NODE_CREATED if (path or b"/") in nodes else None)
        for path in request.child:
            node = nodes.get(path or b"/")
            changed = events.NODE_CHILDREN_CHANGED if node and node.pzxid > since else None
            resume(self.child, path, changed if node else events.NODE_DELETED)
        for paths, mode in ((request.persistent, "persistent"), (request.recursive, "recursive")):
            for path in paths:
                self.add(caller, path, mode)

    def look_for(self, caller: Caller, operation: int, path: bytes | None, kind: int) -> None:
        """Check that there are watches, or remove them; raises No if there are none."""
        both = (self.child, self.data)
        meant: dict[int, tuple[tuple[Watchers, ...], tuple[str, ...]]] = {
            1: ((self.child,), ("once",)),
            2: ((self.data,), ("once",)),
            3: (both, ("once", "persistent", "recursive")),
            4: (both, ("persistent",)),
            5: (both, ("recursive",)),
        }
        if kind not in meant:
            raise No(errors.MARSHALLING_ERROR)
        tables, modes = meant[kind]
        here = {watch for table in tables for watch in table if watch[:2] == (path, caller)}
        found = {watch for watch in here if watch[2] in modes}
        if not found:
            raise No(errors.NO_WATCHER)
        if operation == opcodes.REMOVE_WATCHES:
            for table in tables:
                table.difference_update(found)


def _tell(
    table: Watchers,
    kind: int,
    path: bytes,
    node: ModelNode,
    zxid: int,
    told: frozenset[Caller] = frozenset(),
) -> frozenset[Caller]:
    """Notify the watchers, but not those of `told`; return all of them."""
    concerned: set[Caller] = set()
    for watched, caller, mode in list(table):
        # Nothing is below the root's other name.
        prefix = b"/" if watched == b"/" else watched + b"/"
        below = mode == "recursive" and watched != b"" and path.startswith(prefix)
        if path == watched or below:
            concerned.add(caller)
        if path == watched and mode == "once":
            table.remove((watched, caller, mode))
    for caller in concerned - told:
        if permitted(node.acls, READ, caller.identities):
            caller.events.append((kind, path, zxid))
    return frozenset(concerned)

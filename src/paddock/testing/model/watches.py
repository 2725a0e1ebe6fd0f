"""Watches of the reference model: who is told of what."""

from __future__ import annotations

from typing import TypeAlias

from paddock import errors
from paddock.protocol import events, opcodes
from paddock.protocol.acl import READ
from paddock.protocol.requests import SetWatchesRequest
from paddock.testing.model.access import permitted
from paddock.testing.model.parts import Caller, ModelNode, No

Watchers: TypeAlias = dict[tuple[bytes, Caller], str]
"""The watches of one kind: "once", "persistent" or "recursive" at a path for a caller."""

Moment: TypeAlias = tuple[Watchers, Watchers, list[tuple[Caller, int]]]
"""The watches as they were, and how much each of their callers had been told."""


class ModelWatches:
    """Both kinds of watches."""

    def __init__(self) -> None:
        self.data: Watchers = {}
        self.child: Watchers = {}

    def add(self, caller: Caller, path: bytes, mode: str) -> None:
        """Watch data and children, until it is removed."""
        for table in (self.data, self.child):
            table[path, caller] = mode

    def forget(self, caller: Caller) -> None:
        """Drop the watches of a connection that is gone."""
        for table in (self.data, self.child):
            for key in [key for key in table if key[1] is caller]:
                del table[key]

    def moment(self) -> Moment:
        """Give what `go_back` needs to undo everything since."""
        told = [(watcher, len(watcher.events)) for _path, watcher in [*self.data, *self.child]]
        return dict(self.data), dict(self.child), told

    def go_back(self, moment: Moment) -> None:
        """Have it all as it was: no watch has fired, nobody was told."""
        self.data, self.child, told = moment
        for watcher, count in told:
            del watcher.events[count:]

    def created(self, path: bytes, node: ModelNode, above: bytes, parent: ModelNode) -> None:
        """Tell of a new node."""
        _tell(self.data, events.NODE_CREATED, path, node)
        _tell(self.child, events.NODE_CHILDREN_CHANGED, above, parent)

    def deleted(self, path: bytes, node: ModelNode, above: bytes, parent: ModelNode) -> None:
        """Tell of a node that is gone: each once, though it watches both its data and children."""
        told = _tell(self.data, events.NODE_DELETED, path, node)
        _tell(self.child, events.NODE_DELETED, path, node, told)
        _tell(self.child, events.NODE_CHILDREN_CHANGED, above, parent)

    def changed(self, path: bytes, node: ModelNode) -> None:
        """Tell of new data."""
        _tell(self.data, events.NODE_DATA_CHANGED, path, node)

    def set_again(
        self, caller: Caller, request: SetWatchesRequest, nodes: dict[bytes, ModelNode]
    ) -> None:
        """Set what a client had on its last connection, and tell it what it has missed."""
        since = request.relative_zxid

        def tell(kind: int, path: bytes) -> None:
            node = nodes.get(path or b"/")
            if node is None or permitted(node.acls, READ, caller.identities):
                caller.events.append((kind, path))

        for path in request.data:
            node = nodes.get(path or b"/")
            if node is None:
                tell(events.NODE_DELETED, path)
            elif node.mzxid > since:
                tell(events.NODE_DATA_CHANGED, path)
            else:
                self.data[path, caller] = "once"
        for path in request.exists:
            if (path or b"/") in nodes:
                tell(events.NODE_CREATED, path)
            else:
                self.data[path, caller] = "once"
        for path in request.child:
            node = nodes.get(path or b"/")
            if node is None:
                tell(events.NODE_DELETED, path)
            elif node.pzxid > since:
                tell(events.NODE_CHILDREN_CHANGED, path)
            else:
                self.child[path, caller] = "once"
        for paths, mode in ((request.persistent, "persistent"), (request.recursive, "recursive")):
            for path in paths:
                self.add(caller, path, mode)

    def look_for(self, caller: Caller, operation: int, path: bytes | None, kind: int) -> None:
        """Check that there are watches, or remove them; raises No if there are none."""
        if kind not in (1, 2, 3) or (path is None and operation == opcodes.CHECK_WATCHES):
            raise No(errors.MARSHALLING_ERROR)
        tables = {1: [self.child], 2: [self.data]}.get(kind, [self.child, self.data])
        found = [table for table in tables if path is not None and (path, caller) in table]
        if not found:
            raise No(errors.NO_WATCHER)
        if operation == opcodes.REMOVE_WATCHES and path is not None:
            for table in found:
                del table[path, caller]


def _tell(
    table: Watchers,
    kind: int,
    path: bytes,
    node: ModelNode,
    told: frozenset[Caller] = frozenset(),
) -> frozenset[Caller]:
    """Tell all whom it concerns, but those who were told already; give all whom it concerns."""
    concerned: set[Caller] = set()
    for (watched, caller), mode in list(table.items()):
        if mode == "recursive":
            # Nothing is below the root's other name.
            prefix = b"/" if watched == b"/" else watched + b"/"
            below = watched != b"" and path.startswith(prefix)
            if kind != events.NODE_CHILDREN_CHANGED and (path == watched or below):
                concerned.add(caller)
        elif path == watched:
            concerned.add(caller)
            if mode == "once":
                del table[watched, caller]
    for caller in concerned - told:
        if permitted(node.acls, READ, caller.identities):
            caller.events.append((kind, path))
    return frozenset(concerned)

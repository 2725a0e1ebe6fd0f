"""What the steps of a history have changed, below a path.

A step changes a node once: from what it was before to what it is after, also if a transaction
touched it several times. So a node that was created and deleted in one step is not told of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from paddock.history.moment import Moment
from paddock.history.past import Gap, Past, Step
from paddock.protocol.acl import ACL
from paddock.protocol.jute import Reader
from paddock.protocol.records import Stat
from paddock.state.node import Node

CREATED: Final = "created"
DELETED: Final = "deleted"
CHANGED: Final = "changed"
# Of a node with other rights and the same data.
ACL_CHANGED: Final = "acl"


@dataclass(frozen=True, slots=True)
class Image:
    """A node as it was."""

    data: bytes | None
    acl: tuple[ACL, ...]
    stat: Stat

    @classmethod
    def of(cls, node: Node) -> Image:
        return cls(node.data, node.acl.entries, Stat.read(Reader(node.stat())))


@dataclass(frozen=True, slots=True)
class NodeChange:
    """What a step, or a gap, made of a node."""

    cause: Step | Gap
    path: bytes
    # None if there was no such node.
    before: Image | None
    after: Image | None

    @property
    def kind(self) -> str:
        """What it is called."""
        return kind_of(self.before, self.after)


class Below:
    """A node, and what is below it if that is wanted."""

    def __init__(self, path: bytes, *, is_recursive: bool = True) -> None:
        # As the tree has it: the root is the empty path there.
        self._path = b"" if path == b"/" else path
        self._beginning = self._path + b"/"
        self._is_recursive = is_recursive

    def __contains__(self, path: bytes) -> bool:
        if path == b"/":
            path = b""
        return path == self._path or (self._is_recursive and path.startswith(self._beginning))

    def images(self, past: Past) -> dict[bytes, Image]:
        """Return these nodes as they are in a state."""
        # The root is there under a second name, the empty one.
        return {path: Image.of(node) for path, node in past.nodes.items() if path and path in self}


def changes(past: Past, until: Moment, below: Below) -> Iterator[NodeChange | Gap]:
    """Let a past go on to a moment, and tell what became of these nodes.

    Behind a gap come the changes that it hides, as far as they can be seen from both of its ends.
    """
    known = below.images(past)
    for step in past.steps(until):
        if isinstance(step, Gap):
            yield step
            after = below.images(past)
            for path, before, now, _ in difference(known, after):
                yield NodeChange(step, path, before, now)
            known = after
            continue
        for path in step.paths:
            if path in below:
                node = past.nodes.get(path)
                after_step = None if node is None else Image.of(node)
                if _own_part(known.get(path)) != _own_part(after_step):
                    yield NodeChange(step, path, known.get(path), after_step)
                if after_step is None:
                    known.pop(path, None)
                else:
                    known[path] = after_step


def difference(
    before: Mapping[bytes, Image], after: Mapping[bytes, Image]
) -> Iterator[tuple[bytes, Image | None, Image | None, str]]:
    """Yield the nodes that differ, in the order of their paths: before, after, and the kind."""
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if _own_part(old) != _own_part(new):
            yield path, old, new, kind_of(old, new)


def kind_of(before: Image | None, after: Image | None) -> str:
    """Return what a change is called. A node that was replaced by another one is CREATED."""
    if after is None:
        return DELETED
    if before is None or before.stat.czxid != after.stat.czxid:
        return CREATED
    if before.stat.version == after.stat.version and before.data == after.data:
        return ACL_CHANGED
    return CHANGED


def _own_part(image: Image | None) -> object:
    """Return what is the node's own; the counts of its children are not."""
    if image is None:
        return None
    stat = image.stat
    return image.data, image.acl, stat.czxid, stat.mzxid, stat.version, stat.aversion

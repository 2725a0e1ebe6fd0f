"""A node, its children, its answers as the wire has them, and its part of the state's digest.

The digest is a sum with one term for each node. So a change costs as much as the node that changed
and not as much as the tree, and the order of history does not matter: a state that was replayed and
one that came out of a snapshot have the same digest if they have the same nodes. It finds
accidents, not attackers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from librt.strings import BytesWriter, write_i32_be, write_i64_be
from mypy_extensions import i32, i64, mypyc_attr

from paddock._checksums import crc32
from paddock.protocol.jute import to_int32
from paddock.state.access import NodeACL
from paddock.state.table import Table

CONTAINER: Final = -(1 << 63)
TTL_BASE: Final = -(1 << 56)
TTL_MS_MAX: Final = (1 << 40) - 1

CACHED_BYTES_MAX: Final = 64 << 20
# The answer to get_children for a node that never had one.
_NO_CHILDREN: Final = bytes(4)

_INT32_MAX: Final = (1 << 31) - 1

# Compiled code looks a name of another module up each time; not one of its own that is final.
_crc32: Final = crc32


# Tracked by the garbage collector, unlike nodes: only then can a long chain of them be freed.
class Children(Table[None]):
    """A node's children, by their whole paths, and the counts of everything below it.

    A path is the same object as in the table of all nodes, with its hash in it. The names alone, as
    objects of their own, took 50 bytes and 0.3 µs for each node. A node has none of these before it
    has had a child.
    """

    __slots__ = ("above", "below", "below_bytes", "wire")

    def __init__(self, above: Children | None) -> None:
        super().__init__()
        # The answer to get_children, if it is cached: see `AnswerCache`.
        self.wire: bytes | None = None
        # Those of the parent, among which the node itself is; None for the root.
        self.above = above
        # How many nodes are below, at any depth, and the bytes of their data.
        self.below: i64 = 0
        self.below_bytes: i64 = 0

    def count(self, nodes: i64, size: i64) -> None:
        """Add nodes and bytes, which may be negative, here and on every level above."""
        here: Children | None = self
        while here is not None:
            here.below += nodes
            here.below_bytes += size
            here = here.above


@mypyc_attr(acyclic=True)
class Node:
    """One node. `Tree._touch` must be called before a field changes."""

    __slots__ = (
        "acl",
        "aversion",
        "children",
        "created",
        "ctime",
        "czxid",
        "data",
        "epoch",
        "mtime",
        "mzxid",
        "owner",
        "pzxid",
        "term",
        "version",
        "wire",
    )

    def __init__(self, data: bytes | None, acl: NodeACL, zxid: i64, time_ms: i64, owner: i64):
        self.data = data
        self.acl = acl
        self.czxid: i64 = zxid
        self.mzxid: i64 = zxid
        self.pzxid: i64 = zxid
        self.ctime: i64 = time_ms
        self.mtime: i64 = time_ms
        # The session of an ephemeral node; 0; CONTAINER; or TTL_BASE plus the TTL in ms.
        self.owner: i64 = owner
        # Four of 32 bits, side by side: there may be millions of nodes.
        self.version: i32 = 0
        # How many children were ever created here. The sequence suffix shows it, and the cversion
        # on the wire is twice this minus the children there are: creates plus deletes.
        self.created: i32 = 0
        self.aversion: i32 = 0
        # The number of the last snapshot that has this node, or after whose point it was born.
        self.epoch: i32 = 0
        self.children: Children | None = None
        # Its term in the digest when that was last settled; -1 before.
        self.term: i64 = -1
        # The answer to get, if it is cached: see `AnswerCache`.
        self.wire: bytes | None = None

    def child_count(self) -> int:
        children = self.children
        return 0 if children is None else len(children)

    def child_names(self) -> list[bytes]:
        children = self.children
        return [] if children is None else [path[path.rfind(b"/") + 1 :] for path in children]

    def stat(self) -> bytes:
        """Return the stat as the wire has it."""
        writer = BytesWriter()
        self.write_stat(writer)
        return writer.getvalue()

    def write_stat(self, writer: BytesWriter) -> None:
        """Write the stat as the wire has it."""
        data, children = self.data, self.children
        child_count: i64 = 0 if children is None else len(children)
        # In 64 bits: twice a number of 32 bits may not fit into 32.
        created: int = self.created
        changes: i64 = created
        changes = 2 * changes - child_count
        # A container or a TTL has no session.
        owner = self.owner
        if owner < 0:
            owner = 0
        write_i64_be(writer, self.czxid)
        write_i64_be(writer, self.mzxid)
        write_i64_be(writer, self.ctime)
        write_i64_be(writer, self.mtime)
        write_i32_be(writer, self.version)
        # The usual case without the arithmetic, which is slow on numbers of any size.
        if changes < -_INT32_MAX or changes > _INT32_MAX:
            changes = to_int32(changes)
        write_i32_be(writer, int(changes))
        write_i32_be(writer, self.aversion)
        write_i64_be(writer, owner)
        write_i32_be(writer, 0 if data is None else len(data))
        write_i32_be(writer, int(child_count))
        write_i64_be(writer, self.pzxid)

    def write_data_and_stat(self, writer: BytesWriter) -> None:
        """Write the answer to get."""
        data = self.data
        if data is None:
            write_i32_be(writer, -1)
        else:
            write_i32_be(writer, len(data))
            writer.write(data)
        self.write_stat(writer)

    def write_children(self, writer: BytesWriter) -> None:
        """Write the answer to get_children."""
        if self.children is None:
            write_i32_be(writer, 0)
        else:
            write_i32_be(writer, len(self.children))
            # Where the names begin: in all of them at the same place.
            start = 0
            for paths in self.children.dicts():
                for path in paths:
                    if start == 0:
                        start = path.rfind(b"/") + 1
                    name = path[start:]
                    write_i32_be(writer, len(name))
                    writer.write(name)


def data_length(data: bytes | None) -> i64:
    if data is None:
        return 0
    return len(data)


class AnswerCache:
    """The encoded answers to get and get_children that the nodes of one tree keep.

    Each is encoded once for each state of its node, while there is room for it. A node that is
    about to change must be forgotten first.
    """

    def __init__(self) -> None:
        # Bytes of all answers. Invariant: at most one answer over CACHED_BYTES_MAX.
        self.size: i64 = 0

    def has_room(self) -> bool:
        """Return whether the next answer would be kept."""
        return self.size < CACHED_BYTES_MAX

    def data_and_stat(self, node: Node) -> bytes:
        """Return the answer to get."""
        wire = node.wire
        if wire is None:
            writer = BytesWriter()
            node.write_data_and_stat(writer)
            wire = writer.getvalue()
            if self.size < CACHED_BYTES_MAX:
                node.wire = wire
                self.size += len(wire)
        return wire

    def child_list(self, node: Node) -> bytes:
        """Return the answer to get_children."""
        children = node.children
        if children is None:
            return _NO_CHILDREN
        wire = children.wire
        if wire is None:
            writer = BytesWriter()
            node.write_children(writer)
            wire = writer.getvalue()
            if self.size < CACHED_BYTES_MAX:
                children.wire = wire
                self.size += len(wire)
        return wire

    def forget_data(self, node: Node) -> None:
        """Drop the answer to get: the node is about to change."""
        wire = node.wire
        if wire is not None:
            self.size -= len(wire)
            node.wire = None

    def forget_children(self, node: Node) -> None:
        """Drop the answer to get_children: the node's children change."""
        children = node.children
        if children is not None:
            wire = children.wire
            if wire is not None:
                self.size -= len(wire)
                children.wire = None


def node_term(path: bytes, node: Node, numbers: BytesWriter) -> int:
    """Return what one node contributes: a number below 2**33 over all that it holds."""
    name = _crc32(path)
    data = node.data
    # Null and empty data differ, so their terms do.
    return header_term(name, node, numbers) + (0 if data is None else data_term(name, data))


def header_term(name: int, node: Node, numbers: BytesWriter) -> int:
    """Return the part of a node's term that covers all but its data; `name` is its path's CRC.

    `numbers` is overwritten; a new writer for each node takes longer.
    """
    numbers.truncate(0)
    write_i64_be(numbers, node.czxid)
    write_i64_be(numbers, node.mzxid)
    write_i64_be(numbers, node.ctime)
    write_i64_be(numbers, node.mtime)
    write_i64_be(numbers, node.pzxid)
    write_i64_be(numbers, node.owner)
    write_i32_be(numbers, node.version)
    write_i32_be(numbers, node.created)
    # Together one number of 64 bits: a CRC has no sign, so it may not fit into 32.
    aversion: int = node.aversion
    last: i64 = aversion
    write_i64_be(numbers, (last << 32) | node.acl.crc)
    return _crc32(numbers.getvalue(), name)


def data_term(name: int, data: bytes) -> int:
    """Return the part of a node's term that covers its data."""
    return _crc32(data, name ^ 0xFFFF)


class PathBag:
    """A set of paths, with places from 0 on, that can be walked in steps while it changes.

    Walked from the end, with a place that is lowered to `len(bag)` before a step if it is above,
    no path that stays is missed: a removed path is replaced by the last one, which has been
    visited, and a new one is appended.
    """

    def __init__(self) -> None:
        # Invariant: _paths[_places[path]] is path, for each of them.
        self._paths: list[bytes] = []
        self._places = Table[int]()

    def __len__(self) -> int:
        return len(self._paths)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._paths)

    def __contains__(self, path: object) -> bool:
        return path in self._places

    def __getitem__(self, place: int) -> bytes:
        return self._paths[place]

    def add(self, path: bytes) -> None:
        """Append a path, unless it is there."""
        if path not in self._places:
            self._places[path] = len(self._paths)
            self._paths.append(path)

    def remove(self, path: bytes) -> None:
        """Remove a path; the last one takes its place. Raises KeyError if it is not there."""
        place = self._places[path]
        del self._places[path]
        last = self._paths.pop()
        if place < len(self._paths):
            self._paths[place] = last
            self._places[last] = place

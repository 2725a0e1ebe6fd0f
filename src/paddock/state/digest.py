"""The digest of the state: a sum with one term for each node.

Because it is a sum, a change costs as much as the node that changed and not as much as the tree,
and the order of history does not matter: a state that was replayed and one that came out of a
snapshot have the same digest if they have the same nodes. It finds accidents, not attackers.
"""

from __future__ import annotations

from zlib import crc32

from librt.strings import BytesWriter, write_i64_be

from paddock.state.node import Node


def node_term(path: bytes, node: Node) -> int:
    """Return what one node contributes: a number below 2**33 over all that it holds."""
    name = crc32(path)
    data = node.data
    # Null and empty data differ, so their terms do.
    return header_term(name, node) + (0 if data is None else data_term(name, data))


def header_term(name: int, node: Node) -> int:
    """Return the part of a node's term that covers all but its data; `name` is its path's CRC."""
    numbers = BytesWriter()
    write_i64_be(numbers, node.czxid)
    write_i64_be(numbers, node.mzxid)
    write_i64_be(numbers, node.ctime)
    write_i64_be(numbers, node.mtime)
    write_i64_be(numbers, node.pzxid)
    write_i64_be(numbers, node.owner)
    # Four of 32 bits, two by two.
    version: int = node.version
    created: int = node.created
    aversion: int = node.aversion
    write_i64_be(numbers, (version << 32) | (created & 0xFFFFFFFF))
    write_i64_be(numbers, (aversion << 32) | node.acl.crc)
    return crc32(numbers.getvalue(), name)


def data_term(name: int, data: bytes) -> int:
    """Return the part of a node's term that covers its data."""
    return crc32(data, name ^ 0xFFFF)

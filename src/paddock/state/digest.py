"""The digest of the state: a sum with one term for each node.

Because it is a sum, a change costs as much as the node that changed and not as much as the tree,
and the order of history does not matter: a state that was replayed and one that came out of a
snapshot have the same digest if they have the same nodes. It finds accidents, not attackers.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final
from zlib import crc32

if TYPE_CHECKING:
    from paddock.state.tree import Node

_NUMBERS: Final = struct.Struct(">qqqqqqiiiI")


def node_term(path: bytes, node: Node) -> int:
    """Give what one node contributes: a number below 2**33 over all that it holds."""
    name = crc32(path)
    numbers = _NUMBERS.pack(
        node.czxid,
        node.mzxid,
        node.ctime,
        node.mtime,
        node.pzxid,
        node.owner,
        node.version,
        node.created,
        node.aversion,
        crc32(node.acl.wire),
    )
    data = node.data
    # Null and empty data differ, so their terms do.
    return crc32(numbers, name) + (0 if data is None else crc32(data, name ^ 0xFFFF))

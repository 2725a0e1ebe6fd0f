"""The digest that Apache (3.6 and later) writes beside its snapshots and transactions.

A sum, modulo 2**64, with the CRC-32 of every node's path, data and stat. That ours is the same
after a replay shows that the replay gave what Apache had, but for ACLs, which it does not cover,
and for what is below `/zookeeper`.
"""

from __future__ import annotations

import struct
from typing import Final
from zlib import crc32

from paddock.state.node import Node
from paddock.state.tree import ZOOKEEPER

_STAT: Final = struct.Struct(">qqqqqiiiq")
_SIGN: Final = 1 << 63


def tree_digest(nodes: dict[bytes, Node]) -> int:
    """Compute it for a tree in which the root has the name `` (and perhaps `/` too)."""
    total = 0
    for path, node in nodes.items():
        if path == b"/" or path.startswith(ZOOKEEPER + b"/"):
            continue
        stat = _STAT.pack(
            node.czxid,
            node.mzxid,
            node.pzxid,
            node.ctime,
            node.mtime,
            node.version,
            node.created,
            node.aversion,
            node.owner,
        )
        total += crc32(stat, crc32(node.data or b"", crc32(path)))
    return (total + _SIGN) % (1 << 64) - _SIGN

"""One snapshot of Apache's: the state it holds.

    magic (4)  version (4)  database (8)
    sessions:  count (4)  then  id (8)  timeout in ms (4)
    ACLs:      count (4)  then  number (8)  entries
    nodes:     path  data  number of its ACL (8)  stat (68), parents first, until the path is "/"
    seal:      Adler-32 of all before it (8)  "/"
    3.6:       zxid (8)  digest's version (4)  digest of the tree (8)   and another seal
    3.9:       zxid (8)                                                 and another seal

The last two may be switched off. A snapshot was written while the server went on: its name says
which transactions it surely has, and the zxids at its end which it may have.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from paddock.protocol import paths
from paddock.protocol.acl import ACL, OPEN, Identity
from paddock.state.access import NodeACL
from paddock.state.node import Node
from paddock.upgrade.state import NOT_YET_KNOWN, ApacheState
from paddock.upgrade.stream import Stream

MAGIC: Final = b"ZKSN"

# The number of the open ACL, which is never written out.
_OPEN: Final = -1
_NODE: Final = struct.Struct(">qqqqqiiiqq")
_DIGEST_VERSION: Final = 2
_SEAL_BYTES: Final = 8 + 4 + 1
_LAST_ZXID_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """A snapshot that was read."""

    state: ApacheState
    # The last transaction of which it may hold an effect.
    reaches_zxid: int


def read_snapshot(path: Path, zxid: int) -> SnapshotFile:
    """Read a snapshot whose name has this zxid. Raises DamagedFileError if it is not whole."""
    with Stream(path) as stream:
        if stream.take(len(MAGIC)) != MAGIC:
            raise stream.damaged("this is not how a snapshot begins")
        stream.take(12)
        state = ApacheState()
        state.zxid = zxid
        for _ in range(stream.int32()):
            session = stream.int64()
            state.sessions[session] = stream.int32()
            state.last_session = max(state.last_session, session)
        acls = _read_acls(stream, state)
        while (node_path := stream.string()) != paths.ROOT:
            _read_node(stream, node_path, state, acls)
        if b"" not in state.nodes:
            raise stream.damaged("it has no root")
        _check_seal(stream)
        reaches_zxid = max(zxid, _read_end(stream, state))
    state.count_quotas()
    return SnapshotFile(state, reaches_zxid)


def _read_acls(stream: Stream, state: ApacheState) -> dict[int, NodeACL]:
    acls = {_OPEN: state.acl(OPEN)}
    for _ in range(stream.int32()):
        number = stream.int64()
        length = stream.int32()
        if length < 0:
            raise stream.damaged("an ACL is missing")
        acls[number] = state.acl(tuple(_read_acl(stream) for _ in range(length)))
    return acls


def _read_acl(stream: Stream) -> ACL:
    permissions = stream.int32()
    scheme = stream.string().decode("utf-8", "replace")
    return ACL(permissions, Identity(scheme, stream.string().decode("utf-8", "replace")))


def _read_node(stream: Stream, path: bytes, state: ApacheState, acls: dict[int, NodeACL]) -> None:
    if path and not paths.is_valid(path):
        raise stream.damaged(f"a node that cannot be: {path[:100]!r}")
    if path and path[: path.rfind(b"/")] not in state.nodes:
        raise stream.damaged(f"there is nothing above {path[:100]!r}")
    data = stream.buffer()
    number, czxid, mzxid, ctime, mtime, version, created, aversion, owner, pzxid = _NODE.unpack(
        stream.take(_NODE.size)
    )
    node = Node(data, acls.get(number, NOT_YET_KNOWN), czxid, ctime, owner)
    node.mzxid, node.mtime, node.pzxid = mzxid, mtime, pzxid
    node.version, node.created, node.aversion = version, created, aversion
    state.put(path, node)


def _check_seal(stream: Stream) -> None:
    expected = stream.checksum()
    if stream.int64() != expected:
        raise stream.damaged("the checksum does not fit what is before it")
    if stream.string() != paths.ROOT:
        raise stream.damaged("the end is not what it should be")


def _read_end(stream: Stream, state: ApacheState) -> int:
    """Read what newer versions write behind the nodes; return the last zxid there."""
    reaches_zxid = 0
    if len(stream.rest(_SEAL_BYTES + _LAST_ZXID_BYTES + 1)) > _SEAL_BYTES + _LAST_ZXID_BYTES:
        reaches_zxid = stream.int64()
        if stream.int32() < _DIGEST_VERSION:
            # Of a version that was never released: a text, and computed in another way.
            stream.buffer()
        else:
            digest = stream.int64()
            if reaches_zxid == state.zxid:
                state.digest = digest
        _check_seal(stream)
    if stream.rest(1):
        reaches_zxid = max(reaches_zxid, stream.int64())
        _check_seal(stream)
    if stream.rest(1):
        raise stream.damaged("there is something behind the end")
    return reaches_zxid

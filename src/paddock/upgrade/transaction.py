"""One transaction of Apache's log, decoded: its changes.

Apache logs effects, not requests: everything was checked before, and a request that was refused is
an error that changes nothing. Four things vary with the version that wrote it: before 3.4 a create
does not say how many children were created above it; before 3.6 the end of a session does not name
its nodes, and no transaction has a digest of the tree behind it; 3.9 also writes create2 in multi.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from paddock.protocol import opcodes, paths
from paddock.protocol.acl import ACL, OPEN, read_whole_acls
from paddock.protocol.jute import DecodeError, Reader
from paddock.state.node import CONTAINER, TTL_BASE, TTL_MS_MAX

# The parent's count is not known: it is one more than before.
UNKNOWN_CVERSION: Final = -1
# The only way in which digests are computed since they are numbers.
_DIGEST_VERSION: Final = 2


@dataclass(frozen=True, slots=True)
class Create:
    """A new node, of whatever kind."""

    path: bytes
    data: bytes | None
    acl: tuple[ACL, ...]
    owner: int
    # How many children the parent has seen created with this one, or UNKNOWN_CVERSION.
    parent_cversion: int
    # Whether upstream mends the parent's count if the node is there already; the plain create only.
    mends_parent: bool


@dataclass(frozen=True, slots=True)
class Delete:
    """A node that is gone."""

    path: bytes


@dataclass(frozen=True, slots=True)
class SetData:
    """Other data, with the version that they have."""

    path: bytes
    data: bytes | None
    version: int


@dataclass(frozen=True, slots=True)
class SetACL:
    """Another ACL, with the version that it has."""

    path: bytes
    acl: tuple[ACL, ...]
    version: int


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A new session: the one of the transaction itself."""

    timeout_ms: int


@dataclass(frozen=True, slots=True)
class CloseSession:
    """The end of the transaction's own session, and of the nodes that it had."""

    # None if the log does not say which nodes it took along.
    paths: tuple[bytes, ...] | None


@dataclass(frozen=True, slots=True)
class Nothing:
    """An error, or a check."""


Change: TypeAlias = Create | Delete | SetData | SetACL | OpenSession | CloseSession | Nothing


@dataclass(frozen=True, slots=True)
class Transaction:
    """One record of the log."""

    session: int
    # The client's number of the request; 0 if a server asked, as for the end of a silent session.
    cxid: int
    zxid: int
    time_ms: int
    # More than one only for a multi.
    changes: tuple[Change, ...]
    # The digest of the tree after it, if it says so in a way that we can compute too.
    digest: int | None


def decode(record: bytes) -> Transaction:
    """Decode a record. Raises DecodeError."""
    reader = Reader(record)
    session, cxid = reader.int64(), reader.int32()
    zxid, time_ms, kind = reader.int64(), reader.int64(), reader.int32()
    if zxid < 0:
        raise DecodeError("a negative zxid")
    if kind == opcodes.MULTI:
        changes = _read_multi(reader, session)
    else:
        changes = (_read_change(reader, kind, session),)
    # What failed may carry the digest of what was tried before it did.
    has_failed = kind == opcodes.ERROR or not changes
    digest = None if has_failed else _read_digest(reader)
    return Transaction(session, cxid, zxid, time_ms, changes, digest)


def _read_multi(reader: Reader, session: int) -> tuple[Change, ...]:
    steps = [(reader.int32(), reader.string()) for _ in range(reader.int32())]
    # One that failed is logged whole, with the reason in it.
    if any(kind == opcodes.ERROR for kind, _ in steps):
        return ()
    for kind, _ in steps:
        if kind in (opcodes.CREATE_SESSION, opcodes.CLOSE_SESSION, opcodes.MULTI):
            raise DecodeError(f"a multi with a part of type {kind}")
    return tuple(_read_change(Reader(data), kind, session) for kind, data in steps)


def _read_change(reader: Reader, kind: int, session: int) -> Change:
    match kind:
        case opcodes.CREATE | opcodes.CREATE2:
            path, data, acl = _read_path(reader), reader.buffer(), _read_acl(reader)
            owner = session if reader.boolean() else 0
            is_of_3_3 = kind == opcodes.CREATE and int(reader.position) == len(reader.data)
            cversion = UNKNOWN_CVERSION if is_of_3_3 else reader.int32()
            return Create(path, data, acl, owner, cversion, kind == opcodes.CREATE)
        case opcodes.CREATE_CONTAINER:
            path, data, acl = _read_path(reader), reader.buffer(), _read_acl(reader)
            return Create(path, data, acl, CONTAINER, reader.int32(), False)
        case opcodes.CREATE_TTL:
            path, data, acl = _read_path(reader), reader.buffer(), _read_acl(reader)
            cversion, ttl_ms = reader.int32(), reader.int64()
            if not 0 < ttl_ms <= TTL_MS_MAX:
                # Apache logs it and then dies of it, so it never came to be.
                return Nothing()
            return Create(path, data, acl, TTL_BASE + ttl_ms, cversion, False)
        case opcodes.DELETE | opcodes.DELETE_CONTAINER:
            return Delete(_read_path(reader))
        case opcodes.SET_DATA | opcodes.RECONFIG:
            return SetData(reader.string(), reader.buffer(), reader.int32())
        case opcodes.SET_ACL:
            return SetACL(reader.string(), _read_acl(reader), reader.int32())
        case opcodes.CHECK:
            reader.string()
            reader.int32()
            return Nothing()
        case opcodes.CREATE_SESSION:
            return OpenSession(reader.int32())
        case opcodes.CLOSE_SESSION:
            return CloseSession(_read_paths(reader))
        case opcodes.ERROR:
            reader.int32()
            return Nothing()
    raise DecodeError(f"a transaction of type {kind}, which is not known")


def _read_path(reader: Reader) -> bytes:
    """Take the path of a node that can come and go."""
    path = reader.string()
    if path == paths.ROOT or not paths.is_valid(path):
        raise DecodeError(f"a node that cannot be: {path[:100]!r}")
    return path


def _read_acl(reader: Reader) -> tuple[ACL, ...]:
    start = int(reader.position)
    if reader.int32() == -1:
        # Upstream takes no ACL for the open one.
        return OPEN
    reader.position = start
    return tuple(read_whole_acls(reader))


def _read_paths(reader: Reader) -> tuple[bytes, ...] | None:
    start = int(reader.position)
    try:
        length = reader.int32()
        if length >= 0:
            return tuple(_read_path(reader) for _ in range(length))
    except DecodeError:
        pass
    # Written without them. What is left, if anything, is a digest.
    reader.position = start
    return None


def _read_digest(reader: Reader) -> int | None:
    if len(reader.data) - int(reader.position) < 12:
        return None
    return reader.int64() if reader.int32() == _DIGEST_VERSION else None

"""Writes the files of an Apache server as bytes: an encoder for tests, of its own.

It follows Apache's formats and shares nothing with the decoders, so that a mistake in these cannot
hide here.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

Entry = tuple[int, str, str]

OPEN: Final[Sequence[Entry]] = ((31, "world", "anyone"),)
READ_ONLY: Final[Sequence[Entry]] = ((1, "world", "anyone"),)
ALICE: Final[Sequence[Entry]] = ((31, "digest", "alice:hash"), (1, "sasl", "bob"))

SESSION: Final = 0x1000_0000_0001
CONTAINER: Final = -(1 << 63)
TIME_MS: Final = 1_600_000_000_000


def integer(value: int) -> bytes:
    return struct.pack(">i", value)


def long(value: int) -> bytes:
    return struct.pack(">q", value)


def buffer(value: bytes | None) -> bytes:
    return integer(-1) if value is None else integer(len(value)) + value


def string(value: str) -> bytes:
    return buffer(value.encode())


def acl(entries: Sequence[Entry] | None) -> bytes:
    if entries is None:
        return integer(-1)
    return integer(len(entries)) + b"".join(
        integer(permissions) + string(scheme) + string(identifier)
        for permissions, scheme, identifier in entries
    )


# Transactions: a type, and a body.

Body = tuple[int, bytes]


def create(
    path: str,
    cversion: int | None,
    data: bytes | None = b"",
    entries: Sequence[Entry] | None = OPEN,
    *,
    ephemeral: bool = False,
    kind: int = 1,
) -> Body:
    """Without a cversion it is what 3.3 wrote."""
    body = string(path) + buffer(data) + acl(entries) + bytes([ephemeral])
    return kind, body + (b"" if cversion is None else integer(cversion))


def create2(path: str, cversion: int, data: bytes | None = b"") -> Body:
    return create(path, cversion, data, kind=15)


def create_container(path: str, cversion: int, data: bytes | None = b"") -> Body:
    return 19, string(path) + buffer(data) + acl(OPEN) + integer(cversion)


def create_ttl(path: str, cversion: int, ttl_ms: int) -> Body:
    return 21, string(path) + buffer(b"") + acl(OPEN) + integer(cversion) + long(ttl_ms)


def delete(path: str) -> Body:
    return 2, string(path)


def delete_container(path: str) -> Body:
    return 20, string(path)


def set_data(path: str, data: bytes | None, version: int) -> Body:
    return 5, string(path) + buffer(data) + integer(version)


def reconfig(data: bytes, version: int) -> Body:
    return 16, string("/zookeeper/config") + buffer(data) + integer(version)


def set_acl(path: str, entries: Sequence[Entry], version: int) -> Body:
    return 7, string(path) + acl(entries) + integer(version)


def check(path: str, version: int) -> Body:
    return 13, string(path) + integer(version)


def create_session(timeout_ms: int = 30_000) -> Body:
    return -10, integer(timeout_ms)


def close_session(paths: Sequence[str] | None = None) -> Body:
    """Without paths it is what 3.4 and 3.5 wrote."""
    if paths is None:
        return -11, b""
    return -11, integer(len(paths)) + b"".join(string(path) for path in paths)


def error(code: int = -101) -> Body:
    return -1, integer(code)


def multi(*parts: Body) -> Body:
    return 14, integer(len(parts)) + b"".join(integer(kind) + buffer(body) for kind, body in parts)


def transaction(
    zxid: int,
    body: Body,
    *,
    session: int = SESSION,
    cxid: int = 7,
    time_ms: int | None = None,
    digest: int | None = None,
) -> bytes:
    """One transaction; with a digest as 3.6 and later write it. Its time follows its zxid."""
    time_ms = TIME_MS + zxid if time_ms is None else time_ms
    head = long(session) + integer(cxid) + long(zxid) + long(time_ms) + integer(body[0])
    tail = b"" if digest is None else integer(2) + long(digest)
    return head + body[1] + tail


def record(payload: bytes) -> bytes:
    return long(zlib.adler32(payload)) + buffer(payload) + b"B"


def log(*payloads: bytes, zeros: int = 64) -> bytes:
    head = b"ZKLG" + integer(2) + long(0)
    return head + b"".join(record(payload) for payload in payloads) + bytes(zeros)


# Snapshots.


@dataclass(slots=True)
class Node:
    """A node of a snapshot, with fields that tell each other apart."""

    data: bytes | None = b""
    acl: int = -1
    czxid: int = 0
    mzxid: int = 0
    ctime: int = 0
    mtime: int = 0
    version: int = 0
    cversion: int = 0
    aversion: int = 0
    owner: int = 0
    pzxid: int = 0

    def encode(self) -> bytes:
        return buffer(self.data) + struct.pack(
            ">qqqqqiiiqq",
            self.acl,
            self.czxid,
            self.mzxid,
            self.ctime,
            self.mtime,
            self.version,
            self.cversion,
            self.aversion,
            self.owner,
            self.pzxid,
        )


@dataclass(slots=True)
class Snapshot:
    """A snapshot; what is None at its end is left away, as older versions do."""

    nodes: dict[str, Node] = field(default_factory=dict)
    sessions: dict[int, int] = field(default_factory=dict)
    acls: dict[int, Sequence[Entry]] = field(default_factory=dict)
    # zxid and digest, since 3.6.
    digest: tuple[int, int] | None = None
    # Since 3.9.
    last_zxid: int | None = None

    def encode(self) -> bytes:
        data = b"ZKSN" + integer(2) + long(-1) + integer(len(self.sessions))
        for session, timeout_ms in self.sessions.items():
            data += long(session) + integer(timeout_ms)
        data += integer(len(self.acls))
        for number, entries in self.acls.items():
            data += long(number) + acl(entries)
        for path, node in self.nodes.items():
            data += string(path) + node.encode()
        data = _sealed(data + string("/"))
        if self.digest is not None:
            data = _sealed(data + long(self.digest[0]) + integer(2) + long(self.digest[1]))
        if self.last_zxid is not None:
            data = _sealed(data + long(self.last_zxid))
        return data


def _sealed(data: bytes) -> bytes:
    return data + long(zlib.adler32(data)) + string("/")


def basic_nodes() -> dict[str, Node]:
    """The nodes of a server of 3.5 or later that nobody has used."""
    return {
        "": Node(),
        "/zookeeper": Node(),
        "/zookeeper/config": Node(acl=1, aversion=-1),
        "/zookeeper/quota": Node(),
    }


def snapshot(
    nodes: dict[str, Node] | None = None,
    sessions: dict[int, int] | None = None,
    acls: dict[int, Sequence[Entry]] | None = None,
    digest: tuple[int, int] | None = None,
    last_zxid: int | None = None,
) -> bytes:
    """A snapshot of the basic nodes and more."""
    return Snapshot(
        basic_nodes() | (nodes or {}),
        sessions or {},
        {1: READ_ONLY, **(acls or {})},
        digest,
        last_zxid,
    ).encode()


class ApacheFolder:
    """An Apache data folder in the making."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files = path / "version-2"
        self.files.mkdir(parents=True)

    def snapshot(self, zxid: int, data: bytes, suffix: str = "") -> Path:
        file = self.files / f"snapshot.{zxid:x}{suffix}"
        file.write_bytes(data)
        return file

    def log(self, *payloads: bytes, zeros: int = 64) -> Path:
        """Write a log file, named after its first transaction as Apache does."""
        (first,) = struct.unpack_from(">q", payloads[0], 12)
        file = self.files / f"log.{first:x}"
        file.write_bytes(log(*payloads, zeros=zeros))
        return file

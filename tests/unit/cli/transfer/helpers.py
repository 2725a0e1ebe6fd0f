"""Exports for tests, whole ones and spoiled ones."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable

from paddock.cli.transfer import file_format
from paddock.cli.transfer.node import Node
from paddock.cli.transfer.reading import Export
from paddock.protocol.acl import OPEN, READ_ONLY

NODES = [
    Node("/", b"", OPEN),
    Node("/a", b"blue", READ_ONLY),
    Node("/a/b", b"\xff\x00", OPEN),
    Node("/a-b", b"two\nlines", OPEN),
    Node("/b", "Grün".encode(), OPEN),
]


def lines_of(nodes: Iterable[Node] = NODES, *, acls: bool = True) -> list[bytes]:
    """Return the lines of an export."""
    lines = [file_format.header_line(acls=acls), *map(file_format.node_line, nodes)]
    return with_end(lines)


def with_end(lines: list[bytes]) -> list[bytes]:
    """Add the last line, as if these had been written."""
    sha256 = hashlib.sha256(b"".join(lines)).hexdigest()
    return [*lines, file_format.end_line(len(lines) - 1, sha256)]


def read(text: bytes) -> list[Node]:
    """Read an export."""
    return list(Export(io.BytesIO(text), "export").nodes())

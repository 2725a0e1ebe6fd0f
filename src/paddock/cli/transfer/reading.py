"""Read an export: every line is checked, and the whole file before anything is written.

    with opened(Path("app.jsonl")) as export:
        nodes = export.check()
        for node in export.nodes():
            ...

A file that is cut off, damaged, or put together from others is refused, with the line and the byte.
What cannot be read twice, such as a pipe, is kept in a temporary file meanwhile.
"""

import contextlib
import gzip
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from paddock.cli.transfer import file_format
from paddock.cli.transfer.file_format import BadLineError
from paddock.cli.transfer.node import ROOT, DamagedExportError, Node, is_below, order_of
from paddock.protocol.paths import parent_path

# Longer than the line of any node that a server could take: no file makes us hold more than this.
LINE_BYTES_MAX: Final = 64 << 20

_GZIP: Final = b"\x1f\x8b"


class TornLineError(DamagedExportError):
    """The last line of a file has no end."""


class Line(NamedTuple):
    """A line whose checksum fits."""

    raw: bytes
    fields: dict[str, Any]


@dataclass(slots=True)
class Lines:
    """The lines of a file, one by one; whatever is wrong is told with the place where it is."""

    _stream: IO[bytes]
    _name: str
    # Counted from 1, and in bytes from 0.
    _number: int = 0
    _offset: int = 0
    # Where the line ends that was given last.
    end: int = 0

    def next(self) -> Line | None:
        """Return the next line, or None at the end of the file. Raises DamagedExportError."""
        self._number += 1
        self._offset = self.end
        try:
            raw = self._stream.readline(LINE_BYTES_MAX)
        except EOFError:
            raise self.damage("the compressed file is cut off") from None
        except (gzip.BadGzipFile, zlib.error):
            raise self.damage("the compressed file is damaged") from None
        if not raw:
            return None
        if self._number == 1 and not raw.startswith(file_format.BEGINNING[: len(raw)]):
            raise self.damage("this is no export of Paddock")
        if not raw.endswith(b"\n"):
            if len(raw) == LINE_BYTES_MAX:
                raise self.damage("it does not end")
            raise TornLineError(str(self.damage("the file is cut off in the middle of it")))
        try:
            fields = file_format.fields_of(raw[:-1])
        except BadLineError as error:
            raise self.damage(str(error)) from None
        self.end += len(raw)
        return Line(raw, fields)

    def damage(self, what: str) -> DamagedExportError:
        """Return the error for the line that was read last."""
        return DamagedExportError(f"{self._name}: line {self._number}, byte {self._offset}: {what}")


class NodeOrder:
    """What the lines of nodes have to be to each other: sorted, and none without its parent."""

    last: str | None = None

    def take(self, path: str) -> None:
        """Look at the next one. Raises BadLineError if it cannot come here."""
        last, self.last = self.last, path
        if last is None:
            if path != ROOT:
                raise BadLineError(f"the first node is {path}, and not the root")
            return
        if order_of(path) <= order_of(last):
            raise BadLineError(f"{path} cannot come after {last}")
        above = parent_path(path)
        if above != last and not is_below(above, last):
            raise BadLineError(f"{path} has no parent before it")


class Export:
    """A file of lines that can be read from its beginning, as often as needed."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self.name = name
        self._is_compressed = file.read(len(_GZIP)) == _GZIP

    def check(self) -> int:
        """Read all of it; give how many nodes there are. Raises DamagedExportError."""
        return sum(1 for _ in self.nodes())

    def nodes(self) -> Iterator[Node]:
        """Yield every node, in order. Raises DamagedExportError."""
        self._file.seek(0)
        stream: IO[bytes] = self._file
        if self._is_compressed:
            stream = gzip.GzipFile(fileobj=self._file, mode="rb")  # type: ignore[assignment]
        lines = Lines(stream, self.name)
        try:
            yield from self._nodes(lines)
        except BadLineError as error:
            raise lines.damage(str(error)) from None

    def _nodes(self, lines: Lines) -> Iterator[Node]:
        header = lines.next()
        if header is None:
            raise BadLineError("the file is empty")
        acls = file_format.has_acls(header.fields)
        sha256 = hashlib.sha256(header.raw)
        order = NodeOrder()
        count = 0
        while (line := lines.next()) is not None:
            if file_format.is_end(line.fields):
                if not count:
                    raise BadLineError("there is no node, not even the root")
                if line.fields != {"nodes": count, "sha256": sha256.hexdigest()}:
                    raise BadLineError("lines before this one are missing, or were changed")
                if lines.next() is not None:
                    raise BadLineError("it comes after the end")
                return
            node = file_format.node_of(line.fields, acls=acls)
            order.take(node.path)
            sha256.update(line.raw)
            count += 1
            yield node
        raise BadLineError("the file ends before its last line: the export was not finished")


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Export]:
    """Open an export, plain or compressed; "-" is stdin."""
    with contextlib.ExitStack() as stack:
        is_stdin = str(path) == "-"
        name = "stdin" if is_stdin else str(path)
        file: IO[bytes] = sys.stdin.buffer if is_stdin else stack.enter_context(path.open("rb"))
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode) or is_stdin:
            kept = stack.enter_context(tempfile.TemporaryFile())
            shutil.copyfileobj(file, kept, 1 << 20)
            kept.seek(0)
            file = kept
        yield Export(file, name)

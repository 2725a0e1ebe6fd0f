"""An export that is written: a part that grows and survives us, then the whole under its name.

What is written goes to `FILE.part` first. That is the export as far as it has come, behind a line
of its own that says what is exported; when all of it is there, FILE is written from it, and appears
under its name in one step. Whatever interrupts that, a part is left that `--resume` goes on with:
at most its last line is not whole, and is cut.
"""

import contextlib
import fcntl
import gzip
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final

from paddock.cli.transfer import file_format
from paddock.cli.transfer.file_format import BadLineError
from paddock.cli.transfer.node import DamagedExportError, Node, TransferError
from paddock.cli.transfer.reading import Lines, NodeOrder, TornLineError
from paddock.log.file.disk import Disk

# How far the output is behind the nodes that were read, at most.
_BUFFER_BYTES: Final = 1 << 16
_COPY_BYTES: Final = 1 << 20


class LineWriter:
    """Writes an export to a stream that goes one way, such as stdout."""

    def __init__(self, stream: IO[bytes], *, acls: bool) -> None:
        self._stream = stream
        self._acls = acls
        self._sha256 = hashlib.sha256()
        self.nodes = 0
        # An export to a stream is never resumed.
        self.last: str | None = None

    def write(self, node: Node) -> None:
        if not self.nodes:
            # Not before: if there is no such tree, nothing is written.
            self._write(file_format.header_line(acls=self._acls))
        self._write(file_format.node_line(node))
        self.nodes += 1

    def finish(self) -> None:
        """Write the last line."""
        self._stream.write(file_format.end_line(self.nodes, self._sha256.hexdigest()))
        self._stream.flush()

    def _write(self, line: bytes) -> None:
        self._sha256.update(line)
        self._stream.write(line)


class PartWriter:
    """Writes an export to a file, through a part file."""

    def __init__(self, stream: IO[bytes], path: Path, target: Path, acls: bool) -> None:
        self._stream = stream
        self._path = path
        self._target = target
        self._acls = acls
        self.nodes = 0
        # The last node of the interrupted export.
        self.last: str | None = None
        # Whether what stands before the nodes is there.
        self._is_begun = False

    def begin(self, request: dict[str, Any]) -> None:
        """Begin anew, whatever is there."""
        self._stream.seek(0)
        self._stream.truncate()
        self._stream.write(file_format.line_of({"paddock-part": file_format.VERSION, **request}))
        self._stream.write(file_format.header_line(acls=self._acls))

    def resume(self, request: dict[str, Any]) -> None:
        """Read what is there, and stand behind its last whole line.

        Raises DamagedExportError, or TransferError if something else was to be exported then.
        """
        self._stream.seek(0)
        lines = Lines(self._stream, str(self._path))
        try:
            self._read(lines, request)
        except TornLineError:
            pass
        except BadLineError as error:
            raise lines.damage(str(error)) from None
        except DamagedExportError as error:
            raise TransferError(f"{error}; --overwrite begins anew") from None
        self._stream.seek(lines.end)
        self._stream.truncate()
        if not self._is_begun:
            self.begin(request)

    def write(self, node: Node) -> None:
        self._stream.write(file_format.node_line(node))
        self.nodes += 1

    def finish(self) -> None:
        """Write the whole file, have it appear, and remove the part."""
        self._stream.flush()
        self._stream.seek(0)
        self._stream.readline()
        # One name for all attempts: none of them leaves more behind than the next one takes.
        new = self._target.with_name(f".{self._target.name}.new")
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            with _compressed(file, self._target) as stream:
                sha256 = hashlib.sha256()
                while chunk := self._stream.read(_COPY_BYTES):
                    sha256.update(chunk)
                    stream.write(chunk)
                stream.write(file_format.end_line(self.nodes, sha256.hexdigest()))
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self._target)
        self._path.unlink()
        Disk().sync_folder(self._target.absolute().parent)

    def _read(self, lines: Lines, request: dict[str, Any]) -> None:
        first = lines.next()
        if first is None:
            return
        if first.fields != {"paddock-part": file_format.VERSION, **request}:
            raise BadLineError("something else was being exported; --overwrite begins anew")
        header = lines.next()
        if header is None:
            return
        file_format.has_acls(header.fields)
        self._is_begun = True
        order = NodeOrder()
        while (line := lines.next()) is not None:
            order.take(file_format.node_of(line.fields, acls=self._acls).path)
            self.last = order.last
            self.nodes += 1


def part_of(target: Path) -> Path:
    """Return the path of an unfinished export."""
    return target.with_name(f"{target.name}.part")


@contextlib.contextmanager
def part_writer(target: Path, request: dict[str, Any], *, resume: bool) -> Iterator[PartWriter]:
    """Open the part of an export, for us alone. It is left there unless it is finished, or empty.

    The request is what makes it another export, so that two are never mixed; its "acls" says
    whether nodes have theirs. Raises TransferError if another export is writing it, or if it cannot
    be resumed.
    """
    path = part_of(target)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with _named(path), open(descriptor, "r+b", buffering=_BUFFER_BYTES) as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The other export may just have finished, and removed it.
            is_ours = os.fstat(stream.fileno()).st_nlink > 0
        except BlockingIOError:
            is_ours = False
        if not is_ours:
            raise TransferError(f"{path}: another export is writing it")
        writer = PartWriter(stream, path, target, request["acls"])
        if resume:
            writer.resume(request)
        else:
            writer.begin(request)
        try:
            yield writer
        except BaseException:
            if not writer.nodes:
                path.unlink()
            raise


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Add the file name to system errors of writes."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


@contextlib.contextmanager
def _compressed(file: IO[bytes], target: Path) -> Iterator[IO[bytes]]:
    if target.suffix != ".gz":
        yield file
        return
    # Neither a name nor a time: equal exports are equal bytes.
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as stream:
        yield stream  # type: ignore[misc]

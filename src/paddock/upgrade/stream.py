"""One file of Apache's, read value by value, with its checksum; and the errors of an upgrade.

Values are jute's: big-endian integers, and lengths before buffers and strings. Memory is allocated
as bytes come, not when a length is announced. A snapshot may be compressed; then offsets count what
comes out, which is what Apache wrote.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from paddock.errors import PaddockError
from paddock.upgrade.snappy import SnappyError, SnappyReader

_PIECE_BYTES: Final = 1 << 17
# Far above jute.maxbuffer, which bounds what Apache itself reads back: 1 MiB unless it is set.
VALUE_BYTES_MAX: Final = 256 << 20


class UpgradeError(PaddockError):
    """The folder cannot be upgraded. Says why, and what helps."""


class DamagedFileError(UpgradeError):
    """A file is damaged. Names it, the offset, and the reason."""

    def __init__(self, path: Path, offset: int, reason: str) -> None:
        self.path = path
        super().__init__(f"{path}: offset {offset}: {reason}")


class Stream(ExitStack):
    """The values of one file, from its beginning. `with` closes it.

    Raises DamagedFileError where the file does not hold what is asked for, and UpgradeError if it
    cannot be read at all.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        # What was read and not dropped yet, where the next value is in it, and up to where the
        # checksum has come. Invariant: _summed <= _position <= len(_data).
        self._data = b""
        self._position = 0
        self._summed = 0
        self._adler = zlib.adler32(b"")
        # How much was dropped so far.
        self._dropped = 0
        try:
            with self._guarded():
                self._read = self._open()
        except BaseException:
            self.close()
            raise

    @property
    def offset(self) -> int:
        """Where the next value is."""
        return self._dropped + self._position

    def int32(self) -> int:
        return int.from_bytes(self.take(4), "big", signed=True)

    def int64(self) -> int:
        return int.from_bytes(self.take(8), "big", signed=True)

    def buffer(self) -> bytes | None:
        """Read a buffer, or a string as its bytes; either may be null."""
        at = self.offset
        length = self.int32()
        if length == -1:
            return None
        if not 0 <= length <= VALUE_BYTES_MAX:
            raise DamagedFileError(self.path, at, f"a value of {length} bytes")
        return self.take(length)

    def string(self) -> bytes:
        """Read a string that may not be null."""
        at = self.offset
        value = self.buffer()
        if value is None:
            raise DamagedFileError(self.path, at, "a string is missing")
        return value

    def take(self, size: int) -> bytes:
        """Read bytes."""
        if len(self._data) - self._position < size and not self._fetch(size):
            end = self._dropped + len(self._data)
            raise DamagedFileError(self.path, end, "the file ends before its contents do")
        start = self._position
        self._position = start + size
        return self._data[start : self._position]

    def rest(self, size_max: int) -> bytes:
        """Return the rest, up to `size_max` bytes, without reading it."""
        if len(self._data) - self._position < size_max:
            self._fetch(size_max)
        return self._data[self._position : self._position + size_max]

    def checksum(self) -> int:
        """Return the Adler-32 of everything before the next value."""
        self._adler = zlib.adler32(
            memoryview(self._data)[self._summed : self._position], self._adler
        )
        self._summed = self._position
        return self._adler

    def damaged(self, reason: str) -> DamagedFileError:
        """Return the error for something wrong just before the next value."""
        return DamagedFileError(self.path, self.offset, reason)

    def _fetch(self, size: int) -> bool:
        """Read until `size` bytes are there; return whether they are."""
        self.checksum()
        self._dropped += self._position
        pieces = [self._data[self._position :]]
        self._position = self._summed = 0
        have = len(pieces[0])
        while have < size:
            with self._guarded():
                piece = self._read(_PIECE_BYTES)
            if not piece:
                break
            pieces.append(piece)
            have += len(piece)
        self._data = b"".join(pieces)
        return have >= size

    def _open(self) -> Callable[[int], bytes]:
        file = self.enter_context(self.path.open("rb"))
        if self.path.suffix == ".gz":
            return self.enter_context(gzip.GzipFile(fileobj=file)).read
        if self.path.suffix == ".snappy":
            return SnappyReader(file.read).read
        return file.read

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Turn the errors of reading the file into those of an upgrade."""
        offset = self._dropped + len(self._data)
        try:
            yield
        except (EOFError, gzip.BadGzipFile, zlib.error, SnappyError) as error:
            raise DamagedFileError(
                self.path, offset, f"it cannot be decompressed: {error}"
            ) from None
        except OSError as error:
            raise UpgradeError(f"{self.path}: cannot be read: {error.strerror}") from None

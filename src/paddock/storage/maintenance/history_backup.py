"""The history of a data folder, as a part of a backup.

    history/format                    as in a data folder
    history/log/….log                 segments, up to the state of the backup
    history/snapshots/….snapshot

or, of a server that shares its log,

    history/cluster/….snapshot
    history/cluster/history/service
    history/cluster/history/….log

So what is below `history/` is a data folder of its kind, for those who read history. It is read
while a server may write to it: of a segment, what lies behind the last record that counts is not
taken. What the server purges before it is reached is left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from paddock.log.file.segment import SPARE_BYTES, HeaderError, SegmentReader
from paddock.log.file.segments import segment_files
from paddock.log.interface import LogError
from paddock.storage.cluster.history import FOLDER, SERVICE
from paddock.storage.data_directory import CACHE
from paddock.storage.layout import FORMAT
from paddock.storage.snapshots import snapshot_files

PREFIX: Final = "history/"

_NAME: Final = re.compile(
    r"history/(?:format|(?:log|cluster/history)/\d{20}\.log|(?:snapshots|cluster)/\d{20}\.snapshot"
    r"|cluster/history/service)"
)
_PIECE_BYTES: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class HistoryFile:
    """One file, with what it holds in pieces."""

    name: str
    size: int
    pieces: Iterator[bytes]


def is_history(name: str) -> bool:
    """Return whether a file of this name in a backup is a part of its history."""
    return _NAME.fullmatch(name) is not None


def history_files(folder: Path, index: int) -> Iterator[HistoryFile]:
    """Yield the history of a data folder up to a record. Each is read before the next one comes.

    Raises LogError if it cannot be read.
    """
    is_shared = (folder / CACHE).is_dir()
    snapshots = folder / (CACHE if is_shared else "snapshots")
    log = folder / CACHE / FOLDER if is_shared else folder / "log"
    yield _small("format", FORMAT)
    service = log / SERVICE
    if service.exists():
        yield _small(f"{CACHE}/{FOLDER}/{SERVICE}", service.read_bytes())
    log_name = f"{CACHE}/{FOLDER}" if is_shared else "log"
    for at, path in snapshot_files(snapshots) if snapshots.exists() else ():
        if at <= index:
            yield from _snapshot(f"{snapshots.name}/{path.name}", path)
    for first_index, path in segment_files(log) if log.exists() else ():
        if first_index <= index:
            yield from _segment(f"{log_name}/{path.name}", path, index)


def _small(name: str, content: bytes) -> HistoryFile:
    return HistoryFile(PREFIX + name, len(content), iter([content]))


def _segment(name: str, path: Path, index: int) -> Iterator[HistoryFile]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return
    except OSError as error:
        raise LogError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        reader = SegmentReader(data)
        for record in reader:
            if record.index == index:
                break
        is_whole = reader.next_index > index or not reader.tail().is_damage
    except HeaderError:
        is_whole = False
    # What is damaged is taken as it is, for a check to find it.
    yield _small(name, data[: reader.end_offset] + bytes(SPARE_BYTES) if is_whole else data)


def _snapshot(name: str, path: Path) -> Iterator[HistoryFile]:
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        size = os.fstat(file.fileno()).st_size

        def pieces() -> Iterator[bytes]:
            left = size
            while left > 0:
                piece = file.read(min(left, _PIECE_BYTES))
                if not piece:
                    raise LogError(f"{path}: was purged while it was read; try again")
                left -= len(piece)
                yield piece

        yield HistoryFile(PREFIX + name, size, pieces())

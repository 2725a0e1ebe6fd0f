"""A backup: one tar file with a whole state in it.

    format                          as in a data folder
    log/….log                       an empty log, which continues after the snapshot
    snapshots/….snapshot            the state after the last durable batch
    history/…                       if asked for; see `paddock.storage.maintenance.history_backup`
    manifest.json                   comes last, so that a backup without it was cut short

Unpacked by hand it is a data folder. `read_backup` trusts nothing: it compares every checksum,
builds the state, and compares that with the manifest. The state that `write_backup` gets was built
by replaying the log, with its digests compared. History is not restored: a restored state begins a
new epoch, and what was before it is read in the backup.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any, Final, cast

from paddock.log.file.disk import Disk
from paddock.log.file.segment import SEGMENT_HEADER_BYTES, SPARE_BYTES, SegmentHeader
from paddock.log.file.segments import empty_segment, segment_name
from paddock.log.interface import LogError
from paddock.state.snapshot import SnapshotError, restore
from paddock.storage.layout import FORMAT
from paddock.storage.load import Loaded
from paddock.storage.maintenance.history_backup import HistoryFile, is_history
from paddock.storage.snapshots import (
    SnapshotDamagedError,
    read_chunks,
    snapshot_index,
    snapshot_name,
)
from paddock.storage.state_swap import write_state

_BACKUP_FORMAT: Final = 1
_MANIFEST: Final = "manifest.json"
_MANIFEST_BYTES_MAX: Final = 1 << 20
# With the default level a backup of 200,000 nodes took 12.7 s instead of 3.0 s, and was 1.2 MB
# instead of 1.4 MB.
_COMPRESSION: Final = 4
_PIECE_BYTES: Final = 64 << 10
# The end of the year 9999: what can be shown as a date.
_TIME_MS_MAX: Final = 253_402_300_799_999


class BackupError(LogError):
    """This is not a whole backup; one line that says why."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The description of a backup, in it."""

    backup: int
    paddock: str
    time_ms: int
    index: int
    zxid: int
    nodes: int
    sessions: int
    digest: int
    # The SHA-256 of each other file in it.
    sha256: dict[str, str]

    @property
    def has_history(self) -> bool:
        return any(map(is_history, self.sha256))


class _Hashing:
    """Reads a file and computes its checksum."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.sha256 = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.sha256.update(data)
        return data


def write_backup(
    file: IO[bytes],
    loaded: Loaded,
    *,
    compress: bool,
    version: str,
    time_ms: int,
    near: Path,
    history: Iterable[HistoryFile] = (),
) -> Manifest:
    """Write a state to an open file. Needs space for a snapshot in the folder `near` meanwhile."""
    machine = loaded.machine
    with (
        tempfile.TemporaryDirectory(prefix=".paddock-backup-", dir=near) as folder,
        gzip.GzipFile("", "wb", _COMPRESSION, file, time_ms // 1000)
        if compress
        else nullcontext(file) as stream,
    ):
        snapshot = write_state(Path(folder), machine, loaded.index, Disk())
        of_state = (loaded.index, machine.zxid, len(machine.tree), len(machine.sessions.by_id))
        sums = {one.name: _write_member(stream, one, time_ms) for one in history}
        manifest = Manifest(_BACKUP_FORMAT, version, time_ms, *of_state, machine.digest(), sums)
        with snapshot.open("rb") as opened:
            backup = StreamedBackup(opened, snapshot.stat().st_size, manifest)
            for piece in backup.pieces():
                stream.write(piece)
    return backup.manifest


def _write_member(stream: IO[bytes] | gzip.GzipFile, one: HistoryFile, time_ms: int) -> str:
    """Write a file of the history; return its checksum."""
    stream.write(_member_header(one.name, one.size, time_ms))
    sha256 = hashlib.sha256()
    for piece in one.pieces:
        sha256.update(piece)
        stream.write(piece)
    stream.write(bytes(_padded(one.size) - one.size))
    return sha256.hexdigest()


class StreamedBackup:
    """A backup that is made while it is sent, from the file of a snapshot.

    `manifest` describes the snapshot; its checksums are complete after the last piece. The size is
    known before.
    """

    def __init__(self, snapshot: IO[bytes], snapshot_bytes: int, manifest: Manifest) -> None:
        self._snapshot = snapshot
        self._snapshot_bytes = snapshot_bytes
        first = manifest.index + 1
        self._small = {"format": FORMAT, f"log/{segment_name(first)}": empty_segment(first)}
        self._name = f"snapshots/{snapshot_name(manifest.index)}"
        sums = {name: hashlib.sha256(content).hexdigest() for name, content in self._small.items()}
        # Every checksum is as long as this one of nothing.
        sums[self._name] = hashlib.sha256().hexdigest()
        # What comes before it, if anything does.
        self.manifest = replace(manifest, sha256={**manifest.sha256, **sums})

    @property
    def size(self) -> int:
        """Its bytes in total."""
        sizes = {name: len(content) for name, content in self._small.items()}
        sizes |= {self._name: self._snapshot_bytes, _MANIFEST: len(self._manifest_text())}
        members = (len(self._header(name, size)) + _padded(size) for name, size in sizes.items())
        return sum(members) + tarfile.RECORDSIZE

    def pieces(self) -> Iterator[bytes]:
        """Yield all of it, in pieces that take little time to make."""
        for name, content in self._small.items():
            yield self._header(name, len(content)) + _with_padding(content)
        yield self._header(self._name, self._snapshot_bytes)
        sha256 = hashlib.sha256()
        left = self._snapshot_bytes
        while left > 0:
            piece = self._snapshot.read(min(left, _PIECE_BYTES))
            if not piece:
                raise BackupError("the snapshot has become shorter")
            sha256.update(piece)
            left -= len(piece)
            yield piece
        yield bytes(_padded(self._snapshot_bytes) - self._snapshot_bytes)
        self.manifest.sha256[self._name] = sha256.hexdigest()
        text = self._manifest_text()
        yield self._header(_MANIFEST, len(text)) + _with_padding(text)
        yield bytes(tarfile.RECORDSIZE)

    def _manifest_text(self) -> bytes:
        return json.dumps(asdict(self.manifest), indent=2).encode() + b"\n"

    def _header(self, name: str, size: int) -> bytes:
        return _member_header(name, size, self.manifest.time_ms)


def _member_header(name: str, size: int, time_ms: int) -> bytes:
    member = tarfile.TarInfo(name)
    member.size = size
    member.mode = 0o600
    member.mtime = time_ms // 1000
    return member.tobuf()


def _padded(size: int) -> int:
    return -(-size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE


def _with_padding(content: bytes) -> bytes:
    return content.ljust(_padded(len(content)), b"\0")


def read_backup(file: IO[bytes], name: str) -> tuple[Loaded, Manifest]:
    """Read a backup from an open file to its end; `name` is for errors. Raises BackupError."""
    sums: dict[str, str] = {}
    loaded: Loaded | None = None
    manifest: Manifest | None = None
    with explained(name), tarfile.open(fileobj=file, mode="r|*") as archive:
        for member in archive:
            is_plain = member.isfile() and not member.issparse()
            content = archive.extractfile(member) if is_plain else None
            if manifest is not None or content is None or member.name in sums:
                raise BackupError(f"{name}: holds {member.name!r}, which does not belong there")
            hashing = _Hashing(content)
            index = snapshot_index(member.name.removeprefix("snapshots/"))
            if member.name == _MANIFEST:
                manifest = _read_manifest(content.read(_MANIFEST_BYTES_MAX))
                continue
            if member.name == "format":
                if hashing.read(len(FORMAT) + 1) != FORMAT:
                    raise BackupError(f"{name}: has a layout that this version does not know")
            elif is_history(member.name):
                # It is not restored. Its checksum counts.
                while hashing.read(_PIECE_BYTES):
                    pass
            elif member.name.startswith("log/"):
                # Only for a backup that is unpacked by hand: a restore makes a new one.
                SegmentHeader.decode(hashing.read(SEGMENT_HEADER_BYTES + SPARE_BYTES + 1))
            elif index is not None and loaded is None:
                chunks = read_chunks(cast(IO[bytes], hashing), member.size, index)
                loaded = Loaded(restore(chunks), index)
            else:
                raise BackupError(f"{name}: holds {member.name!r}, which does not belong there")
            sums[member.name] = hashing.sha256.hexdigest()
    if manifest is None or loaded is None:
        raise BackupError(f"{name}: is not a whole backup: its end is missing")
    machine = loaded.machine
    sessions = len(machine.sessions.by_id)
    found = (loaded.index, machine.zxid, len(machine.tree), sessions, machine.digest(), sums)
    said = (manifest.index, manifest.zxid, manifest.nodes, manifest.sessions, manifest.digest)
    if found != (*said, manifest.sha256):
        raise BackupError(f"{name}: does not hold what its manifest says")
    return loaded, manifest


def _read_manifest(text: bytes) -> Manifest:
    values: Any = json.loads(text)
    if not isinstance(values, dict) or values.get("backup") != _BACKUP_FORMAT:
        raise ValueError("its manifest is not one that this version knows")
    manifest = Manifest(**values)
    if type(manifest.time_ms) is not int or not 0 <= manifest.time_ms <= _TIME_MS_MAX:
        raise ValueError("its manifest does not say when it was made")
    return manifest


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Turn every error of a bad file into a BackupError."""
    try:
        yield
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise BackupError(f"{name}: is not a whole backup: {error}") from error
    except (SnapshotDamagedError, SnapshotError) as error:
        raise BackupError(f"{name}: its snapshot is damaged: {error}") from error
    except (ValueError, TypeError, RecursionError) as error:
        raise BackupError(f"{name}: {error}") from error
    except MemoryError as error:
        raise BackupError(f"{name}: it takes more memory than there is") from error
    except OSError as error:
        raise BackupError(f"{name}: cannot be read: {error.strerror or error}") from error

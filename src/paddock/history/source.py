"""Finds out what kind of history there is at a path, and opens it."""

from __future__ import annotations

import shutil
import tarfile
import weakref
from pathlib import Path
from tempfile import mkdtemp

from paddock.history.apache import ApacheSource
from paddock.history.moment import BEGINNING, Moment, shown_time
from paddock.history.own import OwnPast, OwnSource
from paddock.history.past import HistoryError, Past, Source
from paddock.state.machine import StateMachine
from paddock.storage.cluster.history import FOLDER, read_history
from paddock.storage.cluster.shared_replay import SharedReplay
from paddock.storage.data_directory import CACHE
from paddock.storage.maintenance.archive import unpack
from paddock.storage.maintenance.backup import Manifest, explained, read_backup
from paddock.storage.maintenance.history_backup import PREFIX, is_history
from paddock.storage.replay import Replay


def open_source(path: Path, log: Path | None = None) -> Source:
    """Return the history at a path: a data folder, a backup, or a data folder of Apache ZooKeeper.

    `log` is the folder of Apache's transaction log, if it is elsewhere. Raises HistoryError.
    """
    if path.is_file():
        return BackupSource(path)
    if (path / "version-2").is_dir():
        return ApacheSource(path, log)
    if (path / "format").exists():
        return own_source(path)
    if not path.exists():
        raise HistoryError(f"{path}: there is no such folder or file")
    raise HistoryError(
        f"{path}: is no data folder, neither of Paddock nor of Apache ZooKeeper, and no backup"
    )


def own_source(path: Path) -> OwnSource:
    """Return the history in a data folder of Paddock."""
    cache = path / CACHE
    if not cache.is_dir():
        return OwnSource(path / "log", path / "snapshots")

    def replaying(machine: StateMachine, index: int) -> SharedReplay:
        return SharedReplay(machine)

    # The first state of a shared log may have been imported: it begins with a snapshot.
    return OwnSource(cache / FOLDER, cache, replaying, read_history, begins_empty=False)


class BackupSource:
    """A backup: the history that it has, if it has one; else that of one moment."""

    unknown = "a backup has no events: it does not say from where a client came, or why it was gone"

    def __init__(self, path: Path) -> None:
        self._path = path
        # Where its history was unpacked; goes with this object.
        self._unpacked: Path | None = None

    def begin(self, moment: Moment) -> Past:
        if self._unpacked is not None:
            return own_source(self._unpacked / PREFIX).begin(moment)
        with self._path.open("rb") as file:
            loaded, manifest = read_backup(file, str(self._path))
        if manifest.has_history:
            self._unpack()
            return self.begin(moment)
        machine = loaded.machine
        self._check(moment, machine, manifest)
        # There is no log behind it.
        nothing = OwnSource(self._path / "log", self._path / "snapshots")
        return OwnPast(nothing, Replay(machine, loaded.index))

    def _check(self, moment: Moment, machine: StateMachine, manifest: Manifest) -> None:
        if not moment.has(machine.zxid, machine.time_ms) and moment != BEGINNING:
            raise HistoryError(
                f"{moment} is not in this backup, which is of {shown_time(manifest.time_ms)}"
                f" (zxid 0x{machine.zxid:x}) and was made without --history"
            )

    def _unpack(self) -> None:
        """Unpack its history; the backup was read, and found to be whole."""
        folder = Path(mkdtemp(prefix="paddock-history-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        with explained(str(self._path)), tarfile.open(self._path, "r:*") as archive:
            unpack(archive, folder, is_history)
        self._unpacked = folder

"""Finds out what kind of history there is at a path, and opens it."""

from __future__ import annotations

from pathlib import Path

from paddock.history.apache import ApacheSource
from paddock.history.moment import BEGINNING, Moment, shown_time
from paddock.history.own import OwnPast, OwnSource
from paddock.history.past import HistoryError, Source
from paddock.storage.maintenance.backup import read_backup
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
        return OwnSource(path / "log", path / "snapshots")
    if not path.exists():
        raise HistoryError(f"{path}: there is no such folder or file")
    raise HistoryError(
        f"{path}: is no data folder, neither of Paddock nor of Apache ZooKeeper, and no backup"
    )


class BackupSource:
    """A backup: the history of one moment."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def begin(self, moment: Moment) -> OwnPast:
        with self._path.open("rb") as file:
            loaded, manifest = read_backup(file, str(self._path))
        machine = loaded.machine
        if not moment.has(machine.zxid, machine.time_ms) and moment != BEGINNING:
            raise HistoryError(
                f"{moment} is not in this backup, which is of {shown_time(manifest.time_ms)}"
                f" (zxid 0x{machine.zxid:x})"
            )
        # There is no log behind it.
        nothing = OwnSource(self._path / "log", self._path / "snapshots")
        return OwnPast(nothing, self._path / "log", Replay(machine, loaded.index))

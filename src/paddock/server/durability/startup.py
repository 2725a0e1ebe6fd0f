"""The start of a server: choose the log, load the newest snapshot; the replica replays the rest."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from paddock.log.file.disk import Disk
from paddock.log.file.file_log import FileLog
from paddock.log.interface import WAY_ON, Log, LogCorruptError, ends_before_snapshot
from paddock.log.memory import MemoryLog
from paddock.server.config.config import ServerConfig
from paddock.state.machine import StateMachine
from paddock.storage.cluster.history import FOLDER, HistoryFiles, remove_history
from paddock.storage.data_directory import (
    CACHE,
    DataDirectory,
    DataDirectoryError,
    look_before_claim,
)
from paddock.storage.load import restored_state
from paddock.storage.replay import Replay
from paddock.storage.snapshots import Damaged, SnapshotStore

if TYPE_CHECKING:
    from paddock.log.file.disk_writer import DiskWriter

logger: Final = logging.getLogger(__name__)


class Engine:
    """The log and the snapshots that the configuration asks for: the one place that chooses them.

    With a data folder, which it owns until it is closed, they are files in it; without one the log
    is in memory, and there are no snapshots. The rest of the server knows `Log` and
    `SnapshotStore`.

    Where the log is shared (`paddock.server.cluster`), a data folder is a cache of snapshots, apart
    from those of a server of its own: neither kind of server starts on the folder of the other.
    """

    def __init__(self, config: ServerConfig, disk: Disk | None = None) -> None:
        """Claim the data folder. Raises PaddockError if it cannot be used."""
        self._config = config
        self._disk = disk
        self._log: Log | None = None
        self._temporary: TemporaryDirectory[str] | None = None
        self.directory: DataDirectory | None = None
        self.snapshots: SnapshotStore | None = None
        # Where a server that shares its log keeps what it needs to start fast.
        self.cache: Path | None = None
        if config.data_directory is not None:
            self.directory = DataDirectory(config.data_directory, config.data_log_directory)
            self._choose(self.directory, config.shared_log is not None)

    @staticmethod
    def check(config: ServerConfig) -> None:
        """Look at the data folder without claiming it. Raises PaddockError as the claim would."""
        if config.data_directory is not None:
            look_before_claim(config.data_directory, config.data_log_directory)

    def open(self) -> Log:
        """Open the log and the snapshots. Raises LogError."""
        if self.directory is None:
            self._log = MemoryLog(keep=False)
        else:
            self.snapshots = SnapshotStore(self.directory.snapshots_path, disk=self._disk)
            self._log = FileLog(
                self.directory.log_path,
                disk=self._disk,
                new_disk_writer=_new_disk_writer if self._disk is None else None,
            )
        return self._log

    def open_cache(self) -> SnapshotStore:
        """Open the snapshots of a server that shares its log.

        Without a data folder they are in a folder that goes with this process.
        """
        if self.cache is None:
            self._temporary = TemporaryDirectory(prefix="paddock-")
            self.snapshots = SnapshotStore(Path(self._temporary.name), disk=self._disk)
        else:
            self.snapshots = SnapshotStore(self.cache, disk=self._disk)
        return self.snapshots

    def open_history(self) -> HistoryFiles | None:
        """Return the history of a server that shares its log; None if it keeps none.

        Then what an earlier run has kept is removed.
        """
        if self.cache is None:
            return None
        if not self._config.history_seconds:
            remove_history(self.cache)
            return None
        return HistoryFiles(self.cache / FOLDER, self._config.history_bytes, disk=self._disk)

    def keeps_snapshots(self) -> bool:
        """Return whether the next server will find the snapshots of this one."""
        return self._temporary is None

    def _choose(self, directory: DataDirectory, is_shared: bool) -> None:
        """Refuse the folder of the other kind of server."""
        cache = directory.path / CACHE
        if is_shared:
            if directory.has_state():
                directory.close()
                raise DataDirectoryError(
                    f"data folder {directory.path}: holds the state of a server of its own. Move"
                    f" it into the service: paddock cluster import {directory.path} --log URL. Or"
                    " take another folder"
                )
            cache.mkdir(mode=0o700, exist_ok=True)
            self.cache = cache
        elif cache.exists():
            directory.close()
            raise DataDirectoryError(
                f"data folder {directory.path}: is the cache of a server that shares its log. Start"
                " it with --log; or take another folder"
            )

    def close(self) -> None:
        """Close the log, and release the data folder. It waits for a thread, so it blocks."""
        if self._log is not None:
            self._log.close()
        if self._temporary is not None:
            self._temporary.cleanup()
        if self.directory is not None:
            self.directory.close()


def _new_disk_writer() -> DiskWriter | None:
    """Return a new disk writer; None in plain Python, and where it cannot be started."""
    try:
        from paddock.log.file.disk_writer import DiskWriter

        return DiskWriter()
    except ModuleNotFoundError:
        return None
    except (ImportError, OSError) as error:
        logger.warning("the log is written by a thread of Python's, which is slower: %s", error)
        return None


@dataclass(frozen=True, slots=True)
class Restored:
    """The state of the newest snapshot, from which the log is followed."""

    replay: Replay
    # The last batch in the snapshot, and its last zxid; 0 and -1 without one.
    index: int = 0
    zxid: int = -1

    def tell(self, seconds: float) -> None:
        """Log what was loaded, and in how many seconds."""
        machine = self.replay.machine
        shown = {
            "nodes": len(machine.tree),
            "sessions": len(machine.sessions.by_id),
            "zxid": machine.zxid,
            "seconds": seconds,
            "snapshot": self.index,
            "replayed": self.replay.entries,
        }
        logger.info(
            "loaded %d nodes and %d sessions at zxid 0x%x in %.2f s: the snapshot at %d and %d"
            " entries of the log",
            *shown.values(),
            extra=shown,
        )


def restore_newest(log: Log, store: SnapshotStore | None) -> Restored:
    """Load the newest snapshot, if the log reaches beyond it and nothing newer is missing.

    Raises LogCorruptError, or TooMuchForThisMachineError if there is not enough memory.
    """
    newest = None if store is None else store.newest(restored_state)
    machine, index, zxid = StateMachine(), 0, -1
    if newest is not None and newest.snapshot is not None:
        machine, index = newest.snapshot.content, newest.snapshot.index
        zxid = machine.zxid
    _check_damaged(() if newest is None else newest.damaged, max(index, log.last_index))
    torn = log.torn
    if log.last_index < index:
        # Nothing gets into a snapshot that was not in the log before.
        where = "" if torn is None else f"{torn.path}: offset {torn.offset}: "
        raise LogCorruptError(
            f"{where}{ends_before_snapshot(log.last_index, index, torn)}. {WAY_ON}"
        )
    if torn is not None:
        logger.warning(
            "%s: offset %d: dropped a torn tail of %d bytes behind record %d, from a write that was"
            " interrupted and not acknowledged; if there was no crash, it may be the last"
            " acknowledged write, damaged since",
            torn.path,
            torn.offset,
            torn.size_bytes,
            log.last_index,
            extra={"file": str(torn.path), "offset": torn.offset, "bytes": torn.size_bytes},
        )
    return Restored(Replay(machine, index), index, zxid)


def _check_damaged(damaged: tuple[Damaged, ...], end: int) -> None:
    """Pass over damaged snapshots, unless the log ends at `end`, before one of them."""
    for one in damaged:
        logger.warning("snapshot %s is damaged and passed over: %s", one.path, one.reason)
    for one in damaged:
        if one.index > end:
            # It was whole once, and so was the log up to it.
            raise LogCorruptError(
                f"{one.path}: {one.reason}; and the log ends at record {end}, before what was in"
                f" it. {WAY_ON}"
            )

"""The storage engine of a server: its log and its snapshots, as the configuration asks for them.

This is the one place that chooses them. With a data folder they are files in it; without one the
log is in memory, and there are no snapshots. The rest of the server knows `Log` and
`SnapshotStore`.
"""

from __future__ import annotations

from paddock.log.file.disk import Disk
from paddock.log.file.file_log import FileLog
from paddock.log.interface import Log
from paddock.log.memory import MemoryLog
from paddock.server.config.config import ServerConfig
from paddock.storage.data_directory import DataDirectory, look_before_claim
from paddock.storage.snapshots import SnapshotStore


class Engine:
    """Owns the data folder, if there is one, until it is closed."""

    def __init__(self, config: ServerConfig, disk: Disk | None = None) -> None:
        """Claim the data folder. Raises PaddockError if it cannot be used."""
        self._disk = disk
        self._log: Log | None = None
        self.directory: DataDirectory | None = None
        self.snapshots: SnapshotStore | None = None
        if config.data_directory is not None:
            self.directory = DataDirectory(config.data_directory, config.data_log_directory)

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
            self._log = FileLog(self.directory.log_path, disk=self._disk)
        return self._log

    def close(self) -> None:
        """Close the log, and release the data folder. It waits for a thread, so it blocks."""
        if self._log is not None:
            self._log.close()
        if self.directory is not None:
            self.directory.close()

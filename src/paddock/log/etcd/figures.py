"""What an operator may want to know of the shared log."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class LogFigures:
    """How the log is doing; it is brought up to date in place."""

    # The last record that was handed over, and the last one that is known to be in the log.
    delivered: int = 0
    last_index: int = 0
    # From the first attempt of our last batch until it came out of the log.
    commit_s: float = 0.0
    # How often the watch was opened again, and how often records were read in pages.
    reopenings: int = 0
    page_reads: int = 0
    # Calls of etcd that failed.
    errors: int = 0
    # Whether etcd had no space when something was appended last.
    is_full: bool = False

    @property
    def lag(self) -> int:
        """How many records are known to be in the log that were not handed over."""
        return max(self.last_index - self.delivered, 0)

"""A log that forgets everything when the process ends, for a server that may, and for tests.

It follows the rules of `paddock.log.interface`. Every proposal is durable at once, as far as memory
is, and its outcome is reported inside `propose`, before that returns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from paddock.log.interface import Durability, LogCorruptError, Record, Report


class MemoryLog:
    """A log in memory.

    With `keep`, records can be read again until they are purged. Without, only their number is
    remembered, so that a server that never reads its log does not grow with it.
    """

    def __init__(self, *, keep: bool) -> None:
        self._keep = keep
        # Invariant: the last one has the index `_last_index`.
        self._records: list[Record] = []
        self._last_index = 0
        self._report: Report | None = None

    # Nothing is ever interrupted here.
    torn: Final = None

    @property
    def last_index(self) -> int:
        """The index of the last record; 0 in an empty log."""
        return self._last_index

    def start(self, report: Report, after: int = 0) -> None:
        """Begin to accept proposals; the first one gets an index above `after`."""
        if after > self._last_index:
            self._records.clear()
            self._last_index = after
        self._report = report

    def propose(self, payload: bytes) -> int:
        """Store a batch, report it as durable, and return its index."""
        assert self._report is not None, "the log does not run"
        self._last_index += 1
        index = self._last_index
        if self._keep:
            self._records.append(Record(index, payload))
        self._report(index, Durability.DURABLE, "")
        return index

    def records(self, after: int) -> Iterator[Record]:
        """Read the records with an index above `after`; LogCorruptError if they are not kept."""
        if after >= self._last_index:
            return iter(())
        skipped = after - (self._last_index - len(self._records))
        if skipped < 0:
            raise LogCorruptError(f"record {after + 1} is not kept in memory")
        return iter(self._records[skipped:])

    def recover(self) -> list[Record]:
        """Never needed: no outcome is unknown here."""
        return []

    def purge(self, below: int) -> None:
        """Forget the records with an index of at most `below`."""
        kept = max(0, self._last_index - below)
        del self._records[: max(0, len(self._records) - kept)]

    def close(self) -> None:
        """Stop accepting proposals. What is kept can still be read, and the log started again."""
        self._report = None

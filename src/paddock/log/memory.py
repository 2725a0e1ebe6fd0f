"""A log in memory, for a server that may forget everything when its process ends, and for tests.

It follows the rules of `paddock.log.interface`. A proposal is committed at once, and the listener
is told inside `propose`, before that returns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from paddock.log.interface import Listener, LogCorruptError, Record


class MemoryLog:
    """A log in memory.

    With `keep`, records can be read again until they are purged. Without, only their number is
    remembered, so that a server that never reads its log does not grow with it.
    """

    server: Final = b""
    in_flight_max: Final = 1
    is_shared: Final = False
    # Nothing is ever interrupted here.
    torn: Final = None

    def __init__(self, *, keep: bool) -> None:
        self._keep = keep
        # Invariant: the last one has the index `last_index`.
        self._records: list[Record] = []
        self.last_index = 0
        self._listener: Listener | None = None

    def start(self, listener: Listener, after: int = 0) -> None:
        """Tell the records above `after`; the first proposal gets an index above it."""
        for record in self.records(after):
            listener.committed(record)
        if after > self.last_index:
            self._records.clear()
            self.last_index = after
        self._listener = listener

    def propose(self, number: int, payload: bytes) -> None:
        """Store a batch and tell that it is committed."""
        assert self._listener is not None, "the log does not run"
        self.last_index += 1
        if self._keep:
            self._records.append(Record(self.last_index, payload))
        self._listener.committed(Record(self.last_index, payload, self.server, number))

    def records(self, after: int) -> Iterator[Record]:
        """Read the records with an index above `after`; LogCorruptError if they are not kept."""
        if after >= self.last_index:
            return iter(())
        skipped = after - (self.last_index - len(self._records))
        if skipped < 0:
            raise LogCorruptError(f"record {after + 1} is not kept in memory")
        return iter(self._records[skipped:])

    def recover(self) -> None:
        """Never needed: no outcome is unknown here."""

    def purge(self, below: int) -> None:
        """Forget the records with an index of at most `below`."""
        kept = max(0, self.last_index - below)
        del self._records[: max(0, len(self._records) - kept)]

    def leave_loop(self) -> None:
        """Do nothing: it does not use the loop."""

    def close(self) -> None:
        """Stop accepting proposals. What is kept can still be read, and the log started again."""
        self._listener = None

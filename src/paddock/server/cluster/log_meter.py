"""How many bytes of the log lie behind a record.

Batches differ in size by a factor of a thousand, and a server that idles writes many small ones. So
no average will do: how many bytes had been applied is marked now and then, and what lies between
two marks is in proportion. What came before the first mark is not known; the mean of all that was
seen is assumed for it.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from paddock.server.replication.replica import Replica

MARKS_MAX: Final = 512


class LogMeter:
    """Measures the log as it is applied."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        # Indices, in order, and how many bytes had been applied then: none when the state was
        # restored.
        self._indices = [replica.replay.index]
        self._bytes = [0]
        self.mark()

    def mark(self) -> None:
        """Remember where the log is now."""
        replica = self._replica
        if replica.applied == self._indices[-1]:
            return
        self._indices.append(replica.applied)
        self._bytes.append(replica.applied_bytes)
        if len(self._indices) > MARKS_MAX:
            # The older half becomes coarser; the first one stays.
            half = len(self._indices) // 2
            del self._indices[1:half:2]
            del self._bytes[1:half:2]

    def bytes_behind(self, index: int) -> int:
        """Return about how many bytes came behind a record."""
        applied, size = self._replica.applied, self._replica.applied_bytes
        if index >= applied:
            return 0
        at = bisect_right(self._indices, index) - 1
        if at < 0:
            seen, first = applied - self._indices[0], self._bytes[0]
            mean = (size - first) / seen if seen else 0.0
            return size - first + int(mean * (self._indices[0] - index))
        indices, marked = [*self._indices, applied], [*self._bytes, size]
        share = (index - indices[at]) / max(indices[at + 1] - indices[at], 1)
        return size - marked[at] - int(share * (marked[at + 1] - marked[at]))

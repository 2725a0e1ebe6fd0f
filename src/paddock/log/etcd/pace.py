"""How fast a snapshot is written to etcd: gently, unless the log grows too fast meanwhile.

Nothing can be trimmed before the snapshot counts. So the log that gathers until then decides how
large etcd's database becomes. The rule:

* While a snapshot is written, the log may grow by as much as the next snapshot waits for anyway: 64
  MiB, or the size of the snapshot if that is more. The two are to be through together: when half of
  that log has come, half of the snapshot is due.
* What is on time rests after each call four times as long as that took: a fifth of the time.
* What is late rests less, in proportion, and not at all if it is late by a quarter.
* For each further quarter, pieces are twice as large, up to 1 MiB. One piece is in flight at a
  time, beside four batches of 64 KiB of each server: this is what gives it a larger share.

With three servers that write as fast as they can, a piece of 1 MiB is more than all of their
batches in flight. So the log grows by about twice what is wanted at most, and etcd holds two
snapshots and the log of three such times. Simulated with 40 MiB/s (`test_pace.py`), that is 260 MiB
for a state of 10 MiB and 1.6 GiB for one of 200 MiB; a steady fifth of the time would make it 1.9
GiB and more than any quota. Beyond that (many more servers, batches of single large requests),
`space.py` refuses clients' writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

# How long a call is rested after if it is on time, in terms of its own time.
REST: Final = 4.0
PIECE_BYTES_MIN: Final = 64 << 10
PIECE_BYTES_MAX: Final = 1 << 20
# By how much more it must be late for the next measure.
_STEP: Final = 0.25


class Pace:
    """The pace of one snapshot at a time, and of the trimming behind it."""

    def __init__(self) -> None:
        self._size = 0
        self._written = 0
        self._log_bytes_max = 0
        self._log_bytes: Callable[[], int] | None = None

    def begin(self, size: int, log_bytes_max: int, log_bytes: Callable[[], int]) -> None:
        """Begin a snapshot, of about `size` bytes.

        `log_bytes` returns by how much the log has grown since; at most `log_bytes_max` is wanted.
        """
        self._size = max(size, 1)
        self._written = 0
        self._log_bytes_max = log_bytes_max
        self._log_bytes = log_bytes

    def end(self) -> None:
        """There is no hurry any more."""
        self._log_bytes = None

    def wrote(self, size: int) -> None:
        """Take note of a piece that is written."""
        self._written += size

    def rest(self) -> float:
        """Return how long a call is rested after, in terms of its own time."""
        return REST * min(max(1 - self._lateness() / _STEP, 0.0), 1.0)

    def piece_bytes(self) -> int:
        """Return how large the next piece should be."""
        steps = max(int(self._lateness() / _STEP), 0)
        return int(min(PIECE_BYTES_MIN << min(steps, 8), PIECE_BYTES_MAX))

    def _lateness(self) -> float:
        """Return how far the log is ahead, in terms of the whole; negative if it is behind."""
        if self._log_bytes is None:
            return 0.0
        return self._log_bytes() / self._log_bytes_max - min(self._written / self._size, 1.0)

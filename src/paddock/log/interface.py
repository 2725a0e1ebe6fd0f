"""What the server may rely on, whichever log it has.

A log stores opaque batches under contiguous indices, the first of which is 1. Its rules:

* A proposal has exactly one outcome, told once. It is durable, or surely not written, or unknown.
* At most one proposal is under way: the caller gathers the next batch while this one syncs.
* After an unknown outcome the log takes nothing until `recover` has found out what is true.
* An index is never given to two batches of which one was reported durable.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from paddock.errors import PaddockError

# How to go on after damage: the end of each message about it.
WAY_ON: Final = (
    "Run paddock fsck on the data folder: it says what is whole, and with --repair it writes a copy"
    " without the damage. Or restore a backup with paddock restore."
)


class LogError(PaddockError):
    """The log cannot do its work now: the disk refuses. Trying again later may succeed."""


class LogCorruptError(LogError):
    """Stored data is damaged or missing. Its text says what, where, and how to go on."""


def ends_before_snapshot(last: int, index: int, torn: Torn | None) -> str:
    """Say what it means that the log ends with the record `last`, and a snapshot is at `index`."""
    if torn is None:
        return (
            f"the log ends with record {last}, but there is a snapshot at {index}, so what came"
            " behind that is missing"
        )
    return (
        f"record {last + 1} is damaged ({torn.size_bytes} bytes), and the log ends there, but there"
        f" is a snapshot at {index}, so it was whole once"
    )


class Durability(enum.Enum):
    """The outcome of a proposal."""

    DURABLE = enum.auto()
    # The disk is full, noticed before a byte of the batch was written. The log stays usable.
    NOT_WRITTEN = enum.auto()
    # Any other failed write or sync. Nothing is accepted before `recover`.
    UNKNOWN = enum.auto()


@dataclass(frozen=True, slots=True)
class Record:
    """A durable batch and its place in the log."""

    index: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Torn:
    """What follows the last whole record of a log: the remains of a write that was interrupted.

    If there was no crash it may be a record that was acknowledged and is damaged now.
    """

    path: Path
    offset: int
    size_bytes: int


# Told once for each proposal: its index, its outcome, and for people why it was not durable.
#
# It runs in any thread, also inside `propose` itself and before that has returned. So it must
# hand over and do nothing else, for instance with `loop.call_soon_threadsafe`.
Report = Callable[[int, Durability, str], None]


class Log(Protocol):
    """An ordered, durable sequence of batches.

    A server reads `records` after its snapshot, then calls `start`; from then on it proposes.
    """

    @property
    def last_index(self) -> int:
        """The index of the last durable record; 0 in an empty log."""
        ...

    @property
    def torn(self) -> Torn | None:
        """What was found behind the last durable record and does not count."""
        ...

    def start(self, report: Report, after: int = 0) -> None:
        """Begin to accept proposals. Raises LogError if the disk refuses.

        `after` is the index of the snapshot that the state was restored from: nothing at or below
        it is given out again, even if the log itself has lost its end.
        """
        ...

    def propose(self, payload: bytes) -> int:
        """Hand a batch to the log without blocking, and return the index that it will have.

        The index is used again if the outcome is not durable.
        """
        ...

    def records(self, after: int) -> Iterator[Record]:
        """Read the durable records with an index above `after`, in order.

        Raises LogCorruptError when one of them is damaged or missing.
        """
        ...

    def recover(self) -> list[Record]:
        """Find out, after an unknown outcome, what is true, and accept proposals again. Blocks.

        Returns the records after the last one reported durable that are now surely durable.
        Raises LogError while the log is still broken; call it again later.
        """
        ...

    def purge(self, below: int) -> None:
        """Drop what only holds records with an index of at most `below`. May keep some of it."""
        ...

    def close(self) -> None:
        """Wait for the proposal under way to be reported, then let go of everything."""
        ...

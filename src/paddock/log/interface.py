"""The contract between a server and its log, whichever engine the log has.

A log stores opaque batches under contiguous indices, the first of which is 1. Its rules:

* Every committed record reaches the listener once, in index order and durable, by `committed`: the
  records of earlier runs, our own proposals, those of other servers, what `recover` has found.
* A record names the proposal that it came from, if that is known: (server, number). A server gives
  no number twice.
* A proposal is committed, or `refused` (surely not written), or in doubt. `unknown` is told once,
  of all proposals in flight; the log takes nothing more until `recover` has succeeded. What becomes
  of them is then told by `committed` alone.
* At most `in_flight_max` proposals are under way. The proposer gathers the next batch meanwhile.
* An index is never given to two batches of which one was committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
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


# Not frozen: one is made for each batch, and that would take three times as long.
@dataclass(slots=True)
class Record:
    """A committed batch, its place in the log, and the proposal that it came from."""

    index: int
    payload: bytes
    # The server that proposed it, and its number there. None if the log does not know it: a file
    # log knows those of its own process.
    server: bytes | None = None
    number: int = 0
    # Its revision in a shared log; 0 in any other.
    revision: int = 0
    # How many seconds after its sync the listener hears of it, as far as the log knows.
    late: float = 0.0


@dataclass(frozen=True, slots=True)
class Torn:
    """What follows the last whole record of a log: the remains of a write that was interrupted.

    If there was no crash it may be a record that was acknowledged and is damaged now.
    """

    path: Path
    offset: int
    size_bytes: int


class Listener(Protocol):
    """What follows a log.

    Its methods are called in any thread, also inside `propose` itself, so they only hand over, for
    instance with `loop.call_soon_threadsafe`. But while `start` runs, only its caller's thread
    calls `committed`, which may then do its work at once, and may raise.
    """

    def committed(self, record: Record) -> None:
        """Take the next record of the log."""

    def refused(self, number: int, reason: str) -> None:
        """Take the news that our proposal was surely not written. The log stays usable."""

    def unknown(self, reason: str) -> None:
        """Take the news that the outcome of all proposals in flight is unknown."""


class Log(Protocol):
    """An ordered, durable sequence of batches."""

    @property
    def server(self) -> bytes:
        """The name under which this process proposes."""

    @property
    def in_flight_max(self) -> int:
        """How many proposals may be under way."""

    @property
    def is_shared(self) -> bool:
        """Whether other servers propose to it, too."""

    @property
    def last_index(self) -> int:
        """The index of the last committed record; 0 in an empty log."""

    @property
    def torn(self) -> Torn | None:
        """What was found behind the last committed record and does not count."""

    def start(self, listener: Listener, after: int = 0) -> None:
        """Tell the listener every record above `after`, then begin to accept proposals.

        `after` is the index of the snapshot that the state was restored from: no index up to it is
        used again, even if the log has lost its end. Raises LogCorruptError when a record is
        damaged or missing, LogError if the disk refuses, and what the listener raises; then nothing
        was changed.
        """

    def propose(self, number: int, payload: bytes) -> None:
        """Hand a batch to the log without blocking. The listener is told what becomes of it."""

    def records(self, after: int) -> Iterator[Record]:
        """Read the committed records with an index above `after`, in order.

        Raises LogCorruptError when one of them is damaged or missing.
        """

    def recover(self) -> None:
        """Find out, after an unknown outcome, what was written, and accept proposals again. Blocks.

        The listener has been told what turned out to be committed when this returns. Raises
        LogError while the log is still broken; call it again later.
        """

    def purge(self, below: int) -> None:
        """Drop what only holds records with an index of at most `below`. May keep some of it."""

    def leave_loop(self) -> None:
        """Use the event loop no more: called on it, before a `close` in another thread."""

    def close(self) -> None:
        """Wait until the proposals in flight have been told of, then let go of everything."""


class OtherHistoryError(LogError):
    """The shared log is not the one that was followed: it was restored, or is another service's."""


class TrimmedError(LogError):
    """The records behind a position are not in the shared log any more: a snapshot has them."""


class ForbiddenError(LogError):
    """The shared log refuses for good: too large, not permitted, not authenticated."""


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a shared log: the last record that was taken. The default is its beginning."""

    index: int = 0
    revision: int = 0
    # The proposal that the record came from.
    server: bytes = b""
    number: int = 0


class SharedListener(Protocol):
    """What follows a shared log. Its methods are called on the event loop, and only hand over."""

    def committed(self, record: Record) -> None:
        """Take the next record of the log, of any server: in index order, each once."""

    def room(self) -> asyncio.Future[None] | None:
        """Return None if more records can be taken without piling up.

        Otherwise return a future that is done when that may be so.
        """

    def failed(self, error: LogError) -> None:
        """Take the news that the log is followed no more: what says `error` does not pass."""


class SharedLog(Protocol):
    """An ordered, durable sequence of batches that several servers propose to.

    * A proposal is (server, number), and is repeated until it comes out of the log, however often
      that takes: the order in which neighbours are committed is not that of their numbers, and a
      repeated one may be committed long after it was given up.
    * A proposal that comes out with other bytes than were proposed was made by a clone of this
      process: `failed`, with a ForbiddenError.
    * A server that ends, by `withdraw`, never proposes under its name again.
    """

    @property
    def server(self) -> bytes:
        """The name under which this process proposes now; empty before `begin`."""

    @property
    def in_flight_max(self) -> int:
        """How many proposals should be under way."""

    @property
    def last_index(self) -> int:
        """The highest index that is known to be in the log."""

    async def follow(self, listener: SharedListener, after: Position) -> None:
        """Tell the listener every record behind a position, and go on until `close`.

        Returns when all records are told that were committed before the call. Raises
        OtherHistoryError, TrimmedError, ForbiddenError; LogError if the log cannot be reached.
        """

    def begin(self, server: bytes) -> None:
        """Propose under a new name from now on. Nothing of the former one is repeated any more."""

    def propose(self, number: int, payload: bytes) -> None:
        """Hand a batch to the log without blocking, and repeat it until it comes out."""

    def withdraw(self) -> None:
        """Repeat nothing any more; what is in flight may or may not be committed."""

    async def close(self) -> None:
        """Follow no more, repeat nothing, and let go of everything."""

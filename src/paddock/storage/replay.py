"""A state that follows the log: each batch is checked, applied and counted here.

A server does so while it serves and when it starts; `load` and `fsck` do it without a server.

* A batch carries the digest of the state that its proposer had at some index. If the digest of our
  own state at that index is known, the two are compared: a state that differs is not used.
* What is kept beside the state does not grow with the log.
* What depends on the machine (memory, most of all) is no answer to an entry: it ends `apply` with
  an error that names the record and the way to go on without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from paddock.log.interface import WAY_ON, LogCorruptError, LogError, Record
from paddock.protocol.jute import DecodeError
from paddock.state.access import Identities
from paddock.state.entry import Batch, Entry
from paddock.state.machine import StateMachine

Loaded = TypeVar("Loaded")

# How many sets of identities are remembered, and how many bytes of them as the log has them. In
# memory they take some thirty times as much.
KNOWN_MAX: Final = 1000
KNOWN_BYTES_MAX: Final = 1 << 18
# How many digests of earlier states are kept. A batch is proposed before those ahead of it are
# applied: one of them on a file log, several where servers share a log.
DIGESTS_MAX: Final = 64


class TooMuchForThisMachineError(LogError):
    """What is stored takes more than this machine lets us have. Nothing was changed."""


def within_memory(what: str, load: Callable[[], Loaded]) -> Loaded:
    """Load something; raise TooMuchForThisMachineError if it takes more memory than there is."""
    try:
        return load()
    except MemoryError:
        text = (
            f"{what} takes more memory than this machine has, or than a limit on it allows. Nothing"
            " was changed. Start it with more memory"
        )
    except TooMuchForThisMachineError as error:
        text = str(error)
    # Raised here, and anew: the frames of the first one hold what has filled the memory.
    raise TooMuchForThisMachineError(text)


class UnreadableBatchError(LogCorruptError):
    """A batch is as it was written, but not by a version that we understand."""


class OtherStateError(LogCorruptError):
    """A batch shows that the state is not the one that was served."""


class Replay:
    """A state on its way along the log.

    A batch is applied at once with `apply`; or it is taken apart with `each`, and the caller
    applies its entries; or with `open`, and the caller moves `index` as well.
    """

    def __init__(self, machine: StateMachine, index: int) -> None:
        self.machine = machine
        # The last batch that was applied.
        self.index = index
        # What was applied: entries, and their bytes in the log.
        self.entries = 0
        self.size_bytes = 0
        # The last batch whose state was compared with a digest, and how many were.
        self.verified_index = index
        self.verified = 0
        # Identities that were decoded before, by what the log has of them.
        self._known: dict[bytes, Identities] = {}
        # The digests of the last states, by index.
        self._digests: dict[int, int] = {}

    def apply(self, record: Record) -> None:
        """Apply the next batch. Raises LogCorruptError, and then nothing of it was applied.

        Raises TooMuchForThisMachineError, and then the state is of no use any more.
        """
        reason = ""
        try:
            entries = self.open(record)
            self.machine.replay(entries)
            self.index = record.index
            self.entries += len(entries)
            self.size_bytes += len(record.payload)
        except MemoryError:
            reason = "takes more memory than this machine has, or than a limit on it allows"
        except (RecursionError, OSError) as error:
            reason = f"takes more than this machine has ({type(error).__name__}: {error})"
        # Raised here: the error's frames hold what has filled the memory.
        if reason:
            raise TooMuchForThisMachineError(
                f"record {record.index} of the log {reason}. Nothing was changed. Start it with"
                " more memory; or write a copy without this record and all that came behind it:"
                f" paddock fsck DATA --repair COPY --before {record.index}"
            )

    def each(self, record: Record) -> Iterator[Entry]:
        """Yield the entries of the next batch, each to be applied before the next one is asked."""
        entries = self.open(record)
        yield from entries
        self.index = record.index
        self.entries += len(entries)
        self.size_bytes += len(record.payload)

    def open(self, record: Record) -> list[Entry]:
        """Decode the next batch and compare its digest. Raises LogCorruptError."""
        assert record.index == self.index + 1
        self.note_digest()
        known = len(self._known)
        try:
            batch = Batch.decode(record.payload, self._known)
        except DecodeError as error:
            raise UnreadableBatchError(
                f"batch {record.index} of the log cannot be read: {error}; it was written by"
                " another version of Paddock, which can start from this folder"
            ) from error
        expected = self._digests.get(batch.digest_index)
        if expected is not None:
            if expected != batch.digest:
                raise OtherStateError(
                    f"replaying the log gave another state at batch {batch.digest_index} than the"
                    f" one that was served then; keep this folder and report it. {WAY_ON}"
                )
            self.verified_index = batch.digest_index
            self.verified += 1
        if len(self._known) > known:
            self._forget()
        return batch.entries

    def note_digest(self) -> int:
        """Return the digest of the state, and keep it; only between two batches."""
        digest = self._digests[self.index] = self.machine.digest()
        if len(self._digests) > DIGESTS_MAX:
            del self._digests[next(iter(self._digests))]
        return digest

    def _forget(self) -> None:
        """Let go of the identities if they have become many: they cost no more than decoding."""
        if len(self._known) > KNOWN_MAX or sum(map(len, self._known)) > KNOWN_BYTES_MAX:
            self._known.clear()

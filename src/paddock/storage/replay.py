"""Replaying batches of the log on a state, which must give what was served when they were written.

A batch carries the digest of the state that its proposer had, and it is compared here: a state that
differs is not used.

What is kept beside the state does not grow with the log. What the machine that we run on refuses
(memory, most of all) is no answer to an entry, as it may be different the next time: it ends the
replay with an error that says which record it was, and how to go on without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from paddock.log.interface import WAY_ON, LogCorruptError, LogError, Record
from paddock.protocol.jute import DecodeError
from paddock.state.access import Identities
from paddock.state.entry import Batch
from paddock.state.machine import StateMachine

Loaded = TypeVar("Loaded")

# How many sets of identities are remembered, and how many bytes of them as the log has them: enough
# for the clients that write at a time. In memory they take some thirty times as much.
KNOWN_MAX: Final = 1000
KNOWN_BYTES_MAX: Final = 1 << 18


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
    """A state on its way from one index of the log to the last."""

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
        # The digests of the last states: a batch is proposed before the one ahead of it is applied.
        self._digests = {index: machine.digest()}

    def apply(self, record: Record) -> None:
        """Apply the next batch. Raises LogCorruptError, and then nothing of it was applied.

        Raises TooMuchForThisMachineError, and then the state is of no use any more.
        """
        assert record.index == self.index + 1
        reason = ""
        try:
            self._apply(record)
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

    def _apply(self, record: Record) -> None:
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
        for entry in batch.entries:
            self.machine.apply(entry)
        self.index = record.index
        self.entries += len(batch.entries)
        self.size_bytes += len(record.payload)
        self._digests = {
            self.index - 1: self._digests.get(self.index - 1, batch.digest),
            self.index: self.machine.digest(),
        }
        if len(self._known) > known:
            self._forget()

    def _forget(self) -> None:
        """Let go of the identities if they have become many: they cost no more than decoding."""
        if len(self._known) > KNOWN_MAX or sum(map(len, self._known)) > KNOWN_BYTES_MAX:
            self._known.clear()

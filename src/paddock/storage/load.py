"""Load the state that a data folder holds without changing it, also while a server uses it.

It is what a server that starts on the folder now would serve: everything that was acknowledged
before the call, and perhaps a little more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from paddock.log.interface import (
    WAY_ON,
    LogCorruptError,
    LogError,
    Record,
    Torn,
    ends_before_snapshot,
)
from paddock.state.machine import StateMachine
from paddock.state.snapshot import SnapshotError, restore
from paddock.storage.replay import Replay, TooMuchForThisMachineError, within_memory
from paddock.storage.scan import Gap, Segment, scan
from paddock.storage.snapshots import SnapshotDamagedError, read_snapshot, snapshot_files
from paddock.storage.state_swap import generation, is_interrupted

# A server may take snapshots, or restore another state, meanwhile; not so often.
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Loaded:
    """A state, and the index of the last batch in it."""

    machine: StateMachine
    index: int


def load(folder: Path, up_to: int | None = None) -> Loaded:
    """Load the state; with `up_to`, as it was after that batch, which must not be purged.

    Raises LogCorruptError if something of it is damaged or missing, LogError if it cannot be read,
    TooMuchForThisMachineError if there is not enough memory.
    """
    return within_memory(f"{folder}: what is stored", lambda: _load_settled(folder, up_to))


def _load_settled(folder: Path, up_to: int | None) -> Loaded:
    suspected = ""
    for _ in range(_ATTEMPTS):
        before = generation(folder)
        if is_interrupted(folder):
            # The snapshots may be there and their log not: that is neither state.
            raise LogError(
                f"{folder}: a restore is in progress, or was interrupted and a server that starts"
                " finishes it; try again then"
            )
        try:
            loaded = _load(folder, up_to)
        except FileNotFoundError:
            continue
        except TooMuchForThisMachineError:
            raise
        except LogError as error:
            # Beside a server, what was purged between two looks seems to be missing, for once.
            if generation(folder) == before and str(error) == suspected:
                raise
            suspected = str(error)
            continue
        except OSError as error:
            raise LogError(f"{error.filename}: cannot be read: {error.strerror}") from error
        if generation(folder) == before:
            return loaded
    raise LogError(f"{folder}: changed while it was read, time after time")


def _load(folder: Path, up_to: int | None) -> Loaded:
    machine, start = _newest_state(folder / "snapshots", up_to)
    replay = Replay(machine, start)
    end = 0
    torn: Torn | None = None
    for item in scan(folder / "log", start):
        if up_to is not None and replay.index == up_to:
            break
        if isinstance(item, Gap) and not item.is_within(replay.index):
            raise LogCorruptError(f"{item.path}: offset {item.offset}: {item.reason}. {WAY_ON}")
        if isinstance(item, Record) and item.index > replay.index:
            if item.index != replay.index + 1:
                raise LogCorruptError(
                    f"{folder / 'log'}: record {replay.index + 1} is missing, the log goes on with"
                    f" {item.index}. {WAY_ON}"
                )
            replay.apply(item)
        if isinstance(item, Torn):
            torn = item
        if isinstance(item, Segment):
            end = item.last_index
    if up_to is None and end < start:
        where = f"{folder / 'log'}: " if torn is None else f"{torn.path}: offset {torn.offset}: "
        raise LogCorruptError(f"{where}{ends_before_snapshot(end, start, torn)}. {WAY_ON}")
    if up_to is None and end > replay.index:
        # A segment without records promises those before it.
        raise LogCorruptError(
            f"{folder / 'log'}: records {replay.index + 1} to {end} are missing. {WAY_ON}"
        )
    return Loaded(machine, replay.index)


def read_state(path: Path, index: int) -> StateMachine:
    """Build the state of a snapshot. Raises SnapshotDamagedError, SnapshotError, and as `load`."""
    return within_memory(f"{path}: the snapshot", lambda: restore(read_snapshot(path, index)))


def restored_state(path: Path, chunks: Iterator[bytes]) -> StateMachine:
    """Build the state of the snapshot at a path from its chunks. Raises as `load` does."""
    try:
        return within_memory(f"{path}: the snapshot", lambda: restore(chunks))
    except SnapshotError as error:
        raise LogCorruptError(f"{path}: {error}. {WAY_ON}") from error


def _newest_state(folder: Path, up_to: int | None) -> tuple[StateMachine, int]:
    files = snapshot_files(folder) if folder.exists() else []
    for index, path in reversed(files):
        if up_to is not None and index > up_to:
            continue
        try:
            return read_state(path, index), index
        except (SnapshotDamagedError, SnapshotError):
            # An older one does as well, as long as the log reaches back to it.
            continue
    return StateMachine(), 0

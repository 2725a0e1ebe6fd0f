"""State swap: give a data folder another state, atomically. A crash leaves the old or the new one.

    1. Stage: the new state is written to a folder of its own, as a snapshot, and synced.
    2. Commit: a journal, the file `exchange`, names the staged state and the place for the old one.
       After a crash the next process that claims the folder finishes the swap.
    3. Log and snapshots are moved aside, the staged snapshot replaces them, the journal is removed.

A swap that fails is undone in the same way; the journal is renamed first, which needs no space on a
full disk. Every step is idempotent. The old state is moved, never removed, into a data folder.

A log on a disk of its own (`log` is a link) is moved aside on that disk. If the disk is missing,
the swap is refused. The caller has claimed the folder, except to stage.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from paddock.log.file.disk import Disk, write_file
from paddock.log.file.segments import begin_log
from paddock.log.interface import LogError
from paddock.state.machine import StateMachine
from paddock.state.snapshot import Snapshot
from paddock.storage.layout import DataDirectoryError, write_format
from paddock.storage.snapshots import SnapshotWriter, snapshot_files, snapshot_name

_STAGED_PREFIX: Final = "restore-incoming-"
_ASIDE_PREFIX: Final = "replaced-"
_JOURNAL: Final = "exchange"
_UNDOING: Final = "exchange-undone"


@dataclass(frozen=True, slots=True)
class StateSwap:
    """A swap: the names of two places in the data folder."""

    staged: str
    # The place for the old state; None if there is none.
    aside: str | None


def write_state(folder: Path, machine: StateMachine, index: int, disk: Disk) -> Path:
    """Write a state as a snapshot at this index into a folder, durably; return its path."""
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / snapshot_name(index)
    writer = SnapshotWriter(disk, path, index)
    try:
        for chunk in Snapshot(machine).chunks():
            writer.append(chunk)
        writer.commit()
    finally:
        writer.abort()
    return path


def stage(folder: Path, machine: StateMachine, index: int, disk: Disk) -> str:
    """Write a state where a swap can take it from; return the name of the place."""
    try:
        staged = Path(tempfile.mkdtemp(prefix=_STAGED_PREFIX, dir=folder))
        try:
            write_state(staged / "snapshots", machine, index, disk)
            disk.sync_folder(staged)
            disk.sync_folder(folder)
        except BaseException:
            shutil.rmtree(staged, ignore_errors=True)
            raise
    except OSError as error:
        raise LogError(f"{folder}: cannot be written: {error.strerror}") from error
    return staged.name


def discard_staged(folder: Path, name: str) -> None:
    """Remove a staged state."""
    shutil.rmtree(folder / name, ignore_errors=True)


def is_staged(folder: Path, name: str) -> bool:
    """Return whether a state is staged under this name."""
    return _is_name(name, _STAGED_PREFIX) and (folder / name / "snapshots").is_dir()


def holds_data(folder: Path) -> bool:
    """Return whether a data folder has a state that a swap would move aside."""
    return any(os.path.lexists(folder / name) for name in ("format", "log", "snapshots"))


def is_interrupted(folder: Path) -> bool:
    """Return whether a swap was committed and is not finished."""
    return any((folder / name).exists() for name in (_JOURNAL, _UNDOING))


def generation(folder: Path) -> tuple[int, ...]:
    """Return a value that changes when the folder gets another state."""
    parts = [folder / name for name in ("log", "snapshots", _JOURNAL, _UNDOING)]
    return tuple(part.stat().st_ino if part.exists() else 0 for part in parts)


def swap_state(folder: Path, staged: str, now_text: str, disk: Disk) -> StateSwap:
    """Replace the state of the folder by the staged one; `now_text` names the place of the old one.

    Raises LogError if that fails; then the old state is back.
    """
    if not is_staged(folder, staged):
        raise LogError(f"{folder}: what was staged is gone")
    this = StateSwap(staged, _new_name(folder, now_text) if holds_data(folder) else None)
    is_committed = False
    try:
        if this.aside is not None:
            _check_log(folder / "log")
        _write_journal(folder / _JOURNAL, this, disk)
        is_committed = True
        _forward(folder, this, disk)
    except (OSError, LogError) as error:
        if is_committed or is_interrupted(folder):
            undo_swap(folder, this, disk)
        discard_staged(folder, staged)
        raise LogError(f"{folder}: the data cannot be exchanged: {error}") from error
    return this


def undo_swap(folder: Path, done: StateSwap, disk: Disk) -> None:
    """Bring the old state back, and remove the staged one. Raises LogError."""
    try:
        if (folder / _JOURNAL).exists():
            disk.rename(folder / _JOURNAL, folder / _UNDOING)
            disk.sync_folder(folder)
        else:
            _write_journal(folder / _UNDOING, done, disk)
        _back(folder, done, disk)
    except (OSError, LogError) as error:
        raise LogError(
            f"{folder}: the old data cannot be brought back: {error}; the next start tries again"
        ) from error


def finish_swap(folder: Path, disk: Disk) -> None:
    """Finish or undo an interrupted swap, and remove staged states that are left over."""
    try:
        for name, work in ((_UNDOING, _back), (_JOURNAL, _forward)):
            if (folder / name).exists():
                work(folder, _read_journal(folder / name), disk)
    except LogError as error:
        raise DataDirectoryError(f"data folder {folder}: {error}") from error
    for leftover in folder.glob(f"{_STAGED_PREFIX}*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _forward(folder: Path, this: StateSwap, disk: Disk) -> None:
    staged = folder / this.staged
    if this.aside is not None:
        aside = folder / this.aside
        aside.mkdir(mode=0o700, exist_ok=True)
        if (folder / "format").exists() and not (aside / "format").exists():
            write_file(aside / "format", (folder / "format").read_bytes(), disk)
        _move_log_aside(folder / "log", aside / "log", disk)
        if (staged / "snapshots").exists() and not (aside / "snapshots").exists():
            # Created if missing: the folder aside tells `_back` that ours are in place.
            (folder / "snapshots").mkdir(mode=0o700, exist_ok=True)
            _move(folder / "snapshots", aside / "snapshots", disk)
    _move(staged / "snapshots", folder / "snapshots", disk)
    log = folder / "log"
    if log.is_symlink() and this.aside is not None:
        # The disk may have been removed since the log was moved.
        _check_log(folder / this.aside / "log")
    (log.resolve() if log.is_symlink() else log).mkdir(mode=0o700, exist_ok=True)
    begin_log(log, snapshot_files(folder / "snapshots")[-1][0], disk)
    write_format(folder, disk)
    _end(folder, staged, disk)


def _back(folder: Path, this: StateSwap, disk: Disk) -> None:
    staged = folder / this.staged
    aside = None if this.aside is None else folder / this.aside
    if aside is None or (aside / "snapshots").exists():
        staged.mkdir(mode=0o700, exist_ok=True)
        _move(folder / "snapshots", staged / "snapshots", disk)
    if aside is None:
        # There was no state before, and nothing was acknowledged since.
        shutil.rmtree(folder / "log", ignore_errors=True)
        (folder / "format").unlink(missing_ok=True)
    else:
        _move(aside / "snapshots", folder / "snapshots", disk)
        _move_log_back(folder / "log", aside / "log", disk)
        if (aside / "format").exists():
            disk.rename(aside / "format", folder / "format")
        (aside / "format.tmp").unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):
            aside.rmdir()
    _end(folder, staged, disk)


def _end(folder: Path, staged: Path, disk: Disk) -> None:
    disk.sync_folder(folder)
    for name in (_JOURNAL, _UNDOING):
        with contextlib.suppress(FileNotFoundError):
            disk.remove(folder / name)
    disk.sync_folder(folder)
    shutil.rmtree(staged, ignore_errors=True)


def _move(old: Path, new: Path, disk: Disk) -> None:
    """Move a folder, unless it was moved before."""
    if old.exists() and not new.exists():
        disk.rename(old, new)
        disk.sync_folder(new.parent)
        disk.sync_folder(old.parent)


def _check_log(log: Path) -> None:
    """Raise LogError if the log is a link to a missing place."""
    if log.is_symlink() and not log.exists():
        raise LogError(f"its log is in {log.readlink()}, which is not there")


def _place_aside(log: Path, aside: Path) -> Path:
    """Return the place that a log on a disk of its own is moved to, beside it."""
    place = log.resolve()
    return place.with_name(f"{place.name}-{aside.parent.name}")


def _move_log_aside(log: Path, aside: Path, disk: Disk) -> None:
    if os.path.lexists(aside):
        return
    if not log.is_symlink():
        _move(log, aside, disk)
        return
    place_aside = _place_aside(log, aside)
    if not place_aside.exists():
        _check_log(log)
        _move(log.resolve(), place_aside, disk)
    # Last: the link records that the log was moved.
    aside.symlink_to(place_aside)
    disk.sync_folder(aside.parent)


def _move_log_back(log: Path, aside: Path, disk: Disk) -> None:
    # Also if the link that records the move could not be made.
    old = _place_aside(log, aside) if log.is_symlink() else aside
    place = log.resolve() if log.is_symlink() else log
    if old.exists():
        if place.exists():
            # It holds no acknowledged write.
            shutil.rmtree(place)
        _move(old, place, disk)
    _check_log(log)
    if aside.is_symlink():
        aside.unlink()


def _write_journal(path: Path, this: StateSwap, disk: Disk) -> None:
    write_file(path, json.dumps(asdict(this)).encode(), disk)


def _read_journal(path: Path) -> StateSwap:
    try:
        this = StateSwap(**json.loads(path.read_bytes()))
        if not _is_name(this.staged, _STAGED_PREFIX):
            raise ValueError("it names nothing that was staged")
        if this.aside is not None and not _is_name(this.aside, _ASIDE_PREFIX):
            raise ValueError("it does not say where the old data goes")
    except (ValueError, TypeError) as error:
        raise LogError(f"its file {path.name!r} cannot be read: {error}") from error
    return this


def _is_name(value: object, prefix: str) -> bool:
    return isinstance(value, str) and value.startswith(prefix) and "/" not in value


def _new_name(folder: Path, now_text: str) -> str:
    """Return a name that is free here, and beside a log on a disk of its own."""
    log = folder / "log"
    name = f"{_ASIDE_PREFIX}{now_text}"
    number = 1
    while os.path.lexists(folder / name) or (
        log.is_symlink() and os.path.lexists(_place_aside(log, folder / name / "log"))
    ):
        number += 1
        name = f"{_ASIDE_PREFIX}{now_text}-{number}"
    return name

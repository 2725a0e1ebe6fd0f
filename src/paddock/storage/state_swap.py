"""Giving a data folder another state, such that a crash leaves the old one or the new one, whole.

    1. The new state is staged: written to a folder of its own, as a snapshot, and synced.
    2. A file `exchange` says what is staged and where the old state goes. From here on it is done:
       whatever happens, whoever claims the folder next finishes it.
    3. Log and snapshots are moved aside, the staged snapshot takes their place, and the file goes.

An exchange that fails is undone, in the same way: the file gets another name first, which takes no
room on a disk that is full. Every step looks whether it has been done before. The old state is
never removed, only moved, into a folder that is a data folder itself.

A log that is on a disk of its own (`log` is a link then) is moved aside there. If that disk is not
there, nothing is done: a new log beside the old one, or the old one beside new snapshots, would be
taken for what belongs together.

Whoever calls this has claimed the folder, except to stage.
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
class Exchange:
    """What is exchanged for what, by names in the data folder."""

    staged: str
    # None if there was nothing before.
    aside: str | None


def write_state(folder: Path, machine: StateMachine, index: int, disk: Disk) -> Path:
    """Write a state as a snapshot at this index into a folder, durably; give its path."""
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
    """Write a state to where an exchange can take it from; give the name of the place."""
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
    """Remove what was staged and is not wanted any more."""
    shutil.rmtree(folder / name, ignore_errors=True)


def is_staged(folder: Path, name: str) -> bool:
    """Tell whether a state is staged under this name."""
    return _is_name(name, _STAGED_PREFIX) and (folder / name / "snapshots").is_dir()


def holds_data(folder: Path) -> bool:
    """Tell whether there is anything in a data folder that an exchange would move aside."""
    return any(os.path.lexists(folder / name) for name in ("format", "log", "snapshots"))


def is_interrupted(folder: Path) -> bool:
    """Tell whether an exchange was begun and is not finished."""
    return any((folder / name).exists() for name in (_JOURNAL, _UNDOING))


def generation(folder: Path) -> tuple[int, ...]:
    """Give what changes when the folder gets another state, for whoever reads meanwhile."""
    parts = [folder / name for name in ("log", "snapshots", _JOURNAL, _UNDOING)]
    return tuple(part.stat().st_ino if part.exists() else 0 for part in parts)


def exchange(folder: Path, staged: str, now_text: str, disk: Disk) -> Exchange:
    """Give the folder the staged state; `now_text` names the place where the old one goes.

    Raises LogError if that cannot be done; then the old state is back.
    """
    if not is_staged(folder, staged):
        raise LogError(f"{folder}: what was staged is gone")
    this = Exchange(staged, _new_name(folder, now_text) if holds_data(folder) else None)
    try:
        if this.aside is not None:
            _see_log(folder / "log")
        _write_journal(folder / _JOURNAL, this, disk)
    except (OSError, LogError) as error:
        if is_interrupted(folder):
            undo_exchange(folder, this, disk)
        discard_staged(folder, staged)
        raise LogError(f"{folder}: the data cannot be exchanged: {error}") from error
    try:
        _forward(folder, this, disk)
    except (OSError, LogError) as error:
        undo_exchange(folder, this, disk)
        raise LogError(f"{folder}: the data cannot be exchanged: {error}") from error
    return this


def undo_exchange(folder: Path, done: Exchange, disk: Disk) -> None:
    """Bring the old state back; what was staged is removed. Raises LogError."""
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


def finish_exchange(folder: Path, disk: Disk) -> None:
    """Finish an exchange that was interrupted, or undo it, and remove what was staged in vain."""
    try:
        for name, work in ((_UNDOING, _back), (_JOURNAL, _forward)):
            if (folder / name).exists():
                work(folder, _read_journal(folder / name), disk)
    except LogError as error:
        raise DataDirectoryError(f"data folder {folder}: {error}") from error
    for leftover in folder.glob(f"{_STAGED_PREFIX}*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _forward(folder: Path, this: Exchange, disk: Disk) -> None:
    staged = folder / this.staged
    if this.aside is not None:
        aside = folder / this.aside
        aside.mkdir(mode=0o700, exist_ok=True)
        _keep_format(folder, aside, disk)
        _move_log_aside(folder / "log", aside / "log", disk)
        if (staged / "snapshots").exists() and not (aside / "snapshots").exists():
            # Made if need be: what is aside says, to whoever undoes this, that ours are in place.
            (folder / "snapshots").mkdir(mode=0o700, exist_ok=True)
            _move(folder / "snapshots", aside / "snapshots", disk)
    _move(staged / "snapshots", folder / "snapshots", disk)
    log = folder / "log"
    if log.is_symlink() and this.aside is not None:
        # The disk may be gone since the log was moved.
        _see_log(folder / this.aside / "log")
    (log.resolve() if log.is_symlink() else log).mkdir(mode=0o700, exist_ok=True)
    begin_log(log, snapshot_files(folder / "snapshots")[-1][0], disk)
    write_format(folder, disk)
    _end(folder, staged, disk)


def _back(folder: Path, this: Exchange, disk: Disk) -> None:
    staged = folder / this.staged
    aside = None if this.aside is None else folder / this.aside
    if aside is None or (aside / "snapshots").exists():
        staged.mkdir(mode=0o700, exist_ok=True)
        _move(folder / "snapshots", staged / "snapshots", disk)
    if aside is None:
        # There was nothing, and nothing was acknowledged since.
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
    """Move a folder, unless it is gone already or was moved before."""
    if old.exists() and not new.exists():
        disk.rename(old, new)
        disk.sync_folder(new.parent)
        disk.sync_folder(old.parent)


def _see_log(log: Path) -> None:
    """Raise LogError if the log is elsewhere, and that place is not there."""
    if log.is_symlink() and not log.exists():
        raise LogError(f"its log is in {log.readlink()}, which is not there")


def _place_aside(log: Path, aside: Path) -> Path:
    """Give the place beside a log on a disk of its own that it is moved to."""
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
        _see_log(log)
        _move(log.resolve(), place_aside, disk)
    # Comes last: it says that the log was moved.
    aside.symlink_to(place_aside)
    disk.sync_folder(aside.parent)


def _move_log_back(log: Path, aside: Path, disk: Disk) -> None:
    # Also if the link that says that it was moved could not be made any more.
    old = _place_aside(log, aside) if log.is_symlink() else aside
    place = log.resolve() if log.is_symlink() else log
    if old.exists():
        if place.exists():
            # Nothing was acknowledged in it.
            shutil.rmtree(place)
        _move(old, place, disk)
    _see_log(log)
    if aside.is_symlink():
        aside.unlink()


def _keep_format(folder: Path, aside: Path, disk: Disk) -> None:
    old = folder / "format"
    if old.exists() and not (aside / "format").exists():
        write_file(aside / "format", old.read_bytes(), disk)


def _write_journal(path: Path, this: Exchange, disk: Disk) -> None:
    write_file(path, json.dumps(asdict(this)).encode(), disk)


def _read_journal(path: Path) -> Exchange:
    try:
        this = Exchange(**json.loads(path.read_bytes()))
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
    """Choose a name that is free here, and beside a log on a disk of its own."""
    name = f"{_ASIDE_PREFIX}{now_text}"
    number = 1
    while _is_taken(folder, name):
        number += 1
        name = f"{_ASIDE_PREFIX}{now_text}-{number}"
    return name


def _is_taken(folder: Path, name: str) -> bool:
    if os.path.lexists(folder / name):
        return True
    log = folder / "log"
    return log.is_symlink() and os.path.lexists(_place_aside(log, folder / name / "log"))

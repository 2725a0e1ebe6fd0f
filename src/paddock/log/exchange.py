"""Giving a data folder another state, such that a crash leaves the old one or the new one, whole.

    1. The new state is staged: written to a folder of its own, as a snapshot, and synced.
    2. A file `exchange` says what is staged and where the old state goes. From here on it is done:
       whatever happens, whoever claims the folder next finishes it.
    3. Log and snapshots are moved aside, the staged snapshot takes their place, and the file goes.

An exchange that fails is undone, in the same way: a file says so first. Every step looks whether it
has been done before. The old state is never removed, only moved, into a folder that is a data
folder itself. A log that is on a disk of its own (`log` is a link then) is moved aside there.

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

from paddock.log.disk import Disk
from paddock.log.interface import LogError
from paddock.log.layout import DataDirectoryError, write_file, write_format
from paddock.log.snapshots import SnapshotWriter, snapshot_name
from paddock.state.machine import StateMachine
from paddock.state.snapshot import Snapshot

_STAGED_PREFIX: Final = "restore-incoming-"
_ASIDE_PREFIX: Final = "replaced-"
_JOURNAL: Final = "exchange"


@dataclass(frozen=True, slots=True)
class Exchange:
    """What is exchanged for what, by names in the data folder."""

    staged: str
    # None if there was nothing before.
    aside: str | None
    undo: bool = False


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
            _give_to_owner(staged, folder)
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
    is_name = name.startswith(_STAGED_PREFIX) and "/" not in name
    return is_name and (folder / name / "snapshots").is_dir()


def holds_data(folder: Path) -> bool:
    """Tell whether there is anything in a data folder that an exchange would move aside."""
    return any(os.path.lexists(folder / name) for name in ("format", "log", "snapshots"))


def is_interrupted(folder: Path) -> bool:
    """Tell whether an exchange was begun and is not finished."""
    return (folder / _JOURNAL).exists()


def generation(folder: Path) -> tuple[int, ...]:
    """Give what changes when the folder gets another state, for whoever reads meanwhile."""
    parts = [folder / name for name in ("log", "snapshots", _JOURNAL)]
    return tuple(part.stat().st_ino if part.exists() else 0 for part in parts)


def exchange(folder: Path, staged: str, now_text: str, disk: Disk) -> Exchange:
    """Give the folder the staged state; `now_text` names the place where the old one goes.

    Raises LogError if that cannot be done; then the old state is back.
    """
    assert is_staged(folder, staged)
    this = Exchange(staged, _new_name(folder, now_text) if holds_data(folder) else None)
    try:
        _write_journal(folder, this, disk)
        _forward(folder, this, disk)
    except OSError as error:
        undo_exchange(folder, this, disk)
        raise LogError(f"{folder}: the data cannot be exchanged: {error}") from error
    return this


def undo_exchange(folder: Path, done: Exchange, disk: Disk) -> None:
    """Bring the old state back; what was staged is removed. Raises LogError."""
    this = Exchange(done.staged, done.aside, undo=True)
    try:
        _write_journal(folder, this, disk)
        _back(folder, this, disk)
    except OSError as error:
        raise LogError(
            f"{folder}: the old data cannot be brought back: {error}; the next start tries again"
        ) from error


def finish_exchange(folder: Path, disk: Disk) -> None:
    """Finish an exchange that was interrupted, or undo it, and remove what was staged in vain."""
    try:
        written = (folder / _JOURNAL).read_bytes()
    except FileNotFoundError:
        written = None
    if written is not None:
        try:
            this = Exchange(**json.loads(written))
        except (ValueError, TypeError) as error:
            raise DataDirectoryError(
                f"data folder {folder}: its file {_JOURNAL!r} cannot be read: {error}"
            ) from error
        if this.undo:
            _back(folder, this, disk)
        else:
            _forward(folder, this, disk)
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
        _give_to_owner(aside, folder)
    _move(staged / "snapshots", folder / "snapshots", disk)
    log = folder / "log"
    (log.resolve() if log.is_symlink() else log).mkdir(mode=0o700, exist_ok=True)
    write_format(folder, disk)
    for name in ("log", "format", "lock"):
        _give_to_owner(folder / name, folder)
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
        _move_log_back(aside / "log", folder / "log", disk)
        if (aside / "format").exists():
            disk.rename(aside / "format", folder / "format")
        (aside / "format.tmp").unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):
            aside.rmdir()
    _end(folder, staged, disk)


def _end(folder: Path, staged: Path, disk: Disk) -> None:
    disk.sync_folder(folder)
    with contextlib.suppress(FileNotFoundError):
        disk.remove(folder / _JOURNAL)
    disk.sync_folder(folder)
    shutil.rmtree(staged, ignore_errors=True)


def _move(old: Path, new: Path, disk: Disk) -> None:
    """Move a folder, unless it is gone already or was moved before."""
    if old.exists() and not new.exists():
        disk.rename(old, new)
        disk.sync_folder(new.parent)
        disk.sync_folder(old.parent)


def _move_log_aside(log: Path, aside: Path, disk: Disk) -> None:
    if os.path.lexists(aside):
        return
    if not log.is_symlink():
        _move(log, aside, disk)
        return
    place = log.resolve()
    place_aside = place.with_name(f"{place.name}-{aside.parent.name}")
    _move(place, place_aside, disk)
    # Comes last: it says that the log was moved.
    aside.symlink_to(place_aside)
    disk.sync_folder(aside.parent)


def _move_log_back(aside: Path, log: Path, disk: Disk) -> None:
    if not os.path.lexists(aside):
        return
    old = aside.readlink() if aside.is_symlink() else aside
    place = log.resolve() if log.is_symlink() else log
    if old.exists():
        # Nothing was acknowledged in it.
        shutil.rmtree(place, ignore_errors=True)
        _move(old, place, disk)
    if aside.is_symlink():
        aside.unlink()


def _keep_format(folder: Path, aside: Path, disk: Disk) -> None:
    old = folder / "format"
    if old.exists() and not (aside / "format").exists():
        write_file(aside / "format", old.read_bytes(), disk)


def _write_journal(folder: Path, this: Exchange, disk: Disk) -> None:
    write_file(folder / _JOURNAL, json.dumps(asdict(this)).encode(), disk)


def _new_name(folder: Path, now_text: str) -> str:
    name = f"{_ASIDE_PREFIX}{now_text}"
    number = 1
    while (folder / name).exists():
        number += 1
        name = f"{_ASIDE_PREFIX}{now_text}-{number}"
    return name


def _give_to_owner(path: Path, folder: Path) -> None:
    """Let what root has written belong to whom the data folder belongs: the server reads it."""
    if os.geteuid() != 0 or not os.path.lexists(path):
        return
    owner = folder.stat()
    # A link leads to the log, if that is elsewhere.
    for each in {path, path.resolve(), *path.rglob("*")}:
        os.chown(each, owner.st_uid, owner.st_gid, follow_symlinks=False)

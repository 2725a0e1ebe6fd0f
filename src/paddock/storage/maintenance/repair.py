"""Repair a data folder: write a copy with everything that can be trusted.

The copy holds one snapshot: the newest usable one, with every record after it applied, up to the
first that is missing or not wanted. If that is not everything that was acknowledged, the copy
starts a new epoch (`paddock.storage.epoch`). One state is in memory at a time.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from paddock.log.file.disk import Disk
from paddock.log.file.segments import begin_log
from paddock.log.interface import LogError
from paddock.storage.data_directory import DataDirectory
from paddock.storage.epoch import begin_epoch
from paddock.storage.layout import DataDirectoryError, kept_free
from paddock.storage.load import load
from paddock.storage.maintenance.check import check
from paddock.storage.maintenance.report import Report, StateFound
from paddock.storage.state_swap import write_state


@dataclass(frozen=True, slots=True)
class Repaired:
    """The result of a repair."""

    report: Report
    # The state in the copy, before a new epoch.
    saved: StateFound
    # The zxid that the copy continues from.
    zxid: int


def repair(folder: Path, copy: Path, before: int | None = None) -> Repaired:
    """Write what can be trusted of a data folder to a new one; the old one is only read.

    With `before`, only the records before that one. Raises LogError or DataDirectoryError; then
    there is no copy.
    """
    for ours in (folder, folder / "log"):
        if copy.resolve().is_relative_to(ours.resolve()):
            raise DataDirectoryError(f"{copy}: lies in {ours}, which is not to be touched")
    if copy.exists() and (not copy.is_dir() or any(copy.iterdir())):
        raise DataDirectoryError(f"{copy}: exists already and is not an empty folder")
    with kept_free(folder) as user:
        if user is not None:
            raise DataDirectoryError(f"{folder}: in use by a server; stop it first")
        report = check(folder, before)
        if report.state is None:
            raise LogError(f"{folder}: cannot be repaired: {report.findings[0].what}")
        if before is not None:
            _check_before(report, report.state, before)
        if report.loses and not (report.state.index or report.newest):
            raise LogError(
                f"{folder}: nothing can be saved: no snapshot can be used, and the log cannot from"
                " its beginning"
            )
        loaded = load(folder, report.state.index)
    saved = StateFound.of(loaded.machine, loaded.index)
    if report.loses:
        begin_epoch(loaded.machine)
    zxid = loaded.machine.zxid
    try:
        with DataDirectory(copy) as made:
            begin_log(made.log_path, loaded.index, Disk())
            write_state(made.snapshots_path, loaded.machine, loaded.index, Disk())
        del loaded
        again = check(copy)
        if again.is_damaged or again.state is None or again.state.digest != saved.digest:
            raise LogError(f"{copy}: was not written correctly: check the disk")
    except BaseException as error:
        shutil.rmtree(copy, ignore_errors=True)
        if isinstance(error, OSError):
            raise LogError(f"{copy}: cannot be written: {error.strerror}") from error
        raise
    return Repaired(report, saved, zxid)


def _check_before(report: Report, state: StateFound, before: int) -> None:
    """Raise LogError if there is no such record, or the state before it cannot be built."""
    if before > report.last_index:
        raise LogError(
            f"{report.folder}: the last record is {report.last_index}, so nothing is left out"
            f" before record {before}"
        )
    is_damaged = any(one.is_damage and one.kind != "missing-records" for one in report.findings)
    if state.index < before - 1 and not is_damaged:
        raise LogError(
            f"{report.folder}: what came before record {before} is not there any more: no snapshot"
            " before it can be used that the log goes on from"
        )

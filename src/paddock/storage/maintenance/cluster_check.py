"""Check the data folder of a server that shares its log: its cache, and its history.

Nothing that a service needs is there: etcd has it. So damage costs history, and a slower start.
What the server has left out is a gap, and no damage. Nothing is changed, and a server may use the
folder meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from paddock.log.interface import LogError, Record, Torn
from paddock.state.snapshot import SnapshotError
from paddock.storage.cluster.history import FOLDER, read_history
from paddock.storage.cluster.shared_replay import SharedReplay
from paddock.storage.data_directory import CACHE
from paddock.storage.load import read_state
from paddock.storage.maintenance.reach import Reach, Reached
from paddock.storage.maintenance.report import Finding, SnapshotFound, StateFound
from paddock.storage.replay import within_memory
from paddock.storage.scan import Gap, Segment, user_of
from paddock.storage.snapshots import SnapshotDamagedError, snapshot_files

# A running server may remove files during a check, which then starts again.
_ATTEMPTS: Final = 5
_ADVICE: Final = "check the disk. The service needs nothing of this folder: etcd has its state"


@dataclass(slots=True)
class ClusterReport:
    """The result of a check."""

    folder: Path
    # The process that uses the folder, 0 if unknown; None if none does.
    user: int | None = None
    snapshots: list[SnapshotFound] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    # Which states can be rebuilt. None if none can.
    history: Reach | None = None
    # Whole records behind the last of them, which no snapshot goes on to.
    unusable: int = 0

    @property
    def is_damaged(self) -> bool:
        return any(finding.is_damage for finding in self.findings)


def check_cluster_folder(folder: Path) -> ClusterReport:
    """Check a data folder.

    Raises LogError if it cannot be read, TooMuchForThisMachineError if there is not enough memory.
    """
    return within_memory(f"{folder}: what is stored", lambda: _check_settled(folder))


def _check_settled(folder: Path) -> ClusterReport:
    suspected: list[Finding] | None = None
    for _ in range(_ATTEMPTS):
        user = user_of(folder)
        try:
            report = _check(folder, user)
        except FileNotFoundError:
            # Purged by a server meanwhile.
            continue
        except OSError as error:
            raise LogError(f"{error.filename}: cannot be read: {error.strerror}") from error
        # Beside a server, a write between two reads looks like damage, once.
        if not report.is_damaged or user is None or report.findings == suspected:
            return report
        suspected = report.findings
    raise LogError(f"{folder}: changed while it was read, time after time")


def _check(folder: Path, user: int | None) -> ClusterReport:
    report = ClusterReport(folder, user)
    replay = _check_snapshots(report)
    reached = Reached()
    is_broken = False
    history = folder / CACHE / FOLDER
    for item in read_history(history) if history.exists() else ():
        match item:
            case Record():
                reached.take(item.index)
                if replay is None or item.index > replay.roster.index:
                    if replay is not None and not is_broken:
                        is_broken = not _replayed(report, replay, item, history)
                    report.unusable += replay is None or is_broken
            case Gap() if not item.is_left_out:
                last = f" to {item.last}" if item.last is not None else " on"
                what = f"{item.reason}: history has no records from {item.first}{last}"
                _find(report, "damaged-history", item.path, what, item.offset)
            case Torn() if user is None:
                what = f"{item.size_bytes} bytes of a write that was interrupted"
                report.findings.append(
                    Finding("torn-tail", False, item.path, item.offset, what, "nothing")
                )
            case Segment():
                report.segments.append(item)
    if replay is not None:
        begins = [one.state.moment for one in report.snapshots if one.state is not None]
        end = StateFound.of(replay.machine, replay.roster.index)
        report.history = reached.reach(begins, end.moment)
    return report


def _check_snapshots(report: ClusterReport) -> SharedReplay | None:
    """Restore every snapshot; return the newest usable one, to follow the log from there."""
    newest: SharedReplay | None = None
    for index, path in snapshot_files(report.folder / CACHE):
        # One state at a time.
        state = newest = None
        try:
            machine = read_state(path, index)
            if machine.roster is None or machine.roster.index != index:
                raise SnapshotError("it is not the state of a shared log at this index")
            state = StateFound.of(machine, index)
            newest = SharedReplay(machine)
        except (SnapshotDamagedError, SnapshotError) as error:
            _find(report, "damaged-snapshot", path, f"the snapshot cannot be used: {error}")
        report.snapshots.append(SnapshotFound(path, index, state))
    usable = [one for one in report.snapshots if one.state is not None]
    if newest is None and usable:
        newest = SharedReplay(read_state(usable[-1].path, usable[-1].index))
    return newest


def _replayed(report: ClusterReport, replay: SharedReplay, record: Record, folder: Path) -> bool:
    """Apply a record; return whether that was possible."""
    if record.index != replay.roster.index + 1:
        # A gap, which is told.
        return False
    try:
        replay.apply(record)
    except LogError as error:
        _find(report, "other-state", folder, f"history cannot be followed: {error}")
        return False
    return True


def _find(
    report: ClusterReport, kind: str, path: Path, what: str, offset: int | None = None
) -> None:
    report.findings.append(Finding(kind, True, path, offset, what, _ADVICE))

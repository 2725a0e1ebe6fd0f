"""Check a data folder: everything that a server relies on, with advice where it is damaged.

Nothing is changed, and a server may use the folder meanwhile. One segment of the log and one state
are in memory at a time: that of each snapshot, then that of the newest with the log replayed, whose
digests are compared with those in the log.

Damage is what no server leaves behind. A torn tail is no damage, nor is a file that a crash left
half written or half removed; both are reported all the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from paddock.log.interface import LogError, Record, Torn, ends_before_snapshot
from paddock.state.machine import StateMachine
from paddock.state.snapshot import SnapshotError
from paddock.storage.layout import FORMAT
from paddock.storage.load import load, read_state
from paddock.storage.maintenance.reach import Moment, Reached, first_time_ms
from paddock.storage.maintenance.report import Finding, Report, SnapshotFound, StateFound
from paddock.storage.replay import OtherStateError, Replay, UnreadableBatchError, within_memory
from paddock.storage.scan import Gap, Segment, scan, user_of
from paddock.storage.snapshots import SnapshotDamagedError, snapshot_files
from paddock.storage.state_swap import generation, is_interrupted

# A running server may remove files during a check, which then starts again.
_ATTEMPTS: Final = 5

# The kinds of findings that are no damage.
_NOTES: Final = frozenset({"interrupted-restore", "leftover", "torn-tail"})
_REPAIR: Final = (
    "paddock fsck DATA --repair COPY writes a copy without the damage, and says what it loses;"
    " paddock restore brings a backup back"
)


def check(folder: Path, before: int | None = None) -> Report:
    """Check a data folder; with `before`, apply only the records before that one.

    Raises LogError if it cannot be read, TooMuchForThisMachineError if there is not enough memory.
    """
    return within_memory(f"{folder}: what is stored", lambda: _check_settled(folder, before))


def _check_settled(folder: Path, before: int | None) -> Report:
    suspected: list[Finding] | None = None
    for _ in range(_ATTEMPTS):
        seen = user_of(folder), generation(folder)
        try:
            report = _Check(folder, seen[0], before).run()
        except FileNotFoundError:
            # Purged by a server meanwhile.
            continue
        except LogError:
            if generation(folder) == seen[1]:
                raise
            continue
        except OSError as error:
            raise LogError(f"{error.filename}: cannot be read: {error.strerror}") from error
        if not report.is_damaged:
            return report
        if (user_of(folder), generation(folder)) == seen:
            # Beside a server, a purge between two reads looks like damage, once.
            if seen[0] is None or report.findings == suspected:
                return report
            suspected = report.findings
    raise LogError(f"{folder}: changed while it was read, time after time")


class _Check:
    """One check of a folder."""

    def __init__(self, folder: Path, user: int | None, before: int | None) -> None:
        self._before = before
        self._log = folder / "log"
        self._snapshots = folder / "snapshots"
        self._report = Report(folder, user)
        # Whether the replayed state differs from the one that was served.
        self._is_other_state = False
        self._reached = Reached()
        # The time of the first record of all, if the log reaches back to it.
        self._first_ms: int | None = None

    def run(self) -> Report:
        report = self._report
        if not self._check_format():
            return report
        if is_interrupted(report.folder):
            if report.user is not None:
                raise LogError(f"{report.folder}: a restore is in progress; check again after it")
            self._find(
                "interrupted-restore",
                report.folder,
                "a restore was interrupted when it was all but done",
                "a server that starts on the folder finishes it first; then check again",
            )
            return report
        machine, index = self._check_snapshots()
        self._check_log(Replay(machine, index), index)
        self._look_for_leftovers()
        self._look_back()
        return report

    def _look_back(self) -> None:
        """Find out which states can be rebuilt."""
        report = self._report
        if report.state is not None:
            begins = [one.state.moment for one in report.snapshots if one.state is not None]
            if self._first_ms is not None and (not begins or begins[0].index > 0):
                begins.insert(0, Moment(0, 0, self._first_ms))
            report.history = self._reached.reach(begins, report.state.moment)

    def _find(
        self, kind: str, file: Path, what: str, advice: str, offset: int | None = None
    ) -> None:
        is_damage = kind not in _NOTES
        self._report.findings.append(Finding(kind, is_damage, file, offset, what, advice))

    def _check_format(self) -> bool:
        """Check the version of the layout; return whether it is known."""
        path = self._report.folder / "format"
        try:
            found = path.read_bytes()
        except FileNotFoundError:
            if not (self._log.exists() or self._snapshots.exists()):
                raise LogError(f"{self._report.folder}: holds no data of Paddock") from None
            self._find(
                "format",
                path,
                "the file that names the layout is missing; a server refuses the folder",
                f"if the folder is Paddock's, write the line {FORMAT.decode().strip()!r} to it",
            )
            return True
        self._report.format = found[:40].decode("utf-8", "replace").strip()
        if found != FORMAT:
            self._find(
                "format",
                path,
                f"the layout is {self._report.format!r}, and this version of Paddock knows"
                f" {FORMAT.decode().strip()!r}; nothing else was checked",
                "use the version of Paddock that wrote it, or if the file is damaged write that"
                " line to it",
                0,
            )
        return found == FORMAT

    def _check_snapshots(self) -> tuple[StateMachine, int]:
        """Restore every snapshot; return the state and index of the newest usable one."""
        machine, last = None, 0
        files = snapshot_files(self._snapshots) if self._snapshots.exists() else []
        for index, path in files:
            # One state at a time.
            machine = None
            state = None
            if self._before is not None and index >= self._before:
                self._report.last_index = index
                continue
            try:
                machine = read_state(path, index)
                state = StateFound.of(machine, index)
                last = index
            except SnapshotDamagedError as error:
                self._snapshot_damaged(path, error.offset, error.reason)
            except SnapshotError as error:
                self._snapshot_damaged(path, None, str(error))
            self._report.snapshots.append(SnapshotFound(path, index, state))
        if machine is None:
            # The newest is damaged, and no older state was kept.
            newest = self._report.newest
            if newest is None:
                return StateMachine(), 0
            machine = read_state(newest.path, newest.index)
        return machine, last

    def _snapshot_damaged(self, path: Path, offset: int | None, reason: str) -> None:
        self._find(
            "damaged-snapshot",
            path,
            f"the snapshot cannot be used: {reason}",
            "an older snapshot and the log do as well, if nothing else is said here; a server"
            " passes over it, and its next snapshots replace it",
            offset,
        )

    def _check_log(self, replay: Replay, start: int) -> None:
        """Scan the log, and replay the records after the newest snapshot."""
        report = self._report
        # The first gap after the snapshot ends the replay; later records are only counted.
        broken = False
        end = 0
        torn: Torn | None = None
        # The last index before the last segment, if that is empty.
        promised = 0
        report.last_index = max(report.last_index, start)
        for item in scan(self._log):
            match item:
                case Record():
                    end = item.index
                    self._reached.take(item.index)
                    if item.index == 1:
                        self._first_ms = first_time_ms(item.payload)
                    if item.index <= replay.index:
                        continue
                    if self._before is not None and item.index >= self._before:
                        broken = True
                        report.left_out += 1
                        continue
                    if not broken and item.index != replay.index + 1:
                        broken = True
                        self._beginning_missing(replay.index, item.index)
                    if not broken:
                        broken = not self._replay(replay, item)
                    report.unusable += broken
                case Gap():
                    within = item.is_within(replay.index)
                    self._gap(item, start, is_harmless=within)
                    broken = broken or not within
                    if item.last is None:
                        report.last_index = max(report.last_index, item.first)
                    else:
                        end = max(end, item.last)
                case Torn():
                    torn = item
                case Segment():
                    report.segments.append(item)
                    end = max(end, item.last_index)
                    promised = item.last_index
        report.last_index = max(report.last_index, end, replay.index)
        is_short = not broken and end < start
        if torn is not None:
            self._torn(torn, end, start)
        if not broken and promised > replay.index:
            broken = True
            self._beginning_missing(replay.index, promised + 1)
        report.loses = broken or is_short
        report.digests = replay.verified
        if is_short and torn is None:
            self._find(
                "missing-records",
                self._log,
                f"the log ends with record {end}, but there is a snapshot at {start}: later"
                " segments are missing. The state of the snapshot is safe; any later records are"
                " lost, and a server refuses the folder",
                f"put the missing files back, if you have them; or {_REPAIR}",
            )
        if self._is_other_state:
            good = load(report.folder, replay.verified_index)
            report.state = StateFound.of(good.machine, good.index)
        else:
            report.state = StateFound.of(replay.machine, replay.index)

    def _replay(self, replay: Replay, record: Record) -> bool:
        """Apply a record; return whether the state is the one that was served."""
        try:
            replay.apply(record)
        except OtherStateError as error:
            self._is_other_state = True
            self._find("other-state", self._log, str(error), _REPAIR)
        except UnreadableBatchError as error:
            advice = "use the version of Paddock that wrote it"
            self._find("unreadable-batch", self._log, str(error), advice)
        else:
            return True
        return False

    def _beginning_missing(self, after: int, first: int) -> None:
        start = f"the snapshot at {after}" if after else "no snapshot that can be used"
        self._find(
            "missing-records",
            self._log,
            f"the log begins with record {first}, and there is {start} to start from: records"
            f" {after + 1} to {first - 1} are missing, and a server refuses the folder",
            _REPAIR,
        )

    def _gap(self, gap: Gap, start: int, *, is_harmless: bool) -> None:
        if gap.last is not None and gap.last < gap.first:
            self._find(
                "damaged-header",
                gap.path,
                f"{gap.reason}; its records are whole, but a server refuses the folder",
                "paddock fsck DATA --repair COPY writes a copy that has them",
                gap.offset,
            )
            return
        if gap.last is None:
            missing = f"records from {gap.first} on are missing"
        elif gap.last == gap.first:
            missing = f"record {gap.first} is missing"
        else:
            missing = f"records {gap.first} to {gap.last} are missing"
        if is_harmless:
            what = (
                f"{gap.reason}: {missing}, but the snapshot at {start} holds them: nothing lost but"
                " history"
            )
            advice = (
                "check the disk; if a server refuses the folder,"
                " paddock fsck DATA --repair COPY writes a copy that it accepts"
            )
        else:
            what = (
                f"{gap.reason}: {missing}. Later records cannot be used, since they build on"
                " the missing ones, and a server refuses the folder"
            )
            advice = _REPAIR
        self._find("damaged-record", gap.path, what, advice, gap.offset)

    def _torn(self, torn: Torn, end: int, start: int) -> None:
        """Report a torn tail after the record `end`; the newest snapshot is `start`."""
        if end < start:
            self._find(
                "damaged-record",
                torn.path,
                f"{ends_before_snapshot(end, start, torn)}. The state of the snapshot is safe;"
                " any later records are lost, and a server refuses the folder",
                _REPAIR,
                torn.offset,
            )
        elif self._report.user is None:
            self._find(
                "torn-tail",
                torn.path,
                f"torn tail: {torn.size_bytes} bytes after record {end}, the last whole one, of an"
                " interrupted write, which was never acknowledged. If there was no crash, it may be"
                " the last acknowledged write, damaged since",
                "nothing after a crash: the next start cuts it, and logs that",
                torn.offset,
            )

    def _look_for_leftovers(self) -> None:
        if self._report.user is not None:
            return
        for folder in (self._log, self._snapshots):
            for path in sorted(folder.glob("*.tmp")) if folder.exists() else []:
                self._find(
                    "leftover",
                    path,
                    "left half made or half removed by a server that was killed; nothing needs it",
                    "nothing: the next start removes it",
                )

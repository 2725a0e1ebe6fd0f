"""Checking the data folder of a server that shares its log."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paddock.log.file.disk import Disk
from paddock.log.file.segments import segment_files
from paddock.log.interface import LogError, Record
from paddock.state.entry import JOIN, RULES, SYNC, Batch, Entry
from paddock.state.machine import StateMachine
from paddock.state.roster_bodies import JoinRequest
from paddock.storage.cluster.history import EncodedRecord, HistoryFiles
from paddock.storage.cluster.shared_replay import SharedReplay
from paddock.storage.layout import Claim
from paddock.storage.maintenance import cluster_check as checking
from paddock.storage.maintenance.cluster_check import ClusterReport, check_cluster_folder
from paddock.storage.snapshots import snapshot_files
from paddock.storage.state_swap import write_state
from tests.unit.log.helpers import flip

BOOT = b"boot-one"
LAST = 12


def record(index: int) -> Record:
    entry = Entry(SYNC, b"", time_ms=1000 * index)
    if index == 1:
        join = JoinRequest(0, RULES, "one:1", "", "1", b"", 0)
        entry = Entry(JOIN, join.encode(), time_ms=1000)
    return Record(index, Batch([entry], -1, 0).encode(), BOOT, index - 1, 10 * index)


def build(folder: Path, *left_out: int, runs: tuple[int, ...] = (8,)) -> Path:
    """Write snapshots at 3, 6 and 9, and the records up to 12; a run ends at each of `runs`."""
    machine = StateMachine()
    machine.share(bytes(16))
    replay = SharedReplay(machine)
    (folder / "cluster").mkdir(parents=True)
    files = HistoryFiles(folder / "cluster" / "history", 1 << 30)
    for index in range(1, LAST + 1):
        replay.apply(record(index))
        if index not in left_out:
            files.append([EncodedRecord(record(index))])
        if index in (3, 6, 9):
            write_state(folder / "cluster", machine, index, Disk())
        if index in runs:
            files.close()
    files.close()
    return folder


def kinds(report: ClusterReport) -> list[tuple[str, bool]]:
    return [(one.kind, one.is_damage) for one in report.findings]


def gaps(report: ClusterReport) -> list[tuple[int, int]]:
    assert report.history is not None
    return [(gap.after, gap.resumes.index) for gap in report.history.gaps]


def test_a_whole_history_reaches_from_its_first_snapshot_to_its_last_record(
    tmp_path: Path,
) -> None:
    report = check_cluster_folder(build(tmp_path / "data"))
    assert report.findings == []
    assert report.history is not None
    begin, end = report.history.begin, report.history.end
    assert [(one.index, one.time_ms) for one in (begin, end)] == [(3, 3000), (12, 12_000)]
    assert gaps(report) == []
    assert [one.records for one in report.segments] == [8, 4]
    assert [one.index for one in report.snapshots] == [3, 6, 9]
    assert report.unusable == 0


def test_what_was_left_out_is_a_gap_and_no_damage(tmp_path: Path) -> None:
    report = check_cluster_folder(build(tmp_path / "data", 5))
    assert report.findings == []
    assert gaps(report) == [(4, 6)]


def test_records_behind_the_last_gap_wait_for_a_snapshot(tmp_path: Path) -> None:
    report = check_cluster_folder(build(tmp_path / "data", 11))
    assert report.findings == []
    assert report.history is not None
    assert (report.history.end.index, report.unusable) == (10, 1)


def test_damage_costs_history_alone(tmp_path: Path) -> None:
    folder = build(tmp_path / "data")
    path = segment_files(folder / "cluster" / "history")[0][1]
    flip(path, path.stat().st_size // 2)
    report = check_cluster_folder(folder)
    assert kinds(report) == [("damaged-history", True)]
    assert "etcd has its state" in report.findings[0].advice
    assert len(gaps(report)) == 1


def test_a_damaged_snapshot_is_passed_over(tmp_path: Path) -> None:
    folder = build(tmp_path / "data")
    for _, path in snapshot_files(folder / "cluster")[1:]:
        flip(path, 40)
    report = check_cluster_folder(folder)
    assert kinds(report) == [("damaged-snapshot", True)] * 2
    assert report.history is not None
    assert (report.history.begin.index, report.history.end.index) == (3, LAST)


def test_the_state_of_a_single_server_is_no_snapshot_here(tmp_path: Path) -> None:
    folder = build(tmp_path / "data")
    write_state(folder / "cluster", StateMachine(), 11, Disk())
    report = check_cluster_folder(folder)
    assert kinds(report) == [("damaged-snapshot", True)]


def test_a_torn_tail_is_a_note(tmp_path: Path) -> None:
    folder = build(tmp_path / "data")
    path = segment_files(folder / "cluster" / "history")[-1][1]
    # A record that has not arrived whole.
    data = path.read_bytes()
    path.write_bytes(data[:-20] + bytes(200))
    report = check_cluster_folder(folder)
    assert kinds(report) == [("torn-tail", False)]
    assert report.history is not None
    assert report.history.end.index == LAST - 1


def test_records_that_do_not_follow_from_the_snapshot_are_found(tmp_path: Path) -> None:
    folder = build(tmp_path / "data", 12)
    files = HistoryFiles(folder / "cluster" / "history", 1 << 30)
    files.append([EncodedRecord(Record(12, b"no batch", BOOT, 11, 120))])
    files.close()
    report = check_cluster_folder(folder)
    assert kinds(report) == [("other-state", True)]
    assert "batch 12" in report.findings[0].what


def test_without_a_snapshot_there_is_nothing_to_begin_with(tmp_path: Path) -> None:
    folder = build(tmp_path / "data")
    for _, path in snapshot_files(folder / "cluster"):
        path.unlink()
    report = check_cluster_folder(folder)
    assert (report.history, report.unusable, report.findings) == (None, LAST, [])


def test_a_folder_without_history_is_fine(tmp_path: Path) -> None:
    (tmp_path / "cluster").mkdir()
    report = check_cluster_folder(tmp_path)
    assert (report.history, report.findings, report.segments) == (None, [], [])


def test_what_a_server_removes_between_two_looks_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = build(tmp_path / "data")
    looks = 0

    def files(path: Path) -> list[tuple[int, Path]]:
        nonlocal looks
        looks += 1
        found = snapshot_files(path)
        if looks == 1:
            os.unlink(found[0][1])
        return found

    monkeypatch.setattr(checking, "snapshot_files", files)
    with Claim(folder):
        report = check_cluster_folder(folder)
    assert report.user == os.getpid()
    assert [one.index for one in report.snapshots] == [6, 9]


def test_a_folder_that_changes_all_the_time_is_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = build(tmp_path / "data")

    def gone(path: Path) -> list[tuple[int, Path]]:
        raise FileNotFoundError

    monkeypatch.setattr(checking, "snapshot_files", gone)
    with pytest.raises(LogError, match="time after time"):
        check_cluster_folder(folder)

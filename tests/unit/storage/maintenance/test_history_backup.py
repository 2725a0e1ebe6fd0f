"""The history of a data folder, as a part of a backup."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddock.log.interface import LogError
from paddock.storage.load import load
from paddock.storage.maintenance.check import check
from paddock.storage.maintenance.cluster_check import check_cluster_folder
from paddock.storage.maintenance.history_backup import PREFIX, history_files, is_history
from paddock.storage.snapshots import snapshot_files
from tests.unit.log.folders import FolderBuilder, names, paths
from tests.unit.log.helpers import flip, segments
from tests.unit.storage.maintenance.test_cluster_check import build


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with snapshots after records 5 and 9, and a whole log of 13 records."""
    folder = tmp_path / "data"
    with FolderBuilder(folder) as builder:
        builder.create(*names(4))
        builder.snapshot()
        builder.create(*names(4, 4))
        builder.snapshot()
        builder.create(*names(4, 8))
    return folder


def unpacked(folder: Path, index: int, target: Path) -> Path:
    """Write the history of a folder to another one."""
    for one in history_files(folder, index):
        assert is_history(one.name)
        path = target / one.name.removeprefix(PREFIX)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(one.pieces))
        assert path.stat().st_size == one.size
    return target


@pytest.mark.parametrize("index", [3, 5, 7, 13])
def test_it_is_a_data_folder_that_ends_with_the_state_of_the_backup(
    data: Path, tmp_path: Path, index: int
) -> None:
    past = unpacked(data, index, tmp_path / "past")
    report = check(past)
    assert report.findings == []
    assert report.history is not None
    assert (report.history.begin.index, report.history.end.index) == (0, index)
    for at in range(1, index + 1):
        assert paths(load(past, at).machine) == paths(load(data, at).machine)


def test_zeros_behind_the_last_record_are_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with FolderBuilder(folder, segment_bytes=8 << 20) as builder:
        builder.create(*names(3))
        # While the server runs.
        past = unpacked(folder, 4, tmp_path / "past")
    assert segments(folder / "log")[0].stat().st_size >= 1 << 20
    assert segments(past / "log")[0].stat().st_size < 1000
    assert check(past).findings == []


def test_damage_is_taken_along_for_a_check_to_find(data: Path, tmp_path: Path) -> None:
    flip(segments(data / "log")[0], 60)
    flip(segments(data / "log")[1], 3)
    found = [one.kind for one in check(data).findings]
    past = unpacked(data, 13, tmp_path / "past")
    assert [one.kind for one in check(past).findings] == found


def test_that_of_a_server_that_shares_its_log_is_a_folder_of_its_kind(tmp_path: Path) -> None:
    folder = build(tmp_path / "data")
    past = unpacked(folder, 10, tmp_path / "past")
    report = check_cluster_folder(past)
    assert report.findings == []
    assert report.history is not None
    assert (report.history.begin.index, report.history.end.index) == (3, 10)
    service = Path("cluster", "history", "service")
    assert (past / service).read_bytes() == (folder / service).read_bytes()


def test_what_is_purged_before_it_is_reached_is_left_out(data: Path, tmp_path: Path) -> None:
    names_found: list[str] = []
    for one in history_files(data, 13):
        if not names_found:
            snapshot_files(data / "snapshots")[0][1].unlink()
            segments(data / "log")[0].unlink()
        names_found.append(one.name)
        for _ in one.pieces:
            pass
    assert len([name for name in names_found if name.endswith(".snapshot")]) == 1
    assert f"{PREFIX}log/00000000000000000001.log" not in names_found


def test_a_snapshot_that_shrinks_while_it_is_read_is_an_error(data: Path) -> None:
    path = snapshot_files(data / "snapshots")[0][1]
    for one in history_files(data, 13):
        if one.name.endswith(path.name):
            path.write_bytes(b"")
            with pytest.raises(LogError, match="purged while it was read"):
                list(one.pieces)
            break


@pytest.mark.parametrize(
    "name", ["log/00000000000000000001.log", "history/../etc", "history/x", "history/log/1.log"]
)
def test_nothing_else_is_history(name: str) -> None:
    assert not is_history(name)

"""Checking a data folder and repairing a copy, for each way in which one can be damaged."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.log.file.disk import Disk
from paddock.log.file.file_log import FileLog
from paddock.log.file.segment import RECORD_HEADER_BYTES, SEGMENT_HEADER_BYTES, SegmentReader
from paddock.log.file.segments import Growth, SegmentFolder, begin_log
from paddock.log.interface import LogCorruptError, LogError, Record
from paddock.storage import load as loading
from paddock.storage.data_directory import DataDirectory
from paddock.storage.layout import DataDirectoryError
from paddock.storage.load import load
from paddock.storage.maintenance import check as checking
from paddock.storage.maintenance.check import check
from paddock.storage.maintenance.repair import Repaired, repair
from paddock.storage.maintenance.report import Report
from paddock.storage.scan import Gap, Item, scan
from paddock.storage.snapshots import SnapshotStore
from tests.support.logs import recover_state
from tests.unit.log.folders import FolderBuilder, contents, copy_of, names, paths
from tests.unit.log.helpers import flip, segments

NODES = 12
EPOCH = 1 << 32


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with a log of several segments, never purged, and no snapshot."""
    folder = tmp_path / "data"
    with FolderBuilder(folder) as builder:
        builder.create(*names(NODES))
    assert len(segments(folder / "log")) >= 4
    return folder


@pytest.fixture
def snapped(tmp_path: Path) -> Path:
    """A folder with snapshots after records 5 and 9, and a whole log of 13 records."""
    folder = tmp_path / "snapped"
    with FolderBuilder(folder) as builder:
        builder.create(*names(4))
        builder.snapshot()
        builder.create(*names(4, 4))
        builder.snapshot()
        builder.create(*names(4, 8))
    return folder


def offsets(segment: Path) -> list[int]:
    reader = SegmentReader(segment.read_bytes())
    return [reader.last_offset for _ in reader]


def kinds(report: Report) -> list[str]:
    return [finding.kind for finding in report.findings]


def damage(report: Report) -> list[str]:
    return [finding.kind for finding in report.findings if finding.is_damage]


def refused(folder: Path) -> str:
    """What a server says that does not start, and a backup that is not made."""
    with pytest.raises(LogCorruptError) as not_loaded:
        load(folder)
    with DataDirectory(folder) as directory:
        log = FileLog(directory.log_path)
        with pytest.raises(LogCorruptError) as raised:
            recover_state(log, SnapshotStore(directory.snapshots_path))
        log.close()
    assert str(raised.value) in str(not_loaded.value)
    return str(raised.value)


def repaired(folder: Path) -> tuple[Repaired, set[str]]:
    """Repair a copy, have a server's recovery load it, and give the nodes that it has."""
    before = contents(folder)
    copy = folder.parent / f"{folder.name}-repaired"
    result = repair(folder, copy)
    assert contents(folder) == before
    with DataDirectory(copy) as directory:
        log = FileLog(directory.log_path)
        recovered = recover_state(log, SnapshotStore(directory.snapshots_path))
        log.close()
    assert recovered.machine.zxid == result.zxid
    assert recovered.index == result.saved.index
    return result, paths(recovered.machine)


def test_a_folder_that_a_server_left_is_fine(data: Path, snapped: Path) -> None:
    for folder in (data, snapped):
        before = contents(folder)
        report = check(folder)
        assert not report.is_damaged
        assert report.findings == []
        assert report.state is not None
        assert (report.state.index, report.state.zxid) == (NODES + 1, NODES + 1)
        assert sum(segment.records for segment in report.segments) == NODES + 1
        assert contents(folder) == before
    assert check(data).digests == NODES + 1
    assert [one.index for one in check(snapped).snapshots] == [5, 9]


def test_a_new_folder_without_anything_written_is_fine(tmp_path: Path) -> None:
    DataDirectory(tmp_path).close()
    report = check(tmp_path)
    assert not report.findings
    assert report.state is not None
    assert report.state.index == 0


def test_a_folder_that_is_none_of_ours_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="holds no data of Paddock"):
        check(tmp_path)


def test_a_format_that_is_missing_or_unknown_is_damage(data: Path) -> None:
    (data / "format").unlink()
    assert damage(check(data)) == ["format"]
    (data / "format").write_text("paddock 2\n")
    report = check(data)
    assert damage(report) == ["format"]
    assert "'paddock 2'" in report.findings[0].what
    with pytest.raises(LogError, match="cannot be repaired: the layout is 'paddock 2'"):
        repair(data, data.parent / "copy")


def test_a_torn_tail_is_told_and_is_no_damage(data: Path) -> None:
    last = segments(data / "log")[-1]
    begin = offsets(last)[-1]
    whole = last.read_bytes()
    for cut in range(begin + 1, begin + RECORD_HEADER_BYTES + 20):
        last.write_bytes(whole[:cut] + bytes(len(whole) - cut))
        report = check(data)
        (finding,) = report.findings
        assert (finding.kind, finding.is_damage, finding.offset) == ("torn-tail", False, begin)
        # Zeros at its end cannot be told from those that are always there.
        remains = len(whole[begin:cut].rstrip(b"\0"))
        assert finding.what.startswith(f"torn tail: {remains} bytes after record {NODES}")
        assert "may be the last acknowledged write" in finding.what
        assert report.state is not None
        assert report.state.index == NODES
        assert not report.loses
    result, found = repaired(data)
    assert found == set(names(NODES - 1))
    # Nothing that was acknowledged is lost, so nobody has seen more.
    assert result.zxid == NODES


def test_a_last_file_that_was_cut_short_may_have_lost_any_number_of_records(data: Path) -> None:
    last = segments(data / "log")[-1]
    begin = offsets(last)[-1]
    whole = last.read_bytes()
    for cut in (SEGMENT_HEADER_BYTES, begin, begin + 1, begin + RECORD_HEADER_BYTES + 3):
        last.write_bytes(whole[:cut])
        report = check(data)
        (finding,) = report.findings
        assert (finding.kind, finding.is_damage) == ("damaged-record", True)
        assert "the file was cut short" in finding.what
        assert "on are missing" in finding.what
        assert report.loses
        with pytest.raises(LogCorruptError, match="the file was cut short"):
            load(data)
    result, found = repaired(data)
    assert found == set(names(NODES - 1))
    assert result.zxid == EPOCH


def test_a_flipped_byte_in_the_last_record_loses_that_one(data: Path) -> None:
    last = segments(data / "log")[-1]
    begin = offsets(last)[-1]
    flip(last, begin + RECORD_HEADER_BYTES + 3)
    report = check(data)
    (finding,) = report.findings
    assert (finding.kind, finding.file, finding.offset) == ("damaged-record", last, begin)
    assert finding.what.startswith(f"record {NODES + 1}, the last one, is damaged")
    assert f"record {NODES + 1} is missing" in finding.what
    with pytest.raises(LogCorruptError, match="the last one, is damaged"):
        load(data)
    result, found = repaired(data)
    assert found == set(names(NODES - 1))
    assert result.zxid == EPOCH


def test_a_bad_last_record_that_a_snapshot_holds_is_damage_and_loses_nothing(
    snapped: Path,
) -> None:
    with FolderBuilder(snapped.parent / "stopped") as builder:
        builder.create(*names(NODES))
        builder.snapshot()
    stopped = snapped.parent / "stopped"
    last = segments(stopped / "log")[-1]
    begin = offsets(last)[-1]
    whole = last.read_bytes()
    flip(last, begin + RECORD_HEADER_BYTES + 3)
    report = check(stopped)
    assert damage(report) == ["damaged-record"]
    assert "holds them: nothing lost" in report.findings[0].what
    assert not report.loses

    # One that looks like a torn write was whole once: a snapshot holds what the log held before.
    last.write_bytes(whole[: begin + 30] + bytes(len(whole) - begin - 30))
    report = check(stopped)
    (finding,) = report.findings
    assert (finding.kind, finding.is_damage, finding.offset) == ("damaged-record", True, begin)
    assert f"there is a snapshot at {NODES + 1}, so it was whole once" in finding.what
    before = contents(stopped)
    assert refused(stopped).startswith(f"{last}: offset {begin}: record {NODES + 1} is damaged")
    assert {**contents(stopped), "lock": before["lock"]} == before
    _, found = repaired(stopped)
    assert found == set(names(NODES))


def test_a_flipped_byte_in_any_record_but_the_last_loses_all_from_there_on(data: Path) -> None:
    for number, segment in enumerate(segments(data / "log")[:-1]):
        folder = copy_of(data, "flipped")
        path = folder / "log" / segment.name
        whole = path.read_bytes()
        begin = offsets(path)[-1]
        index = int(segment.stem) + len(offsets(path)) - 1
        for offset in (begin, begin + 8, begin + 12, begin + 16, begin + RECORD_HEADER_BYTES + 3):
            path.write_bytes(whole)
            flip(path, offset)
            report = check(folder)
            (finding,) = report.findings
            assert (finding.kind, finding.file, finding.offset) == ("damaged-record", path, begin)
            assert finding.what.startswith(f"record {index} is damaged")
            assert "--repair" in finding.advice
            assert report.loses
            assert report.state is not None
            assert report.state.index == index - 1
            assert report.unusable == NODES + 1 - index
        result, found = repaired(folder)
        assert found == set(names(index - 2))
        # A client may have seen what is lost.
        assert result.zxid == EPOCH
        assert result.saved.zxid == index - 1
        shutil.rmtree(folder.parent / "flipped-repaired")
        assert number < 10


def test_a_damaged_header_loses_nothing(data: Path) -> None:
    for segment in segments(data / "log"):
        folder = copy_of(data, "header")
        flip(folder / "log" / segment.name, 10)
        report = check(folder)
        assert damage(report) == ["damaged-header"]
        assert not report.loses
        _, found = repaired(folder)
        assert found == set(names(NODES))
        shutil.rmtree(folder.parent / "header-repaired")


def test_a_missing_segment_in_the_middle_loses_all_from_there_on(data: Path) -> None:
    before, missing, after = segments(data / "log")[:3]
    missing.unlink()
    report = check(data)
    (finding,) = report.findings
    first, last = int(missing.stem), int(after.stem) - 1
    assert finding.file == before
    assert f"records {first} to {last} are missing" in finding.what
    _, found = repaired(data)
    assert found == set(names(first - 2))


def test_a_missing_first_segment_without_a_snapshot_cannot_be_repaired(data: Path) -> None:
    segments(data / "log")[0].unlink()
    report = check(data)
    assert damage(report) == ["missing-records"]
    assert "no snapshot that can be used" in report.findings[0].what
    with pytest.raises(LogError, match="nothing can be saved"):
        repair(data, data.parent / "copy")
    assert not (data.parent / "copy").exists()


def test_log_without_records_promises_those_before_it(data: Path) -> None:
    # As after a restore: one snapshot, and a log that goes on behind it and holds nothing yet.
    last = load(data).index
    for path in segments(data / "log"):
        path.unlink()
    begin_log(data / "log", last, Disk())
    report = check(data)
    assert damage(report) == ["missing-records"]
    assert f"records 1 to {last} are missing" in report.findings[0].what
    with pytest.raises(LogError, match="nothing can be saved"):
        repair(data, data.parent / "copy")
    with pytest.raises(LogCorruptError, match=f"records 1 to {last} are missing"):
        load(data)


def test_an_empty_or_cut_segment_in_the_middle_is_found(data: Path) -> None:
    path = segments(data / "log")[1]
    whole = path.read_bytes()
    first = int(path.stem)
    for length, offset in ((0, 0), (SEGMENT_HEADER_BYTES + 9, SEGMENT_HEADER_BYTES)):
        path.write_bytes(whole[:length])
        report = check(data)
        (finding,) = report.findings
        assert finding.offset == offset
        assert report.state is not None
        assert report.state.index == first - 1


def test_a_segment_under_the_name_of_another_is_found(data: Path) -> None:
    first, second = segments(data / "log")[:2]
    shutil.copyfile(first, second)
    report = check(data)
    (finding,) = report.findings
    assert finding.file == second
    assert "holds the records from 1" in finding.what


def test_two_damages_are_both_told(data: Path) -> None:
    first, _, third = segments(data / "log")[:3]
    for path in (first, third):
        flip(path, offsets(path)[0] + RECORD_HEADER_BYTES + 3)
    report = check(data)
    assert [finding.file for finding in report.findings] == [first, third]


def test_damage_that_a_snapshot_covers_loses_nothing(snapped: Path) -> None:
    path = segments(snapped / "log")[1]
    flip(path, offsets(path)[0] + RECORD_HEADER_BYTES + 3)
    report = check(snapped)
    (finding,) = report.findings
    assert finding.is_damage
    assert "the snapshot at 9 holds them: nothing lost" in finding.what
    assert not report.loses
    result, found = repaired(snapped)
    assert found == set(names(NODES))
    assert result.zxid == NODES + 1


def test_a_record_beside_a_covered_one_in_the_same_file_is_saved(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with FolderBuilder(folder, segment_bytes=8192) as builder:
        builder.create(*names(4))
        builder.snapshot()
        builder.create(*names(4, 4))
    (path,) = segments(folder / "log")
    flip(path, offsets(path)[2] + RECORD_HEADER_BYTES + 3)
    assert not check(folder).loses
    assert repaired(folder)[1] == set(names(8))


def test_a_damaged_snapshot_is_told_at_any_byte_and_an_older_one_is_used(snapped: Path) -> None:
    newest = max((snapped / "snapshots").iterdir())
    whole = newest.read_bytes()
    for offset in range(0, len(whole), 7):
        newest.write_bytes(whole)
        flip(newest, offset)
        report = check(snapped)
        (finding,) = report.findings
        assert (finding.kind, finding.file) == ("damaged-snapshot", newest)
        assert finding.offset is not None
        assert finding.offset <= offset
        assert report.newest is not None
        assert report.newest.index == 5
        assert report.state is not None
        assert report.state.index == NODES + 1
        assert not report.loses
    assert repaired(snapped)[1] == set(names(NODES))


def test_deleted_snapshots_cost_nothing_while_the_log_is_whole(snapped: Path) -> None:
    for path in (snapped / "snapshots").iterdir():
        path.unlink()
    report = check(snapped)
    assert not report.is_damaged
    assert report.state is not None
    assert report.state.index == NODES + 1


def test_a_deleted_snapshot_that_the_purged_log_needs_is_damage(snapped: Path) -> None:
    older, newer = sorted((snapped / "snapshots").iterdir())
    kept = [path for path in segments(snapped / "log") if int(path.stem) > 7]
    for path in segments(snapped / "log"):
        if path not in kept:
            path.unlink()
    assert not check(snapped).is_damaged
    newer.unlink()
    report = check(snapped)
    assert damage(report) == ["missing-records"]
    assert f"records 6 to {int(kept[0].stem) - 1} are missing" in report.findings[0].what
    assert repaired(snapped)[1] == set(names(4))
    assert older.exists()


def test_a_log_that_ends_before_the_newest_snapshot_is_damage(snapped: Path) -> None:
    for path in segments(snapped / "log"):
        if int(path.stem) > 5:
            path.unlink()
    report = check(snapped)
    assert damage(report) == ["missing-records"]
    assert "but there is a snapshot at 9" in report.findings[0].what
    assert report.loses
    assert "but there is a snapshot at 9" in refused(snapped)
    done, saved = repaired(snapped)
    assert saved == set(names(8))
    # A client may have seen what came after the snapshot.
    assert done.zxid == EPOCH


def test_a_log_without_any_file_is_lost_and_not_new(snapped: Path) -> None:
    for path in segments(snapped / "log"):
        path.unlink()
    report = check(snapped)
    assert damage(report) == ["missing-records"]
    assert report.loses
    assert "the log ends with record 0, but there is a snapshot at 9" in refused(snapped)
    assert repaired(snapped)[1] == set(names(8))


def test_a_state_that_is_not_the_one_that_was_served_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with FolderBuilder(folder) as builder:
        builder.create(*names(3))
        builder.create("/n3", digest=12345)
        builder.create(*names(2, 4))
    report = check(folder)
    assert damage(report) == ["other-state"]
    assert report.state is not None
    # Batch 5 says that the state after batch 4 was another one: 3 is the last that is known good.
    assert report.state.index == 3
    assert repaired(folder)[1] == set(names(2))


def test_what_a_crash_left_half_made_is_no_damage(data: Path) -> None:
    (data / "log" / "00000000000000000099.tmp").touch()
    (data / "snapshots" / "00000000000000000099.tmp").touch()
    report = check(data)
    assert kinds(report) == ["leftover", "leftover"]
    assert not report.is_damaged


def test_records_that_a_later_segment_supersedes_do_not_count(data: Path) -> None:
    # As after a failed sync: the last record is not trusted, and its place is taken by another.
    log = SegmentFolder(data / "log", Growth(4096, 4096), Disk())
    last = log.open()
    log.create(last).close()
    report = check(data)
    assert report.findings == []
    assert report.state is not None
    assert report.state.index == last - 1 == NODES
    assert load(data).index == NODES


def test_the_tail_of_a_folder_in_use_is_not_judged(data: Path) -> None:
    last = segments(data / "log")[-1]
    whole, arrived = last.read_bytes(), offsets(last)[-1] + 9
    last.write_bytes(whole[:arrived] + bytes(len(whole) - arrived))
    assert kinds(check(data)) == ["torn-tail"]
    with DataDirectory(data):
        report = check(data)
        assert report.user is not None
        assert report.findings == []
        with pytest.raises(DataDirectoryError, match="in use by a server"):
            repair(data, data.parent / "copy")


def test_a_repaired_copy_goes_to_a_new_place_only(data: Path) -> None:
    full = data.parent / "full"
    full.mkdir()
    (full / "something").touch()
    with pytest.raises(DataDirectoryError, match="not an empty folder"):
        repair(data, full)
    with pytest.raises(DataDirectoryError, match="not to be touched"):
        repair(data, data / "copy")
    empty = data.parent / "empty"
    empty.mkdir()
    repair(data, empty)
    assert paths(load(empty).machine) == set(names(NODES))


def test_the_state_is_loaded_up_to_any_record(snapped: Path) -> None:
    for index in range(5, NODES + 2):
        loaded = load(snapped, index)
        assert loaded.index == index
        assert paths(loaded.machine) == set(names(index - 1))


def test_a_record_that_is_written_while_it_is_read_is_not_taken_for_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"
    with FolderBuilder(folder, segment_bytes=8192) as builder:
        builder.create(*names(6))
    (path,) = segments(folder / "log")
    whole = path.read_bytes()
    begin, end = offsets(path)[3:5]
    # The page with this record was read before it was written, the next page after.
    early = whole[:begin] + bytes(end - begin) + whole[end:]
    reads = [early, early, whole, whole]
    monkeypatch.setattr(Path, "read_bytes", lambda _: reads.pop(0))
    items = list(scan(folder / "log"))
    assert [item.index for item in items if isinstance(item, Record)] == list(range(1, 8))
    assert not any(isinstance(item, Gap) for item in items)


def test_what_a_server_purges_between_two_looks_is_not_taken_for_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"
    with FolderBuilder(folder) as builder:
        builder.create(*names(4))
        builder.snapshot()
        builder.create(*names(6, 4))
        calls: list[Path] = []

        def scan_behind_a_purge(log: Path, after: int = 0) -> Iterator[Item]:
            calls.append(log)
            if len(calls) == 1:
                # As a server does that has gone on meanwhile.
                builder.snapshot()
                builder.purge()
            return scan(log, after)

        for module in (loading, checking):
            monkeypatch.setattr(module, "scan", scan_behind_a_purge)
        assert load(folder).index == 11
        builder.create(*names(6, 10))
        calls.clear()
        report = check(folder)
        assert report.findings == []
        assert report.state is not None
        assert report.state.index == 17
        assert len(calls) > 1


def test_history_reaches_from_the_first_record_or_the_oldest_snapshot(
    data: Path, snapped: Path
) -> None:
    for folder in (data, snapped):
        report = check(folder)
        assert report.history is not None
        assert report.state is not None
        assert report.history.begin.index == report.history.begin.zxid == 0
        assert report.history.end == report.state.moment
        assert report.history.gaps == ()
    segments(snapped / "log")[0].unlink()
    report = check(snapped)
    assert damage(report) == []
    assert report.history is not None
    assert report.history.begin.index == 5


def test_damage_before_the_newest_snapshot_is_a_gap_of_history(snapped: Path) -> None:
    flip(segments(snapped / "log")[0], offsets(segments(snapped / "log")[0])[1])
    report = check(snapped)
    assert "nothing lost but history" in report.findings[0].what
    assert not report.loses
    assert report.history is not None
    assert [(gap.after, gap.resumes.index) for gap in report.history.gaps] == [(1, 5)]

"""Snapshots: stored whole or not at all, verified before use, purged by count."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.log.interface import LogError
from paddock.storage.retention import Retention
from paddock.storage.snapshots import Snapshot, SnapshotStore
from tests.unit.log.helpers import FailingDisk, flip

CHUNKS = [b"first chunk", b"", b"third"]


def store_snapshot(store: SnapshotStore, index: int, chunks: list[bytes]) -> None:
    writer = store.begin(index)
    for chunk in chunks:
        writer.append(chunk)
    writer.commit()


def as_they_are(path: Path, chunks: Iterator[bytes]) -> list[bytes]:
    return list(chunks)


def whole(store: SnapshotStore) -> Snapshot[list[bytes]]:
    newest = store.newest(as_they_are)
    assert newest.snapshot is not None
    assert newest.damaged == ()
    return newest.snapshot


def path_of(folder: Path, index: int) -> Path:
    return folder / f"{index:020d}.snapshot"


def test_empty_store_has_no_snapshot(tmp_path: Path) -> None:
    newest = SnapshotStore(tmp_path).newest(as_they_are)
    assert newest.snapshot is None
    assert newest.damaged == ()


@pytest.mark.parametrize("chunks", [[], [b""], CHUNKS, [bytes(300_000), b"x" * 300_000]])
def test_chunks_are_read_back_as_they_were_appended(tmp_path: Path, chunks: list[bytes]) -> None:
    store_snapshot(SnapshotStore(tmp_path), 5, chunks)
    snapshot = whole(SnapshotStore(tmp_path))
    assert snapshot.index == 5
    assert snapshot.content == chunks


@given(st.lists(st.binary(max_size=100)))
def test_any_chunks_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes]
) -> None:
    store = SnapshotStore(tmp_path_factory.mktemp("snapshots"))
    store_snapshot(store, 1, chunks)
    assert whole(store).content == chunks


def test_bytes_of_a_snapshot_do_not_change(tmp_path: Path) -> None:
    store_snapshot(SnapshotStore(tmp_path), 7, [b"abc"])
    assert path_of(tmp_path, 7).read_bytes() == bytes.fromhex(
        "504144534e415001 0000000000000007"
        "e342eb26 01 00000003 616263"
        "db9a44d5 02 00000008 0000000000000001"
    )


def test_newest_snapshot_is_the_one_with_the_highest_index(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    for index in (9, 10, 100):
        store_snapshot(store, index, [b"%d" % index])
    assert whole(store).content == [b"100"]


def test_snapshot_in_the_making_is_not_seen(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    store_snapshot(store, 1, CHUNKS)
    writer = store.begin(2)
    writer.append(b"half")
    assert whole(store).index == 1
    writer.commit()
    assert whole(store).index == 2


def test_aborted_snapshot_leaves_nothing(tmp_path: Path) -> None:
    writer = SnapshotStore(tmp_path).begin(1)
    writer.append(b"half")
    writer.abort()
    writer.abort()
    assert list(tmp_path.iterdir()) == []


def test_leftover_of_a_crash_is_removed_at_opening(tmp_path: Path) -> None:
    leftover = path_of(tmp_path, 1).with_suffix(".tmp")
    leftover.write_bytes(b"half")
    SnapshotStore(tmp_path)
    assert not leftover.exists()


def test_snapshot_is_synced_before_it_has_its_name_and_then_the_name(tmp_path: Path) -> None:
    disk = FailingDisk()
    store = SnapshotStore(tmp_path, disk=disk)
    disk.calls.clear()
    store_snapshot(store, 1, CHUNKS)
    assert disk.calls == ["write", "sync", "rename", "sync_folder"]


def test_large_snapshot_is_synced_as_it_grows(tmp_path: Path) -> None:
    disk = FailingDisk()
    store = SnapshotStore(tmp_path, disk=disk)
    disk.calls.clear()
    store_snapshot(store, 1, [bytes(1 << 18)] * 10)
    four = ["write"] * 4 + ["sync"]
    assert disk.calls == [*four, *four, *["write"] * 3, "sync", "rename", "sync_folder"]


@pytest.mark.parametrize("operation", ["write", "sync", "rename", "sync_folder"])
def test_snapshot_that_cannot_be_written_is_reported_and_removed(
    tmp_path: Path, operation: str
) -> None:
    disk = FailingDisk()
    store = SnapshotStore(tmp_path, disk=disk)
    store_snapshot(store, 1, CHUNKS)
    writer = store.begin(2)
    writer.append(b"x")
    with (
        disk.fail(operation, errno.ENOSPC),
        pytest.raises(LogError, match="cannot be written: No space left"),
    ):
        writer.commit()
    writer.abort()
    assert not list(tmp_path.glob("*.tmp"))
    store_snapshot(store, 2, CHUNKS)
    assert whole(store).index == 2


@pytest.mark.parametrize("operation", ["write", "sync"])
def test_full_disk_is_reported_while_chunks_are_appended(tmp_path: Path, operation: str) -> None:
    disk = FailingDisk()
    writer = SnapshotStore(tmp_path, disk=disk).begin(1)
    with disk.fail(operation, errno.ENOSPC), pytest.raises(LogError):
        writer.append(bytes(1 << 22))
    writer.abort()
    assert list(tmp_path.iterdir()) == []


def test_snapshot_damaged_at_any_byte_is_reported_and_passed_over(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    store_snapshot(store, 1, CHUNKS)
    store_snapshot(store, 2, CHUNKS)
    path = path_of(tmp_path, 2)
    good = path.read_bytes()
    for offset in range(len(good)):
        flip(path, offset)
        newest = store.newest(as_they_are)
        assert newest.snapshot == Snapshot(1, path_of(tmp_path, 1), CHUNKS)
        assert [damaged.path for damaged in newest.damaged] == [path]
        assert newest.damaged[0].reason.startswith("offset ")
        path.write_bytes(good)
    assert whole(store).index == 2


def test_snapshot_cut_or_lengthened_at_any_byte_is_passed_over(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    store_snapshot(store, 2, CHUNKS)
    path = path_of(tmp_path, 2)
    good = path.read_bytes()
    for data in [*(good[:length] for length in range(len(good))), good + b"\0", good + good]:
        path.write_bytes(data)
        newest = store.newest(as_they_are)
        assert newest.snapshot is None
        assert len(newest.damaged) == 1


def test_snapshot_under_the_name_of_another_index_is_passed_over(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    store_snapshot(store, 2, CHUNKS)
    path_of(tmp_path, 2).rename(path_of(tmp_path, 3))
    newest = store.newest(as_they_are)
    assert newest.snapshot is None
    assert newest.damaged[0].path == path_of(tmp_path, 3)


def test_chunks_out_of_place_are_noticed(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    store_snapshot(store, 1, [b"aaaa", b"bbbb"])
    path = path_of(tmp_path, 1)
    data = path.read_bytes()
    first, second = data[16:29], data[29:42]
    assert b"aaaa" in first
    assert b"bbbb" in second
    for middle in (second + first, first + first, first, first + second + second):
        path.write_bytes(data[:16] + middle + data[42:])
        assert store.newest(as_they_are).snapshot is None


class UnreadableError(Exception):
    """The chunks of a snapshot mean nothing."""


def unreadable(path: Path, chunks: Iterator[bytes]) -> None:
    next(chunks)
    raise UnreadableError(path)


def test_a_snapshot_that_is_whole_and_means_nothing_is_not_passed_over(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    for index in (1, 2):
        store_snapshot(store, index, CHUNKS)
    with pytest.raises(UnreadableError, match=r"2\.snapshot"):
        store.newest(unreadable)


def test_damage_counts_more_than_what_the_chunks_before_it_mean(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    store_snapshot(store, 1, CHUNKS)
    path = path_of(tmp_path, 1)
    flip(path, path.stat().st_size - 1)
    newest = store.newest(unreadable)
    assert newest.snapshot is None
    assert [damaged.path for damaged in newest.damaged] == [path]


def test_every_byte_is_verified_also_where_nobody_reads_it(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    store_snapshot(store, 1, CHUNKS)
    path = path_of(tmp_path, 1)
    flip(path, path.stat().st_size - 1)
    assert store.newest(lambda path, chunks: next(chunks)).snapshot is None


def test_purge_keeps_the_newest_and_tells_what_the_log_must_keep(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    for index in (10, 20, 30, 40):
        store_snapshot(store, index, CHUNKS)
    assert store.purge(keep=3) == 20
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        path_of(tmp_path, index).name for index in (20, 30, 40)
    ]
    assert store.purge(keep=1) == 40
    assert whole(store).index == 40


def test_purge_keeps_older_ones_that_history_needs(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    for number, index in enumerate((10, 20, 30, 40)):
        store_snapshot(store, index, CHUNKS)
        os.utime(path_of(tmp_path, index), (number * 100, number * 100))
    log = tmp_path / "log"
    log.mkdir()
    # At 150 the newest was the one at 20; a day later it is not asked for any more.
    history = Retention(150, 1 << 20, log, now=lambda: 300)
    assert store.purge(1, history) == 20
    assert not path_of(tmp_path, 10).exists()
    assert path_of(tmp_path, 20).exists()
    assert store.purge(3, Retention(150, 1 << 20, log, now=lambda: 90_000)) == 20
    assert store.purge(1, Retention(150, 1, log, now=lambda: 300)) == 40
    # Fewer than a start needs: everything stays.
    assert store.purge(2, history) == 0


def test_purge_that_is_interrupted_leaves_no_half_of_a_snapshot_under_its_name(
    tmp_path: Path,
) -> None:
    disk = FailingDisk()
    store = SnapshotStore(tmp_path, disk=disk)
    for index in (10, 20):
        store_snapshot(store, index, CHUNKS)
    with disk.fail("remove"), pytest.raises(LogError, match="cannot be removed"):
        store.purge(keep=1)
    assert [path.suffix for path in sorted(tmp_path.iterdir())] == [".tmp", ".snapshot"]
    SnapshotStore(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [path_of(tmp_path, 20).name]


def test_purge_with_too_few_snapshots_needs_the_whole_log(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    assert store.purge(keep=1) == 0
    store_snapshot(store, 10, CHUNKS)
    assert store.purge(keep=2) == 0
    assert whole(store).index == 10


def test_purge_does_not_count_damaged_snapshots(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    for index in (10, 20, 30):
        store_snapshot(store, index, CHUNKS)
    flip(path_of(tmp_path, 30), 20)
    store.newest(as_they_are)
    assert store.purge(keep=2) == 10
    store_snapshot(store, 40, CHUNKS)
    assert store.purge(keep=2) == 20
    store_snapshot(store, 50, CHUNKS)
    assert store.purge(keep=2) == 40
    assert len(list(tmp_path.iterdir())) == 2


def test_damaged_snapshot_that_is_stored_again_counts(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    store_snapshot(store, 10, CHUNKS)
    flip(path_of(tmp_path, 10), 20)
    assert store.newest(as_they_are).snapshot is None
    store_snapshot(store, 10, CHUNKS)
    assert store.purge(keep=1) == 10
    assert whole(store).index == 10


def test_purge_that_the_disk_refuses_is_reported(tmp_path: Path) -> None:
    disk = FailingDisk()
    store = SnapshotStore(tmp_path, disk=disk)
    for index in (10, 20):
        store_snapshot(store, index, CHUNKS)
    for operation in ("remove", "sync_folder"):
        with disk.fail(operation), pytest.raises(LogError, match="cannot be removed"):
            store.purge(keep=1)
        assert len(list(tmp_path.iterdir())) == 2
    assert store.purge(keep=1) == 20


def test_folder_that_is_missing_is_reported(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="cannot be opened"):
        SnapshotStore(tmp_path / "missing")


def test_snapshots_that_are_set_aside_are_not_used_and_the_last_ones_are_kept(
    tmp_path: Path,
) -> None:
    store = SnapshotStore(tmp_path)
    for index in (10, 20):
        store_snapshot(store, index, [b"wrong"])
    store.set_aside()
    assert store.newest(as_they_are).snapshot is None
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"{index:020d}.snapshot.aside" for index in (10, 20)
    ]
    store_snapshot(store, 30, [b"wrong again"])
    store.set_aside()
    assert [path.name for path in tmp_path.iterdir()] == [f"{30:020d}.snapshot.aside"]

"""Taking snapshots while much changes: what is kept in memory, and what a full disk does to it."""

from __future__ import annotations

import asyncio
import errno
import math
import os
from pathlib import Path

import pytest

from paddock.log.interface import LogError
from paddock.server.durability import snapshotter
from paddock.server.durability.snapshotter import Snapshotter
from paddock.server.durability.startup import Restored
from paddock.server.replication.proposals import PendingBatch
from paddock.server.replication.replica import Replica
from paddock.server.statistics import Statistics
from paddock.state.machine import StateMachine
from paddock.state.snapshot import BACKLOG_BYTES_MAX, Snapshot, restore
from paddock.state.watches import Watches
from paddock.storage.replay import Replay
from paddock.storage.snapshots import SnapshotStore, read_snapshot
from tests.property.dump import dump
from tests.unit.log.helpers import FailingDisk
from tests.unit.server.harness import HeldLog
from tests.unit.state.driver import Connection, World

LARGE = 900_000


class WatchedDisk(FailingDisk):
    """A disk that remembers the longest write, and may refuse the next one alone."""

    def __init__(self) -> None:
        super().__init__()
        self.longest = 0
        self.refuses_next = False

    def write(self, file: int, data: bytes, offset: int) -> None:
        self.longest = max(self.longest, len(data))
        if self.refuses_next:
            self.refuses_next = False
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().write(file, data, offset)


class Bench:
    """A snapshotter on a state that the test changes by hand; its disk may refuse."""

    def __init__(
        self,
        folder: Path,
        every_bytes: int = 0,
        replayed_bytes: int = 0,
        head_start: float = 0.0,
    ) -> None:
        self.folder = folder
        self.disk = WatchedDisk()
        self.world = World()
        log = HeldLog()
        machine = self.world.machine
        replay = Replay(machine, 1)
        replay.size_bytes = replayed_bytes
        self.replica = Replica(replay, Watches(), Statistics())
        self.replica.follow(log)
        store = SnapshotStore(folder, disk=self.disk)
        restored = Restored(replay)
        self.snapshotter = Snapshotter(
            self.replica, log, store, 1000, None, restored, every_bytes, head_start
        )

    def owner_of_large_nodes(self) -> Connection:
        """Fill the tree such that a snapshot takes several pieces, the large nodes last."""
        self.fill()
        client = self.world.open()
        for number in range(30):
            client.create(b"/large-%d" % number, bytes(LARGE), flags=1)
        return client

    def fill(self) -> None:
        """Fill the tree such that a snapshot takes several pieces."""
        other = self.world.open()
        for number in range(1200):
            other.create(b"/small-%d" % number)

    async def begin(self) -> asyncio.Task[None]:
        """Begin a snapshot, and come back when its first piece is being written."""
        task = asyncio.get_running_loop().create_task(self.snapshotter.close())
        await asyncio.sleep(0)
        assert self.world.machine.tree.images is not None
        return task

    async def begins_one(self) -> bool:
        """Let it look whether it is time for a snapshot; tell whether it was."""
        self.snapshotter.look()
        await asyncio.sleep(0)
        return self.world.machine.tree.images is not None

    async def begins_one_at(self, counter: str, number: int) -> None:
        """Check that one begins when a counter of the replica comes to this, and not before."""
        for count, is_due in ((number - 1, False), (number, True)):
            setattr(self.replica, counter, count)
            assert await self.begins_one() == is_due

    def stored(self) -> list[Path]:
        return sorted(self.folder.iterdir())


def test_the_end_of_a_session_with_large_nodes_is_written_in_pieces(tmp_path: Path) -> None:
    async def scenario() -> None:
        bench = Bench(tmp_path)
        client = bench.owner_of_large_nodes()
        then = dump(bench.world.machine)
        task = await bench.begin()
        # One entry, some 27 MB of images.
        bench.world.expire(client.session, 1)
        await task
        assert bench.disk.longest < 2 * BACKLOG_BYTES_MAX
        (stored,) = bench.stored()
        assert dump(restore(read_snapshot(stored, 1))) == then

    asyncio.run(scenario())


def test_a_snapshot_that_lost_an_image_is_given_up(tmp_path: Path) -> None:
    """Also if the disk takes everything that comes behind it."""

    async def scenario() -> None:
        bench = Bench(tmp_path)
        client = bench.owner_of_large_nodes()
        task = await bench.begin()
        bench.disk.refuses_next = True
        bench.world.expire(client.session, 1)
        await task
        # Nothing more is gathered for it.
        assert bench.world.machine.tree.images is None
        assert not bench.disk.refuses_next
        assert bench.stored() == []

    asyncio.run(scenario())


@pytest.mark.parametrize(("large", "after"), [(2000, 1000), (600, 2000), (400, 3000)])
def test_a_large_tree_waits_for_more_entries_in_proportion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int, after: int
) -> None:
    monkeypatch.setattr(snapshotter, "_LARGE", large)

    async def scenario() -> None:
        bench = Bench(tmp_path)
        client = bench.world.open()
        while len(bench.world.machine.tree) < 1200:
            client.create(b"/node-%d" % len(bench.world.machine.tree))
        await bench.snapshotter.take_now()
        await bench.begins_one_at("applied_entries", after)
        await bench.snapshotter.close()

    asyncio.run(scenario())


def test_a_tree_that_grows_waits_for_what_it_was_at_the_last_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a tree that grows with each entry would never get there."""
    monkeypatch.setattr(snapshotter, "_LARGE", 400)

    async def scenario() -> None:
        bench = Bench(tmp_path)
        client = bench.world.open()
        # The tree has 4 nodes, and then 800: twice as many as a small one.
        for applied, nodes in ((1_000, 800), (3_000, 3_000)):
            while len(bench.world.machine.tree) < nodes:
                client.create(b"/node-%d" % len(bench.world.machine.tree))
            await bench.begins_one_at("applied_entries", applied)
            bench.replica.applied += 1
            await bench.snapshotter.take_now()
        await bench.snapshotter.close()

    asyncio.run(scenario())


def test_a_log_of_so_many_bytes_gets_a_snapshot_and_then_so_many_more(tmp_path: Path) -> None:
    async def scenario() -> None:
        bench = Bench(tmp_path, every_bytes=50_000)
        bench.fill()
        for applied in (50_000, 100_000):
            await bench.begins_one_at("applied_bytes", applied)
            bench.replica.applied += 1
            await bench.snapshotter.take_now()
        await bench.snapshotter.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("counts_bytes", [False, True])
def test_with_a_head_start_the_first_comes_earlier_and_the_others_after_as_much_as_usual(
    tmp_path: Path, counts_bytes: bool
) -> None:
    async def scenario() -> None:
        bench = Bench(tmp_path, every_bytes=100_000 if counts_bytes else 0, head_start=0.75)
        bench.fill()
        for applied in (250, 1_250, 2_250):
            for count, is_due in ((applied - 1, False), (applied, True)):
                if counts_bytes:
                    bench.replica.applied_bytes = 100 * count
                else:
                    bench.replica.applied_entries = count
                assert await bench.begins_one() == is_due
            bench.replica.applied += 1
            await bench.snapshotter.take_now()
        await bench.snapshotter.close()

    asyncio.run(scenario())


def test_one_that_is_wanted_comes_at_once_and_the_others_when_they_would_have(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        bench = Bench(tmp_path)
        bench.fill()
        bench.replica.applied_entries = 10
        bench.snapshotter.wants_one = True
        assert await bench.begins_one()
        await bench.snapshotter.take_now()
        for applied, is_due in ((11, False), (999, False), (1_000, True)):
            bench.replica.applied_entries = applied
            assert await bench.begins_one() == is_due
        await bench.snapshotter.close()

    asyncio.run(scenario())


def test_bytes_that_were_replayed_at_the_start_count(tmp_path: Path) -> None:
    async def scenario() -> None:
        bench = Bench(tmp_path, every_bytes=50_000, replayed_bytes=49_000)
        bench.fill()
        bench.replica.applied_bytes += 999
        assert not await bench.begins_one()
        bench.replica.applied_bytes += 1
        assert await bench.begins_one()
        await bench.snapshotter.close()

    asyncio.run(scenario())


def test_a_large_tree_waits_for_three_quarters_of_its_bytes(tmp_path: Path) -> None:
    async def scenario() -> None:
        bench = Bench(tmp_path, every_bytes=50_000)
        bench.fill()
        bench.world.open().create(b"/large", bytes(LARGE))
        size = math.ceil(int(bench.world.machine.tree.data_bytes) * 0.75)
        assert size > 50_000
        await bench.begins_one_at("applied_bytes", size)
        await bench.snapshotter.close()

    asyncio.run(scenario())


def test_no_number_of_bytes_gets_a_snapshot_if_they_do_not_count(tmp_path: Path) -> None:
    async def scenario() -> None:
        bench = Bench(tmp_path)
        bench.fill()
        bench.replica.applied_bytes = 1 << 40
        assert not await bench.begins_one()
        await bench.snapshotter.close()

    asyncio.run(scenario())


def test_a_snapshot_for_which_there_is_no_memory_leaves_the_state_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(machine: StateMachine, spill: object) -> Snapshot:
        raise MemoryError

    async def scenario() -> None:
        bench = Bench(tmp_path)
        client = bench.world.open()
        with monkeypatch.context() as patch:
            patch.setattr(snapshotter, "Snapshot", refuse)
            with pytest.raises(LogError, match="no snapshot could be taken"):
                await bench.snapshotter.take_now()
        assert client.create(b"/a").error == 0
        assert bench.world.machine.tree.images is None
        await bench.snapshotter.close()
        assert len(bench.stored()) == 1

    asyncio.run(scenario())
    assert "no snapshot was taken: out of memory" in caplog.text


def test_a_snapshot_that_cannot_begin_behind_a_batch_is_no_failure_of_the_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(machine: StateMachine, spill: object) -> Snapshot:
        raise MemoryError

    async def scenario() -> None:
        bench = Bench(tmp_path)
        # A batch is half applied.
        bench.replica._applying = PendingBatch([], [], 0)
        with monkeypatch.context() as patch:
            patch.setattr(snapshotter, "Snapshot", refuse)
            taking = asyncio.get_running_loop().create_task(bench.snapshotter.take_now())
            while not bench.replica._between:  # noqa: ASYNC110 (no time passes)
                await asyncio.sleep(0)
            (begin,) = bench.replica._between
            begin()
            with pytest.raises(LogError, match="no snapshot could be taken"):
                await taking
        assert bench.world.machine.tree.images is None

    asyncio.run(scenario())

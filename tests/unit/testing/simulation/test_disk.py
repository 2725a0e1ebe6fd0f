"""The disk of a single server: what kills, power cuts, a full disk and failing syncs leave."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from paddock.log.file import file_log
from paddock.log.interface import Log, LogError, Record
from paddock.testing.simulation.disk import SimulatedDisk
from paddock.testing.simulation.disk_log import open_log
from paddock.testing.simulation.network import SimulatedNetwork
from paddock.testing.simulation.process import ProcessLoop, new_process
from paddock.testing.simulation.threads import SimulatedQueue, SimulatedThread
from paddock.testing.simulation.world_loop import WorldLoop, new_world


class Heard:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.others: list[str] = []

    def committed(self, record: Record) -> None:
        self.records.append(record)

    def refused(self, number: int, reason: str) -> None:
        self.others.append(f"refused {number}")

    def unknown(self, reason: str) -> None:
        self.others.append("unknown")


class Machine:
    """A disk with a log on it, in a world that the test moves on."""

    def __init__(self, folder: Path, seed: str, *, has_writer: bool) -> None:
        self.world: WorldLoop = new_world()
        self.network = SimulatedNetwork(self.world, "test", 0.1)
        self.folder = folder / seed
        self.folder.mkdir()
        self.disk = SimulatedDisk(seed, 1.0, self.world.time, has_writer=has_writer)
        self.process: ProcessLoop
        self.log: Log
        self.heard: Heard

    def boot(self, after: int = 0) -> Heard:
        self.process = new_process(self.world, self.network, "s1", "10.0.0.1")
        self.heard = Heard()
        with self.process.enter():
            self.log = open_log(self.folder, disk=self.disk)
            self.log.start(self.heard, after)
        return self.heard

    def propose(self, number: int, payload: bytes) -> None:
        with self.process.enter():
            self.log.propose(number, payload)

    def go_on(self, seconds: float) -> None:
        self.world.run_until_complete(_sleep(seconds))

    def kill(self) -> None:
        self.process.kill()
        self.disk.let_go()

    def bury(self) -> None:
        for process in self.network.processes:
            process.bury()

    def kept(self) -> list[bytes]:
        return [batch.payload for batch in self.disk.witness.batches]


async def _sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


@pytest.fixture(params=[False, True], ids=["thread", "disk-writer"])
def machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Callable[[str], Machine]]:
    monkeypatch.setattr(file_log, "Thread", SimulatedThread)
    monkeypatch.setattr(file_log, "SimpleQueue", SimulatedQueue)
    made: list[Machine] = []

    def make(seed: str) -> Machine:
        made.append(Machine(tmp_path, seed, has_writer=request.param))
        return made[-1]

    yield make
    for one in made:
        one.bury()


def test_a_batch_is_committed_when_it_is_synced(machine: Callable[[str], Machine]) -> None:
    one = machine("test")
    heard = one.boot()
    one.propose(0, b"a")
    one.go_on(0)
    assert heard.records == []
    one.go_on(10)
    assert heard.records == [Record(1, b"a", b"", 0)]
    assert one.kept() == [b"a"]


def test_the_threads_of_a_log_are_those_of_its_process(machine: Callable[[str], Machine]) -> None:
    """Compiled, too: a real thread would write whenever the machine lets it."""
    one = machine("test")
    heard = one.boot()
    assert len(one.process.threads) == 1
    one.propose(0, b"a")
    one.go_on(10)
    # The first record needs a segment, which the thread makes.
    assert len(heard.records) == 1
    one.propose(1, b"b")
    one.process.pause()
    one.go_on(10)
    assert len(heard.records) == 1
    one.process.resume()
    one.go_on(10)
    assert [record.payload for record in heard.records] == [b"a", b"b"]


def test_a_log_that_is_closed_has_told_what_was_under_way(
    machine: Callable[[str], Machine],
) -> None:
    one = machine("test")
    heard = one.boot()
    one.propose(0, b"a")
    one.go_on(10)
    one.propose(1, b"b")
    with one.process.enter():
        one.log.close()
    assert [record.payload for record in heard.records] == [b"a", b"b"]
    one.go_on(10)
    assert len(heard.records) == 2


def test_a_process_that_is_killed_leaves_what_it_wrote(machine: Callable[[str], Machine]) -> None:
    one = machine("test")
    one.boot()
    one.propose(0, b"a")
    one.go_on(10)
    one.propose(1, b"b")
    # It is written at once, and not synced.
    one.go_on(0)
    one.kill()
    assert [record.payload for record in one.boot().records] == [b"a", b"b"]
    assert one.kept() == [b"a", b"b"]


def test_a_power_cut_keeps_what_was_synced_and_may_keep_the_rest(
    machine: Callable[[str], Machine],
) -> None:
    kept = set()
    for seed in range(20):
        one = machine(str(seed))
        one.boot()
        one.propose(0, b"a")
        one.go_on(10)
        one.propose(1, b"b")
        one.go_on(0)
        one.kill()
        one.disk.cut_power()
        one.boot()
        kept.add(tuple(one.kept()))
    assert kept == {(b"a",), (b"a", b"b")}


def test_a_full_disk_refuses_and_keeps_what_is_there(machine: Callable[[str], Machine]) -> None:
    one = machine("test")
    heard = one.boot()
    one.propose(0, b"a")
    one.go_on(10)
    one.disk.is_full = True
    one.propose(1, bytes(5_000))
    one.go_on(10)
    assert heard.others == ["refused 1"]
    one.disk.is_full = False
    one.propose(2, b"c")
    one.go_on(10)
    assert one.kept() == [b"a", b"c"]


def test_a_failed_sync_is_in_doubt_until_it_is_recovered(
    machine: Callable[[str], Machine],
) -> None:
    one = machine("test")
    heard = one.boot()
    one.propose(0, b"a")
    one.go_on(10)
    one.disk.is_failing = True
    one.propose(1, b"b")
    one.go_on(10)
    assert heard.others == ["unknown"]
    with one.process.enter(), pytest.raises(LogError):
        one.log.recover()
    one.disk.is_failing = False
    with one.process.enter():
        one.log.recover()
    # The kernel shows it still.
    assert [record.payload for record in heard.records] == [b"a", b"b"]
    one.kill()
    one.disk.cut_power()
    one.boot()
    assert one.kept() == [b"a", b"b"]


def test_the_witness_has_what_was_purged(machine: Callable[[str], Machine]) -> None:
    one = machine("test")
    one.boot()
    for number in range(3):
        one.propose(number, bytes([number]) * 10_000)
        one.go_on(20)
    one.log.purge(2)
    one.kill()
    one.boot(after=2)
    assert [payload[0] for payload in one.kept()] == [0, 1, 2]

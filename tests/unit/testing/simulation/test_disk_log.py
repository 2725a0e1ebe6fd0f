"""The log on a simulated disk: what a crash, a full disk and failing syncs do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from paddock.log.interface import LogError, Record
from paddock.testing.simulation.disk_log import DiskLog, SimulatedDisk
from paddock.testing.simulation.network import SimulatedNetwork
from paddock.testing.simulation.process import ProcessLoop, new_process, new_world


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


def on_disk(main: Callable[[SimulatedDisk, ProcessLoop], Coroutine[Any, Any, None]]) -> None:
    loop = new_world()
    network = SimulatedNetwork(loop, "test", 0.1)
    process = new_process(loop, network, "s1", "10.0.0.1")
    try:
        loop.run_until_complete(main(SimulatedDisk("test", 1.0), process))
    finally:
        loop.close()


def test_a_batch_is_committed_when_it_is_synced() -> None:
    async def main(disk: SimulatedDisk, process: ProcessLoop) -> None:
        log, heard = DiskLog(disk, process), Heard()
        log.start(heard)
        log.propose(0, b"a")
        assert heard.records == []
        await asyncio.sleep(1)
        assert heard.records == [Record(1, b"a", b"", 0)]
        again = Heard()
        DiskLog(disk, process).start(again)
        assert again.records == [Record(1, b"a")]

    on_disk(main)


def test_a_crash_keeps_what_was_synced_and_may_keep_the_rest() -> None:
    async def main(_: SimulatedDisk, process: ProcessLoop) -> None:
        kept = set()
        for seed in range(20):
            disk = SimulatedDisk(str(seed), 1.0)
            log = DiskLog(disk, process)
            log.start(Heard())
            log.propose(0, b"a")
            await asyncio.sleep(1)
            log.propose(1, b"b")
            disk.crash(0.0)
            kept.add(tuple(batch.payload for batch in disk.batches))
        assert kept == {(b"a",), (b"a", b"b")}

    on_disk(main)


def test_a_full_disk_refuses_and_writes_nothing() -> None:
    async def main(disk: SimulatedDisk, process: ProcessLoop) -> None:
        log, heard = DiskLog(disk, process), Heard()
        log.start(heard)
        disk.is_full = True
        log.propose(0, b"a")
        await asyncio.sleep(1)
        assert heard.others == ["refused 0"]
        assert disk.batches == []
        disk.crash(0.0)
        assert disk.batches == []

    on_disk(main)


def test_a_failed_sync_is_in_doubt_until_it_is_recovered() -> None:
    async def main(_: SimulatedDisk, process: ProcessLoop) -> None:
        found = set()
        for seed in range(20):
            disk = SimulatedDisk(str(seed), 1.0)
            log, heard = DiskLog(disk, process), Heard()
            log.start(heard)
            disk.is_failing = True
            log.propose(0, b"a")
            await asyncio.sleep(1)
            assert heard.others == ["unknown"]
            with pytest.raises(LogError):
                log.recover()
            disk.is_failing = False
            log.recover()
            found.add(len(heard.records))
            log.propose(1, b"b")
            await asyncio.sleep(1)
            assert heard.records[-1].payload == b"b"
            assert heard.records[-1].index == len(heard.records)
        assert found == {0, 1}

    on_disk(main)

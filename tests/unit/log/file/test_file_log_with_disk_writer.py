"""The log with a disk writer: what it writes, and what becomes of what it cannot write."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from paddock.log.file.file_log import FileLog
from paddock.log.interface import Record
from tests.support.disk_writers import new_disk_writer
from tests.support.logs import Durability, Reports
from tests.unit.log.helpers import Proposer, payloads, segments

if TYPE_CHECKING:
    from paddock.log.file.disk_writer import DiskWriter

_WAIT_S = 30


class OnLoop:
    """A log on an event loop, and what it reported."""

    def __init__(
        self,
        folder: Path,
        segment_bytes: int = 4096,
        new_writer: Callable[[], DiskWriter] = new_disk_writer,
    ) -> None:
        self.log = FileLog(
            folder, segment_bytes=segment_bytes, step_bytes=4096, new_disk_writer=new_writer
        )
        self._loop = asyncio.get_running_loop()
        self._reports: asyncio.Queue[tuple[int, Durability, str]] = asyncio.Queue()
        # In which thread each report was made.
        self.threads: list[str] = []
        self.listener = Reports(self.log, self._report)
        self.log.start(self.listener)

    def _report(self, index: int, outcome: Durability, reason: str) -> None:
        self.threads.append(threading.current_thread().name)
        self._loop.call_soon_threadsafe(self._reports.put_nowait, (index, outcome, reason))

    async def propose(self, payload: bytes) -> tuple[int, Durability, str]:
        """Propose a batch and wait for its report."""
        self.log.propose(len(self.threads), payload)
        return await self.report()

    async def report(self) -> tuple[int, Durability, str]:
        return await asyncio.wait_for(self._reports.get(), _WAIT_S)


def on_loop(
    folder: Path, use: Callable[[OnLoop], Awaitable[None]], segment_bytes: int = 4096
) -> None:
    async def run() -> None:
        made = OnLoop(folder, segment_bytes)
        try:
            await use(made)
        finally:
            made.log.close()

    asyncio.run(run())


def open_file_of(path: Path) -> int:
    """Return the descriptor by which this process has a file open."""
    for name in os.listdir("/proc/self/fd"):
        link = Path("/proc/self/fd", name)
        if link.is_symlink() and Path(os.readlink(link)) == path:
            return int(name)
    raise AssertionError(f"{path} is not open")


def threads_here() -> set[str]:
    """Return the names of the threads of this process, those in C included."""
    found = {thread.name for thread in threading.enumerate()}
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            found.add((task / "comm").read_text().strip())
    return found


def test_what_there_is_space_for_is_written_without_the_thread(tmp_path: Path) -> None:
    expected = [b"first", b"", b"third" * 100, b"last"]

    async def use(made: OnLoop) -> None:
        begun = time.monotonic()
        for index, payload in enumerate(expected, 1):
            assert await made.propose(payload) == (index, Durability.DURABLE, "")
        took = time.monotonic() - begun
        # The first one needs a segment.
        main = threading.current_thread().name
        assert made.threads == ["paddock-log", main, main, main]
        written = made.listener.records[1:]
        assert written == [
            Record(index, payload, b"", index - 1, late=written[index - 2].late)
            for index, payload in enumerate(expected[1:], 2)
        ]
        assert all(0 < record.late < took for record in written)
        assert [record.payload for record in made.log.records(0)] == expected

    on_loop(tmp_path, use)
    assert payloads(tmp_path) == expected


def test_a_log_is_the_same_whoever_writes_its_records(tmp_path: Path) -> None:
    """Steps and new segments are made by the thread, between records of the disk writer."""
    expected = [bytes([65 + number % 26]) * (number * 37 % 300) for number in range(200)]

    async def use(made: OnLoop) -> None:
        for index, payload in enumerate(expected, 1):
            assert await made.propose(payload) == (index, Durability.DURABLE, "")
        assert len(set(made.threads)) == 2

    on_loop(tmp_path, use, segment_bytes=2000)
    assert payloads(tmp_path) == expected
    assert len(segments(tmp_path)) > 5


def test_a_record_that_cannot_be_written_is_in_doubt_until_the_log_is_recovered(
    tmp_path: Path,
) -> None:
    async def use(made: OnLoop) -> None:
        await made.propose(b"first")
        file = open_file_of(segments(tmp_path)[0])
        full = os.open("/dev/full", os.O_RDWR)
        # Reads give zeros, so nothing of the record is found.
        os.dup2(full, file)
        os.close(full)
        index, outcome, reason = await made.propose(b"lost")
        assert (index, outcome) == (2, Durability.UNKNOWN)
        assert reason.startswith("the log cannot be written: ")
        assert "No space left" in reason
        with pytest.raises(AssertionError, match="recover first"):
            made.log.propose(9, b"next")
        await asyncio.to_thread(made.log.recover)
        assert made.log.last_index == 1
        assert await made.propose(b"second") == (2, Durability.DURABLE, "")

    on_loop(tmp_path, use)
    assert payloads(tmp_path) == [b"first", b"second"]


def test_a_record_whose_sync_failed_is_written_again(tmp_path: Path) -> None:
    """It can be read back, though it may not be on the disk."""

    def new_writer() -> DiskWriter:
        return new_disk_writer(
            """
            static int fail_second(int file) {
              static int calls;
              return ++calls == 2 ? (errno = EIO, -1) : fdatasync(file);
            }
            #define fdatasync fail_second
            """
        )

    async def run() -> None:
        made = OnLoop(tmp_path, new_writer=new_writer)
        # Of the first one, the thread makes the segment.
        for index, payload in enumerate((b"first", b"second"), 1):
            assert await made.propose(payload) == (index, Durability.DURABLE, "")
        index, outcome, reason = await made.propose(b"third")
        assert (index, outcome) == (3, Durability.UNKNOWN)
        assert reason == "the log cannot be written: [Errno 5] Input/output error"
        await asyncio.to_thread(made.log.recover)
        assert await made.report() == (3, Durability.DURABLE, "")
        assert await made.propose(b"fourth") == (4, Durability.DURABLE, "")
        made.log.close()

    asyncio.run(run())
    assert payloads(tmp_path) == [b"first", b"second", b"third", b"fourth"]
    # The third is in both: the newer one counts.
    assert len(segments(tmp_path)) == 2


def test_uvloop_hears_of_the_end_as_well(tmp_path: Path) -> None:
    uvloop = pytest.importorskip("uvloop")

    async def run() -> None:
        made = OnLoop(tmp_path)
        main = threading.current_thread().name
        for index in range(1, 20):
            assert await made.propose(b"x" * index) == (index, Durability.DURABLE, "")
        assert made.threads[1:] == [main] * 18
        made.log.propose(19, b"last")
        made.log.leave_loop()
        await asyncio.to_thread(made.log.close)
        assert await made.report() == (20, Durability.DURABLE, "")

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())
    assert payloads(tmp_path)[-1] == b"last"


def test_closing_tells_what_became_of_the_proposal_under_way(tmp_path: Path) -> None:
    async def run() -> None:
        made = OnLoop(tmp_path)
        await made.propose(b"first")
        made.log.propose(1, b"x" * 3000)
        made.log.close()
        assert [record.index for record in made.listener.records] == [1, 2]
        assert await made.report() == (2, Durability.DURABLE, "")

    asyncio.run(run())
    assert payloads(tmp_path) == [b"first", b"x" * 3000]


def test_one_that_was_never_started_has_no_disk_writer(tmp_path: Path) -> None:
    threads = len(os.listdir("/proc/self/task"))
    log = FileLog(tmp_path, new_disk_writer=new_disk_writer)
    assert len(os.listdir("/proc/self/task")) == threads
    log.close()


def test_a_log_that_gets_no_disk_writer_has_its_thread(tmp_path: Path) -> None:
    with contextlib.closing(FileLog(tmp_path, new_disk_writer=lambda: None)) as log:
        Proposer(log).write(b"first", b"second")
    assert payloads(tmp_path) == [b"first", b"second"]


def test_it_is_closed_in_another_thread_once_it_has_left_the_loop(tmp_path: Path) -> None:
    async def run() -> None:
        made = OnLoop(tmp_path)
        await made.propose(b"first")
        made.log.propose(1, b"second")
        made.log.leave_loop()
        await asyncio.to_thread(made.log.close)
        assert await made.report() == (2, Durability.DURABLE, "")
        # Once, and not by the loop.
        assert made.threads[-1] != threading.current_thread().name
        assert [record.index for record in made.listener.records] == [1, 2]

    asyncio.run(run())
    assert payloads(tmp_path) == [b"first", b"second"]


class WithoutMemory:
    """A disk writer that finds no memory to say that it is done."""

    def __init__(self) -> None:
        self._writer = new_disk_writer()
        self.fails = False

    def take(self) -> float | None:
        taken = self._writer.take()
        if taken is not None and self.fails:
            self.fails = False
            raise MemoryError
        return taken

    def __getattr__(self, name: str) -> object:
        return getattr(self._writer, name)


def test_without_memory_for_the_outcome_it_is_in_doubt(tmp_path: Path) -> None:
    async def run() -> None:
        writer = WithoutMemory()
        made = OnLoop(tmp_path, new_writer=lambda: cast("DiskWriter", writer))
        await made.propose(b"first")
        writer.fails = True
        _, outcome, reason = await made.propose(b"second")
        assert (outcome, reason) == (Durability.UNKNOWN, "there is no memory for the log")
        await asyncio.to_thread(made.log.recover)
        assert made.log.last_index == 2
        made.log.close()

    asyncio.run(run())
    assert payloads(tmp_path) == [b"first", b"second"]


def test_closing_ends_the_threads_also_when_nobody_can_be_told(tmp_path: Path) -> None:
    async def run() -> FileLog:
        made = OnLoop(tmp_path)
        await made.propose(b"first")
        made.log.leave_loop()
        made.log.propose(1, b"second")
        return made.log

    log = asyncio.run(run())
    with pytest.raises(RuntimeError, match="closed"):
        log.close()
    assert {"paddock-log", "paddock-disk"}.isdisjoint(threads_here())
    log.close()
    assert payloads(tmp_path) == [b"first", b"second"]

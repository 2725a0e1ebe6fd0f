"""What a server writes down of the shared log, and that it never waits for it."""

from __future__ import annotations

import asyncio
import errno
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paddock.log.interface import Record
from paddock.server.cluster import recorder as module
from paddock.server.cluster.recorder import Recorder
from paddock.storage.cluster.history import HistoryFiles, read_history
from paddock.testing.virtual import in_virtual_time
from tests.unit.log.helpers import FailingDisk

FULL = "[Errno 28] No space left on device"


def record(index: int, size: int = 10) -> Record:
    return Record(index, bytes(size), b"a boot", index, index)


def make(folder: Path, disk: FailingDisk | None = None) -> Recorder:
    recorder = Recorder(HistoryFiles(folder / "history", 1 << 30, disk=disk))
    recorder.follow(b"service")
    return recorder


@contextmanager
def no_threads() -> Iterator[None]:
    """Let no thread begin."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        yield


def indices(folder: Path) -> list[int]:
    return [one.index for one in read_history(folder / "history") if isinstance(one, Record)]


@in_virtual_time
async def test_records_are_there_a_moment_later_and_all_of_them_after_the_end(
    tmp_path: Path,
) -> None:
    recorder = make(tmp_path)
    for index in (1, 2, 3):
        recorder.take(record(index))
    assert not (tmp_path / "history").exists()
    await asyncio.sleep(1)
    assert indices(tmp_path) == [1, 2, 3]
    recorder.take(record(4))
    await recorder.flush()
    assert indices(tmp_path) == [1, 2, 3, 4]
    recorder.take(record(5))
    await recorder.close()
    assert indices(tmp_path) == [1, 2, 3, 4, 5]


@in_virtual_time
async def test_without_records_nothing_is_made(tmp_path: Path) -> None:
    await make(tmp_path).close()
    assert list(tmp_path.iterdir()) == []


@in_virtual_time
async def test_after_an_error_there_is_a_gap_which_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    disk = FailingDisk()
    recorder = make(tmp_path, disk)
    recorder.take(record(1))
    await recorder.flush()
    with disk.fail("write", errno.ENOSPC):
        for index in range(2, 40):
            recorder.take(record(index))
            await asyncio.sleep(1)
    await asyncio.sleep(20)
    for index in (40, 41):
        recorder.take(record(index))
    await recorder.close()
    found = indices(tmp_path)
    assert (found[0], found[-2:]) == (1, [40, 41])
    assert len(found) < 6
    lines = [one.getMessage() for one in caplog.records if one.name == module.__name__]
    assert lines == [
        f"history has a gap, from record 2 on: {FULL}. The server is not affected",
        "history goes on at record 41",
    ]


@in_virtual_time
async def test_what_waits_is_bounded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WAITING_BYTES_MAX", 10_000)
    recorder = make(tmp_path)
    for index in range(1, 100):
        recorder.take(record(index, 1000))
    # It takes none for a while, also if there is room.
    await recorder.flush()
    recorder.take(record(100))
    await asyncio.sleep(20)
    recorder.take(record(101))
    await recorder.close()
    assert indices(tmp_path) == [*range(1, 8), 101]
    assert "from record 8 on: the disk is slower than the log" in caplog.text


@in_virtual_time
async def test_an_end_that_the_disk_refuses_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FailingDisk()
    recorder = make(tmp_path, disk)
    recorder.take(record(1))
    await recorder.flush()
    with disk.fail("sync"):
        await recorder.close()
    assert "the end of history may not be whole" in caplog.text


@in_virtual_time
async def test_what_was_set_aside_is_not_gone_on_with(tmp_path: Path) -> None:
    recorder = make(tmp_path)
    recorder.take(record(1))
    recorder.take(record(2))
    await recorder.set_aside()
    recorder.take(record(7))
    await recorder.close()
    assert indices(tmp_path) == [7]


@in_virtual_time
async def test_files_are_never_touched_on_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []
    for name in ("append", "set_aside", "close"):
        method = getattr(HistoryFiles, name)

        def noted(*args: object, method: Callable[..., None] = method) -> None:
            threads.append(threading.current_thread())
            method(*args)

        monkeypatch.setattr(HistoryFiles, name, noted)
    recorder = make(tmp_path)
    recorder.take(record(1))
    await recorder.set_aside()
    await recorder.close()
    assert len(threads) == 3
    assert threading.current_thread() not in threads


@in_virtual_time
async def test_a_history_that_cannot_be_set_aside_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = make(tmp_path)
    (tmp_path / "history").mkdir()
    (tmp_path / "history.aside").touch()
    await recorder.set_aside()
    with no_threads():
        await make(tmp_path).set_aside()
    recorder.take(record(7))
    await recorder.close()
    assert indices(tmp_path) == [7]
    assert caplog.text.count("an old history cannot be set aside") == 2
    assert "can't start new thread" in caplog.text


@in_virtual_time
async def test_without_a_thread_there_is_a_gap_which_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    # What could not be written does not count as what waits.
    monkeypatch.setattr(module, "WAITING_BYTES_MAX", 5_000)
    recorder = make(tmp_path)
    with no_threads():
        for index in range(1, 40):
            recorder.take(record(index, 1000))
            await asyncio.sleep(1)
        recorder.take(record(40))
        await recorder.flush()
    await asyncio.sleep(20)
    recorder.take(record(50))
    await recorder.close()
    # What was told to be left out does not come later.
    assert indices(tmp_path) == [50]
    lines = [one.getMessage() for one in caplog.records if one.name == module.__name__]
    assert lines == [
        "history has a gap, from record 1 on: can't start new thread. The server is not affected",
        "history goes on at record 50",
    ]


@in_virtual_time
async def test_a_server_ends_without_a_thread(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = make(tmp_path)
    with no_threads():
        recorder.take(record(1))
        await recorder.close()
    assert "history has a gap, from record 1 on" in caplog.text
    assert indices(tmp_path) == []

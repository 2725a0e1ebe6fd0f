"""The events of a running server: written once a second, in a thread, and never waited for."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from paddock.log.file.disk import Disk
from paddock.protocol.acl import Identity
from paddock.server.journal.event_writer import EVENTS_MAX, FAILURES_MAX, EventWriter
from paddock.state.access import Identities
from paddock.storage.events import (
    HANDSHAKE_FAILED,
    LOST,
    SERVER_STARTED,
    SLOW_SYNC,
    STALLED,
    Event,
    read_events,
)
from paddock.testing.virtual import in_virtual_time


class HeldDisk(Disk):
    """A disk on which a write takes until the test lets it go."""

    def __init__(self) -> None:
        self.is_writing = threading.Event()
        self.may_go = threading.Event()

    def write(self, file: int, data: bytes, offset: int) -> None:
        self.is_writing.set()
        assert self.may_go.wait(60)
        super().write(file, data, offset)


def writer(folder: Path, disk: Disk | None = None) -> EventWriter:
    loop = asyncio.get_running_loop()
    return EventWriter(folder / "events", lambda: int(loop.time() * 1000), lambda: 0x20, disk=disk)


def written(folder: Path) -> list[Event]:
    return list(read_events(folder / "events"))


@in_virtual_time
async def test_an_event_is_written_within_a_second_and_the_rest_at_the_end(tmp_path: Path) -> None:
    journal = writer(tmp_path)
    journal.server = 3
    await asyncio.sleep(0.5)
    journal.add(SLOW_SYNC, session=7, address="a:1", reason="why", seconds=1.25)
    await asyncio.sleep(0.9)
    assert written(tmp_path) == []
    await asyncio.sleep(0.2)
    first = Event(500, SLOW_SYNC, 0x20, 3, 7, "a:1", (), "why", {"seconds": 1.25})
    assert written(tmp_path) == [first]
    await asyncio.sleep(5)
    journal.add(STALLED)
    await asyncio.sleep(1.1)
    assert [event.time_ms for event in written(tmp_path)] == [500, 6600]
    journal.add(STALLED)
    journal.stop()
    journal.close()
    assert len(written(tmp_path)) == 3


@in_virtual_time
async def test_that_a_server_has_started_is_written_at_once(tmp_path: Path) -> None:
    """If it is killed now, the next one has to find that."""
    journal = writer(tmp_path)
    journal.add(STALLED)
    journal.add(SERVER_STARTED)
    await asyncio.sleep(0.01)
    assert [event.kind for event in written(tmp_path)] == [STALLED, SERVER_STARTED]
    journal.add(STALLED)
    await asyncio.sleep(1.1)
    assert len(written(tmp_path)) == 3
    journal.stop()
    journal.close()


@in_virtual_time
async def test_no_secret_is_written(tmp_path: Path) -> None:
    journal = writer(tmp_path)
    known = Identities((Identity("ip", "10.0.0.7"), Identity("digest", "alice:SECRET=")))
    journal.add(STALLED, identities=known)
    journal.stop()
    journal.close()
    (event,) = written(tmp_path)
    assert event.identities == ("ip:10.0.0.7", "digest:alice")


@in_virtual_time
async def test_a_flood_of_failed_handshakes_leaves_room_for_others(tmp_path: Path) -> None:
    journal = writer(tmp_path)
    for _ in range(2):
        for _ in range(FAILURES_MAX + 100):
            journal.add(HANDSHAKE_FAILED)
        journal.add(STALLED)
        await asyncio.sleep(1.5)
    journal.stop()
    journal.close()
    kinds = [event.kind for event in written(tmp_path)]
    assert kinds == [LOST, *[HANDSHAKE_FAILED] * FAILURES_MAX, STALLED] * 2
    assert [event.details for event in written(tmp_path) if event.details] == [{"count": 100}] * 2


def test_a_disk_that_hangs_stops_nobody(tmp_path: Path) -> None:
    """In real time: virtual time would wait for the thread."""
    disk = HeldDisk()

    async def scenario() -> None:
        journal = writer(tmp_path, disk)
        journal.add(STALLED)
        journal._hand_over()
        assert await asyncio.to_thread(disk.is_writing.wait, 60)
        # None of this waits.
        for _ in range(EVENTS_MAX + 10):
            journal.add(SLOW_SYNC)
        assert len(journal._gathered) == EVENTS_MAX
        disk.may_go.set()
        journal.stop()
        await asyncio.to_thread(journal.close)

    asyncio.run(scenario())
    kinds = [event.kind for event in written(tmp_path)]
    assert kinds == [STALLED, LOST, *[SLOW_SYNC] * EVENTS_MAX]


@in_virtual_time
async def test_events_that_no_thread_could_write_are_lost_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    journal = writer(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        for _ in range(2):
            journal.add(SLOW_SYNC)
            await asyncio.sleep(2)
    journal.add(STALLED)
    await asyncio.sleep(2)
    journal.stop()
    journal.close()
    found = [(event.kind, event.details) for event in written(tmp_path)]
    assert found == [(LOST, {"count": 2}), (STALLED, {})]

"""The events of whole servers, read from their data folders: two that share a log."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

from paddock.storage import events
from paddock.storage.events import Event, read_events
from paddock.testing.clock import VirtualClockLoop
from paddock.testing.virtual import in_virtual_time
from tests.unit.server.cluster.stage import EPOCH_MS, Stage, T, connect


def of(folder: Path, kind: str) -> list[Event]:
    return [event for event in read_events(folder / events.FOLDER) if event.kind == kind]


def kinds(folder: Path) -> list[str]:
    return [event.kind for event in read_events(folder / events.FOLDER)]


@in_virtual_time
async def test_a_server_writes_down_its_life_from_start_to_stop(tmp_path: Path) -> None:
    stage = Stage()
    await stage.start("a", tmp_path)
    async with connect(stage) as client:
        await client.create("/n", ephemeral=True)
        await stage.servers["a"].take_snapshot()
    other = connect(stage)
    await other.__aenter__()
    await stage.stop()
    await other.__aexit__(None, None, None)
    assert kinds(tmp_path) == [
        events.MEMBER_JOINED,
        events.SERVER_STARTED,
        # History begins with one.
        events.SNAPSHOT_TAKEN,
        events.SESSION_OPENED,
        events.SNAPSHOT_TAKEN,
        events.SESSION_ENDED,
        events.CONNECTION_ENDED,
        events.SESSION_OPENED,
        events.SERVER_STOPPING,
        events.CONNECTION_ENDED,
        events.MEMBER_LEFT,
        events.SNAPSHOT_TAKEN,
        events.SERVER_STOPPED,
    ]
    found = list(read_events(tmp_path / events.FOLDER))
    assert {event.server for event in found} == {1}
    assert all(EPOCH_MS <= event.time_ms < EPOCH_MS + 60_000 for event in found)
    assert [event.zxid for event in found] == sorted(event.zxid for event in found)
    assert [event.reason for event in of(tmp_path, events.CONNECTION_ENDED)] == [
        *(events.CLOSED, events.STOPPING)
    ]
    (ended,) = of(tmp_path, events.SESSION_ENDED)
    assert (ended.reason, ended.details["ephemerals"]) == (events.CLOSED, 1)
    assert ended.address.startswith("127.0.0.1:")


@in_virtual_time
async def test_a_server_that_is_cut_off_loses_its_sessions_to_another(tmp_path: Path) -> None:
    stage = Stage()
    for name in ("a", "b"):
        await stage.start(name, tmp_path / name)
    async with connect(stage, "b"):
        stage.etcd.link("b").cut()
        await asyncio.sleep(1.5 * T)
        stage.etcd.link("b").heal()
        await asyncio.sleep(3 * T)
    await stage.stop()
    a, b = tmp_path / "a", tmp_path / "b"
    (silent,) = of(a, events.MEMBER_SILENT)
    assert (silent.server, silent.details["member"]) == (1, 2)
    assert silent.details["seconds"] >= T
    (deposed,) = of(a, events.MEMBER_DEPOSED)
    assert (deposed.details["member"], deposed.details["heir"]) == (2, 1)
    assert [event.details for event in of(a, events.SESSIONS_ADOPTED)] == [{"count": 1}]
    (lost,) = of(b, events.OUT_OF_SERVICE)
    assert "its lease is over" in lost.details["text"]
    assert of(b, events.CONNECTION_ENDED)[0].reason == events.NOT_SERVING
    (again,) = of(b, events.IN_SERVICE)
    assert again.server == 3
    # The client has come back to the only server that it knows.
    attached = of(b, events.SESSION_ATTACHED)[-1]
    assert (attached.server, attached.details["former_server"]) == (3, 1)
    assert of(b, events.HANDSHAKE_FAILED)[0].reason == events.NOT_SERVING


@in_virtual_time
async def test_a_server_that_was_paused_writes_it_down(tmp_path: Path) -> None:
    stage = Stage()
    await stage.start("a", tmp_path)
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualClockLoop)
    await asyncio.sleep(1)
    loop.stall(10.0)
    await asyncio.sleep(2 * T)
    await stage.stop()
    counted = Counter(kinds(tmp_path))
    assert (counted[events.STALLED], counted[events.OUT_OF_SERVICE]) == (1, 1)
    (stalled,) = of(tmp_path, events.STALLED)
    assert 9 <= stalled.details["seconds"] <= 10


@in_virtual_time
async def test_a_server_without_a_folder_writes_nothing(tmp_path: Path) -> None:
    stage = Stage()
    server = await stage.start("a")
    async with connect(stage):
        journal = stage.core(server).replica.journal
        assert type(journal).__name__ == "Journal"
    await stage.stop()

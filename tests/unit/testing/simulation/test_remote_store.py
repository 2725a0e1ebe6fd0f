"""The way from a server's process to etcd's: what was sent is carried out, whoever has died."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from paddock.log.etcd.store import StoreError
from paddock.log.interface import Record
from paddock.testing.simulation.network import SimulatedNetwork
from paddock.testing.simulation.process import ProcessLoop, new_process
from paddock.testing.simulation.remote_store import RemoteStore, WorldEtcd
from paddock.testing.simulation.world_loop import new_world

BOOT = b"12345678"


def with_etcd(main: Callable[[WorldEtcd, ProcessLoop], Coroutine[Any, Any, None]]) -> None:
    loop = new_world()
    network = SimulatedNetwork(loop, "test", 0.01)
    etcd = WorldEtcd(1, new_process(loop, network, "etcd", "10.0.3.1"))
    process = new_process(loop, network, "s1", "10.0.0.1", rate=1.1)
    try:
        loop.run_until_complete(main(etcd, process))
        for one in network.processes:
            one.bury()
    finally:
        loop.close()


def test_an_append_is_answered_and_remembered() -> None:
    async def main(etcd: WorldEtcd, process: ProcessLoop) -> None:
        store = RemoteStore(process, etcd, "s1")
        task = process.spawn(store.append(BOOT, 0, b"batch"))
        await asyncio.sleep(1)
        assert task.result() is True
        assert [record.payload for _, record in etcd.committed] == [b"batch"]

    with_etcd(main)


def test_what_a_dead_process_has_sent_is_carried_out_all_the_same() -> None:
    async def main(etcd: WorldEtcd, process: ProcessLoop) -> None:
        task = process.spawn(RemoteStore(process, etcd, "s1").append(BOOT, 0, b"batch"))
        # It is sent in this pass, and takes a while.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        process.kill()
        await asyncio.sleep(1)
        assert not task.done()
        assert len(etcd.committed) == 1

    with_etcd(main)


def test_a_watch_shows_what_others_append_until_it_breaks() -> None:
    async def main(etcd: WorldEtcd, process: ProcessLoop) -> None:
        seen: list[Record] = []
        store = RemoteStore(process, etcd, "s1")

        async def follow() -> None:
            async for record in store.tail(0):
                seen.append(record)  # noqa: PERF401

        task = process.spawn(follow())
        await asyncio.sleep(1)
        other = RemoteStore(etcd.process, etcd, "s2")
        etcd.process.spawn(other.append(BOOT, 0, b"one"))
        await asyncio.sleep(1)
        assert [record.payload for record in seen] == [b"one"]
        process.pause()
        etcd.process.spawn(other.append(BOOT, 1, b"two"))
        await asyncio.sleep(1)
        assert len(seen) == 1
        process.resume()
        await asyncio.sleep(1)
        assert [record.index for record in seen] == [1, 2]
        etcd.link("s1").break_streams()
        await asyncio.sleep(1)
        with pytest.raises(StoreError):
            task.result()

    with_etcd(main)


def test_the_watch_of_a_dead_process_is_closed() -> None:
    async def main(etcd: WorldEtcd, process: ProcessLoop) -> None:
        store = RemoteStore(process, etcd, "s1")

        async def follow() -> None:
            async for _ in store.tail(0):
                pass

        process.spawn(follow())
        await asyncio.sleep(1)
        assert len(etcd.link("s1").streams) == 1
        process.kill()
        store.abandon()
        await asyncio.sleep(1)
        assert etcd.link("s1").streams == []

    with_etcd(main)

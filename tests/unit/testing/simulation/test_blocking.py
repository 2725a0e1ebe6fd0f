"""Blocking code in a simulated world."""

import asyncio
import threading
import time

import pytest

import paddock
import paddock.sync
from paddock.sync.recipes import Lock
from paddock.testing.simulation import Faults, SimulatedWorld, WorldFailedError, simulated


@simulated(seeds=15)
async def test_a_lock_of_blocking_code_is_held_by_one(world: SimulatedWorld) -> None:
    async def prepare() -> None:
        async with world.client() as client:
            await client.create("/log")

    def work() -> None:
        for _ in range(3):
            with (
                paddock.sync.connect(world.hosts, session_timeout=4) as client,
                Lock(client, "/lock") as grant,
            ):
                for _ in range(2):
                    with grant.guard() as transaction:
                        transaction.create("/log/n-", b"%d" % grant.token, sequential=True)
                    time.sleep(1)

    await prepare()
    for name in ("alice", "bob"):
        world.spawn(name, work, may_raise=(paddock.PaddockError, TimeoutError))
    await world.rest()
    tokens = [int(write.data or b"") for write in world.written("/log/n-")]
    assert tokens == sorted(tokens)


def play(work: object) -> float:
    times = []

    @simulated(seeds=1, faults=Faults.NONE)
    async def test(world: SimulatedWorld) -> None:
        assert callable(work)
        world.spawn("alice", work, world.hosts)
        await world.rest()
        times.append(world.now)

    test()
    return times[0]


def test_sleeping_takes_virtual_time() -> None:
    assert play(lambda hosts: time.sleep(100)) >= 100


def test_a_deadline_is_one_of_virtual_time() -> None:
    def work(hosts: str) -> None:
        with paddock.sync.connect(hosts) as client, paddock.sync.connect(hosts) as other:
            with Lock(client, "/lock"):
                before = time.monotonic()
                with pytest.raises(TimeoutError, match="no answer in time"):
                    with paddock.sync.timeout(20):
                        Lock(other, "/lock").acquire()
                assert 20 <= time.monotonic() - before < 21

    play(work)


def test_callbacks_of_blocking_clients_are_refused() -> None:
    def work(hosts: str) -> None:
        with paddock.sync.connect(hosts) as client:
            client.exists("/a", watch=print)
            client.create("/a")
            time.sleep(1)

    with pytest.raises(WorldFailedError, match="threads are not simulated"):
        play(work)


def test_threads_are_unwound_with_their_world() -> None:
    unwound = []

    @simulated(seeds=1, faults=Faults.NONE)
    async def test(world: SimulatedWorld) -> None:
        def work() -> None:
            try:
                time.sleep(1000)
            finally:
                unwound.append(world.now)

        world.spawn("alice", work, background=True)
        await asyncio.sleep(1)
        await world.rest()
        assert not unwound

    test()
    assert unwound
    assert not [thread for thread in threading.enumerate() if thread.name == "alice"]

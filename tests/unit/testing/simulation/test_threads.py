"""Threads of simulated processes: one runs at a time, and time passes only where it is let."""

from __future__ import annotations

import asyncio

from paddock.testing.simulation.network import SimulatedNetwork
from paddock.testing.simulation.process import ProcessLoop, new_process
from paddock.testing.simulation.threads import SimulatedQueue, SimulatedThread, pause
from tests.unit.testing.simulation.test_process import in_world


class Work:
    """A thread that takes items, a second each, and what it has done."""

    def __init__(self, process: ProcessLoop) -> None:
        self.done: list[tuple[str, float]] = []
        self.queue: SimulatedQueue[str | None] = SimulatedQueue()
        self.has_ended = False
        self._process = process
        with process.enter():
            self.thread = SimulatedThread(target=self._work)
            self.thread.start()

    def _work(self) -> None:
        while (item := self.queue.get()) is not None:
            pause(1.0)
            self.done.append((item, self._process.time()))
        self.has_ended = True


def worker(network: SimulatedNetwork) -> tuple[ProcessLoop, Work]:
    process = new_process(network.world, network, "one", "10.0.0.1")
    return process, Work(process)


def test_a_thread_takes_virtual_time() -> None:
    async def main(network: SimulatedNetwork) -> None:
        _, work = worker(network)
        await asyncio.sleep(5)
        work.queue.put("a")
        work.queue.put("b")
        await asyncio.sleep(1.5)
        assert work.done == [("a", 6.0)]
        await asyncio.sleep(1)
        assert work.done == [("a", 6.0), ("b", 7.0)]

    in_world(main)


def test_who_waits_for_a_thread_waits_for_no_time() -> None:
    async def main(network: SimulatedNetwork) -> None:
        process, work = worker(network)
        work.queue.put("a")
        work.queue.put(None)
        with process.enter():
            work.thread.join()
        assert work.done == [("a", 0.0)]
        assert work.has_ended

    in_world(main)


def test_a_thread_of_a_killed_process_does_nothing_more() -> None:
    seen: list[Work] = []

    async def main(network: SimulatedNetwork) -> None:
        process, work = worker(network)
        seen.append(work)
        work.queue.put("a")
        await asyncio.sleep(0.5)
        process.kill()
        work.queue.put("b")
        await asyncio.sleep(5)
        assert work.done == []

    # Its world buries it.
    in_world(main)
    assert seen[0].done == []
    assert not seen[0].has_ended


def test_no_time_passes_on_the_loop_itself() -> None:
    async def main(network: SimulatedNetwork) -> None:
        process, _ = worker(network)
        with process.enter():
            pause(1.0)
        assert process.time() == 0.0

    in_world(main)

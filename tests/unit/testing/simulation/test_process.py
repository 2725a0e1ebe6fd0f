"""Simulated processes: clocks, pauses, deaths."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from paddock.testing.simulation.network import SimulatedNetwork
from paddock.testing.simulation.process import ProcessLoop, new_process
from paddock.testing.simulation.world_loop import new_world


def in_world(main: Callable[[SimulatedNetwork], Coroutine[Any, Any, None]]) -> None:
    loop = new_world()
    network = SimulatedNetwork(loop, "test", delay_max=0.01)
    try:
        loop.run_until_complete(main(network))
        for process in network.processes:
            process.bury()
    finally:
        loop.close()


def process_of(network: SimulatedNetwork, *, rate: float = 1.0) -> ProcessLoop:
    return new_process(network.world, network, "one", "10.0.0.1", rate=rate)


def test_a_process_finds_its_own_loop_and_the_world_its_own() -> None:
    async def main(network: SimulatedNetwork) -> None:
        process = process_of(network)
        seen: list[object] = []

        async def look() -> None:
            seen.append(asyncio.get_running_loop())
            await asyncio.sleep(1)
            seen.append(asyncio.get_running_loop())

        process.spawn(look())
        await asyncio.sleep(2)
        assert seen == [process, process]
        assert asyncio.get_running_loop() is network.world

    in_world(main)


def test_a_fast_clock_shows_more_time_and_has_shorter_timers() -> None:
    async def main(network: SimulatedNetwork) -> None:
        process = process_of(network, rate=2.0)
        woke: list[tuple[float, float]] = []

        async def sleep() -> None:
            await asyncio.sleep(10)
            woke.append((process.time(), process.true_time()))

        process.spawn(sleep())
        await asyncio.sleep(6)
        assert [(round(ours, 6), round(true, 6)) for ours, true in woke] == [(10.0, 5.0)]

    in_world(main)


def test_a_paused_process_does_nothing_and_all_of_it_later_in_order() -> None:
    async def main(network: SimulatedNetwork) -> None:
        process = process_of(network)
        seen: list[tuple[str, float]] = []
        for seconds in (1.0, 2.0, 3.0):
            process.call_later(seconds, lambda at: seen.append((at, process.time())), str(seconds))
        process.call_soon(seen.append, ("now", 0.0))
        await asyncio.sleep(1.5)
        process.pause()
        await asyncio.sleep(10)
        assert [name for name, _ in seen] == ["now", "1.0"]
        process.resume()
        await asyncio.sleep(0.1)
        assert [name for name, _ in seen] == ["now", "1.0", "2.0", "3.0"]
        assert seen[-1][1] >= 11.5

    in_world(main)


def test_a_process_that_goes_on_may_look_at_its_sockets_first() -> None:
    async def main(network: SimulatedNetwork) -> None:
        process = process_of(network)
        found: list[str] = []
        for _ in range(20):
            process.call_later(1.0, found.append, "timer")
            process.pause()
            await asyncio.sleep(5)
            process.call_soon(found.append, "socket")
            await asyncio.sleep(5)
            process.resume()
            await asyncio.sleep(0.5)
        orders = {*zip(found[::2], found[1::2], strict=True)}
        assert orders == {("timer", "socket"), ("socket", "timer")}

    in_world(main)


def test_a_killed_process_never_runs_again_not_even_its_cleanup() -> None:
    async def main(network: SimulatedNetwork) -> None:
        process = process_of(network)
        seen: list[str] = []

        async def work() -> None:
            try:
                await asyncio.sleep(1)
                seen.append("worked")
            finally:
                seen.append("cleaned up")

        process.spawn(work())
        await asyncio.sleep(0.5)
        process.kill()
        process.call_soon(seen.append, "called")
        await asyncio.sleep(5)
        assert seen == []

    in_world(main)


def test_what_would_run_in_a_thread_runs_at_once_and_is_known_soon() -> None:
    async def main(network: SimulatedNetwork) -> None:
        process = process_of(network)
        results: list[object] = []

        async def work() -> None:
            results.append(await process.run_in_executor(None, int, "7"))
            try:
                await process.run_in_executor(None, int, "x")
            except ValueError as error:
                results.append(type(error))

        process.spawn(work())
        await asyncio.sleep(1)
        assert results == [7, ValueError]

    in_world(main)


def test_what_a_callback_raises_is_kept() -> None:
    async def main(network: SimulatedNetwork) -> None:
        process = process_of(network)
        process.call_soon(int, "x")
        await asyncio.sleep(0.1)
        assert [type(one["exception"]) for one in process.failures] == [ValueError]

    in_world(main)


def test_a_delay_that_rounding_would_lose_passes() -> None:
    async def main(network: SimulatedNetwork) -> None:
        process = process_of(network, rate=1.1)
        times: list[float] = []

        async def wait() -> None:
            await asyncio.sleep(20.1)
            times.append(process.time())
            await asyncio.sleep(1e-18)
            times.append(process.time())

        process.spawn(wait())
        await asyncio.sleep(30)
        assert times[0] < times[1]

    in_world(main)

"""The loop of a world: order, virtual time, an end in any case."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from paddock.testing.simulation import world_loop as module
from paddock.testing.simulation.network import SimulatedNetwork
from paddock.testing.simulation.process import new_process
from paddock.testing.simulation.world_loop import EndlessError, new_world
from tests.unit.testing.simulation.test_process import in_world


def test_what_was_scheduled_first_is_called_first() -> None:
    loop = new_world()
    seen: list[str] = []

    async def main() -> float:
        loop.call_later(2.0, seen.append, "at 2")
        loop.call_later(1.0, seen.append, "at 1")
        loop.call_later(1.0, seen.append, "at 1 again")
        loop.call_at(-1.0, seen.append, "in the past")
        loop.call_soon(seen.append, "now")
        loop.call_later(1.5, seen.append, "cancelled").cancel()
        await asyncio.sleep(3)
        return loop.time()

    assert loop.run_until_complete(main()) == 3.0
    assert seen == ["in the past", "now", "at 1", "at 1 again", "at 2"]


def test_a_world_in_which_everything_waits_is_ended() -> None:
    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(RuntimeError, match="everything waits"):
        new_world().run_until_complete(main())


def test_what_a_callback_of_the_world_raises_ends_it() -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_soon(int, "x")
        await asyncio.sleep(1)

    with pytest.raises(ValueError, match="invalid literal"):
        new_world().run_until_complete(main())


def test_a_world_in_which_time_stands_still_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CALLS_MAX", 1_000)

    async def main(network: SimulatedNetwork) -> None:
        def again() -> None:
            network.world.call_soon(again)

        again()
        await asyncio.sleep(1)

    with pytest.raises(EndlessError, match="time stands still"):
        in_world(main)


def test_a_world_may_be_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CALLS_MAX", 100)

    async def main(network: SimulatedNetwork) -> None:
        for _ in range(1_000):
            await asyncio.sleep(0.1)
        assert round(network.world.now) == 100

    in_world(main)


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_generator_is_closed_by_the_process_that_left_it(is_killed: bool) -> None:
    closed_by: list[object] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            closed_by.append(asyncio.get_running_loop())

    async def leave(held: list[object]) -> None:
        held.append(begun := numbers())
        await anext(begun)

    async def main(network: SimulatedNetwork) -> None:
        process = new_process(network.world, network, "p", "10.0.1.1")
        held: list[object] = []
        process.spawn(leave(held))
        await asyncio.sleep(1)
        if is_killed:
            process.kill()
        held.clear()
        await asyncio.sleep(2)
        assert closed_by == ([] if is_killed else [process])

    in_world(main)

"""The loop of a world: order, virtual time, an end in any case."""

import asyncio

import pytest

from paddock.testing.simulation import world_loop as module
from paddock.testing.simulation.network import SimulatedNetwork
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


@pytest.mark.parametrize(
    ("pause", "said"), [(0.0, "time stands still at 0.000 s"), (0.01, "no end after 1001 calls")]
)
def test_a_world_without_an_end_is_ended(
    monkeypatch: pytest.MonkeyPatch, pause: float, said: str
) -> None:
    monkeypatch.setattr(module, "_CALLS_MAX", 1_000)
    monkeypatch.setattr(module, "_STILL_CALLS_MAX", 1_000)

    async def main(network: SimulatedNetwork) -> None:
        def again() -> None:
            network.world.call_later(pause, again)

        again()
        await asyncio.sleep(1_000)

    with pytest.raises(EndlessError, match=said):
        in_world(main)

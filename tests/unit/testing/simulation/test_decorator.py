"""`@simulated`: seeds, failures with their story, and what is refused."""

import asyncio
import functools
import inspect
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import paddock
from paddock.testing.simulation import Faults, SimulatedWorld, WorldFailedError, simulated
from paddock.testing.simulation.decorator import run_user_world
from paddock.testing.simulation.user_plan import make_user_plan
from paddock.testing.simulation.user_process import SimulationError

PRINTS_TRACE = """
import hashlib, io
from paddock.testing.simulation.decorator import run_user_world
from paddock.testing.simulation.user_plan import Faults, make_user_plan
from tests.unit.testing.simulation.test_decorator import everybody_writes
for seed in (1, 2, 3):
    outcome = run_user_world(make_user_plan(seed, 1, Faults.ALL, 20.0), everybody_writes, {})
    text = io.StringIO()
    outcome.history.dump(text)
    print(hashlib.sha256(text.getvalue().encode()).hexdigest())
"""


async def everybody_writes(world: SimulatedWorld) -> None:
    async def write(name: str) -> None:
        async with world.client(session_timeout=4) as client:
            for number in range(5):
                await client.create(f"/{name}-{number}", f"{random.random()}".encode())
                await asyncio.sleep(random.uniform(0, 2))

    for name in ("alice", "bob"):
        world.spawn(name, write, name, may_raise=paddock.PaddockError)
    await world.rest()


def test_a_test_runs_in_a_world_for_each_seed() -> None:
    seeds = []

    @simulated(seeds=3)
    async def count(world: SimulatedWorld) -> None:
        seeds.append(world.seed)

    count()
    assert seeds == [1, 2, 3]


def test_the_environment_chooses_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = []

    @simulated(seeds=3)
    async def count(world: SimulatedWorld) -> None:
        seeds.append(world.seed)

    monkeypatch.setenv("PADDOCK_SEEDS", "17")
    count()
    monkeypatch.setenv("PADDOCK_SEEDS", "5:7")
    count()
    assert seeds == [17, 5, 6]
    monkeypatch.setenv("PADDOCK_SEEDS", "x")
    with pytest.raises(SimulationError, match="expected 17"):
        count()


def test_the_other_arguments_are_fixtures() -> None:
    @simulated(seeds=1)
    async def takes(world: SimulatedWorld, tmp_path: str) -> None:
        assert tmp_path == "here"

    assert [*inspect.signature(takes).parameters] == ["tmp_path"]
    takes(tmp_path="here")


def test_a_failure_has_its_seed_its_shrunk_story_and_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "test_mine.py::test_it (call)")

    @simulated(seeds=50, faults=Faults.PAUSES)
    async def fails_after_a_pause(world: SimulatedWorld) -> None:
        async def work() -> None:
            for _ in range(20):
                before = world.now
                await asyncio.sleep(1)
                assert world.now - before < 3, "too late"

        world.spawn("alice", work)
        world.spawn("bob", work)

    with pytest.raises(WorldFailedError) as failed:
        fails_after_a_pause()
    first, *story = str(failed.value).splitlines()
    assert first.startswith("seed ")
    assert first.endswith("AssertionError: too late")
    assert "to 1 server, 1 fault:" in str(failed.value)
    assert sum(" is paused for " in line for line in story) == 1
    seed = first.split()[1].rstrip(":")
    assert story[-1] == f"To play it again:  PADDOCK_SEEDS={seed} pytest test_mine.py::test_it"
    assert isinstance(failed.value.__cause__, AssertionError)


def test_what_fails_once_and_not_again_is_said_to() -> None:
    times = []

    @simulated(seeds=1)
    async def fails_once(world: SimulatedWorld) -> None:
        times.append(1)
        assert len(times) > 1

    with pytest.raises(WorldFailedError, match="did not fail when it was played again"):
        fails_once()


def test_a_test_that_no_fault_meets_fails() -> None:
    @simulated(seeds=20, faults=Faults.PAUSES)
    async def is_over_at_once(world: SimulatedWorld) -> None:
        pass

    with pytest.raises(WorldFailedError, match="no fault came while the test ran"):
        is_over_at_once()


def test_a_seed_has_one_trace_in_every_process() -> None:
    def traces(hash_seed: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", PRINTS_TRACE],
            env=dict(os.environ, PYTHONHASHSEED=hash_seed),
            cwd=Path(__file__).parents[4],
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    assert len(set(traces("1").split())) == 3
    assert traces("1") == traces("4711")


def test_a_world_in_which_time_stands_still_is_noticed() -> None:
    @simulated(seeds=1)
    async def goes_round(world: SimulatedWorld) -> None:
        while True:  # noqa: ASYNC110
            await asyncio.sleep(0)

    with pytest.raises(SimulationError, match="time stands still"):
        goes_round()


def test_a_world_does_not_run_inside_an_event_loop() -> None:
    async def main() -> None:
        run = functools.partial(make_user_plan, 1, 1, Faults.NONE, 1.0)
        run_user_world(run(), everybody_writes, {})

    with pytest.raises(SimulationError, match="inside an event loop"):
        asyncio.run(main())


def test_only_a_coroutine_function_with_a_world_is_simulated() -> None:
    async def has_none() -> None: ...

    with pytest.raises(TypeError, match="has no argument `world`"):
        simulated()(has_none)
    with pytest.raises(TypeError, match="is not an `async def`"):
        simulated()(lambda world: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(ValueError, match="seeds"):
        simulated(seeds=0)

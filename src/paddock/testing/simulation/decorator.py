"""`@simulated`: a test that is run in many simulated worlds, each from a seed.

    @simulated(seeds=200)
    async def test_one_at_a_time(world):
        async def work():
            async with world.client() as client, Lock(client, "/lock"):
                ...

        world.spawn("alice", work, may_raise=paddock.PaddockError)
        world.spawn("bob", work, may_raise=paddock.PaddockError)
        await world.rest()
        assert ...

The first world that fails is shrunk: faults are left out, and what is left is made simpler, as long
as it fails in the same way. The error has the seed, the story of the shrunk world, and the command
that plays it again.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from paddock.testing.simulation.blocking import simulated_portals
from paddock.testing.simulation.history import History
from paddock.testing.simulation.shrink import leave_out
from paddock.testing.simulation.surroundings import surroundings
from paddock.testing.simulation.user_handle import Failure
from paddock.testing.simulation.user_plan import Faults, UserPlan, make_user_plan
from paddock.testing.simulation.user_process import SimulationError, simulated_library
from paddock.testing.simulation.user_stage import Stage
from paddock.testing.simulation.user_story import tell_user
from paddock.testing.simulation.user_world import SimulatedWorld
from paddock.testing.simulation.world_loop import EndlessError

Test = Callable[..., Awaitable[None]]

SEEDS_VARIABLE: Final = "PADDOCK_SEEDS"
_ATTEMPTS_MAX: Final = 60
_SHRINK_SECONDS_MAX: Final = 120.0
# From so many worlds on, some fault must have come while a test ran.
_WORLDS_FOR_FAULTS: Final = 20
_STORY_LINES_MAX: Final = 400


class WorldFailedError(AssertionError):
    """A test has failed in a simulated world; the message has its seed and its story."""


@dataclass
class Outcome:
    """What came of one world."""

    plan: UserPlan
    failures: list[Failure]
    history: History = field(repr=False)
    # How many faults came while it ran, and how long it took in its own time.
    faults: int
    seconds: float


def simulated(
    *,
    seeds: int = 100,
    servers: int = 1,
    faults: Faults = Faults.ALL,
    seconds: float = 40.0,
) -> Callable[[Test], Callable[..., None]]:
    """Have a test run in `seeds` simulated worlds, the first of which that fails is shown.

        from paddock.testing.simulation import simulated


        @simulated(seeds=200)
        async def test_a_node_can_be_made(world):
            async with world.client() as client:
                await client.create("/a")

    The test is an `async def` with an argument `world`, a SimulatedWorld; pytest hands over all
    other arguments as fixtures, once for all worlds. `servers` is 1, or more for a cluster with a
    model of etcd. `faults` are the kinds of faults, which come in the first `seconds` of a world,
    in its own time.

    `PADDOCK_SEEDS=17` in the environment plays one seed, `PADDOCK_SEEDS=1:1001` a thousand.
    """
    if seeds < 1:
        raise ValueError(f"seeds: {seeds!r} is no number of worlds")

    def decorate(test: Test) -> Callable[..., None]:
        if not inspect.iscoroutinefunction(test):
            raise TypeError(f"simulated: {test!r} is not an `async def`")
        signature = inspect.signature(test)
        if "world" not in signature.parameters:
            raise TypeError(f"simulated: {test.__name__} has no argument `world`")

        def plan(seed: int) -> UserPlan:
            return make_user_plan(seed, servers, faults, seconds)

        @functools.wraps(test)
        def run(*arguments: Any, **fixtures: Any) -> None:
            __tracebackhide__ = True
            _run_seeds(functools.partial(test, *arguments), fixtures, _seeds(seeds), plan)

        others = [one for one in signature.parameters.values() if one.name != "world"]
        # Where pytest looks for the names of fixtures.
        run.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return run

    return decorate


def run_user_world(plan: UserPlan, test: Test, fixtures: dict[str, Any]) -> Outcome:
    """Run a test in one world."""
    if asyncio.events._get_running_loop() is not None:
        raise SimulationError("a simulated world cannot run inside an event loop")
    with (
        surroundings() as (loop, folder),
        simulated_portals(),
        simulated_library(f"{plan.seed}"),
    ):
        stage = Stage(plan, loop, folder)
        world = SimulatedWorld(stage)
        try:
            loop.run_until_complete(stage.run(lambda: test(**fixtures, world=world)))
            seconds, failures = loop.time(), stage.failures()
        except EndlessError as error:
            raise SimulationError(str(error)) from None
        finally:
            stage.bury()
    return Outcome(plan, failures, stage.service.history(), stage.faults.done, seconds)


def _run_seeds(
    test: Test, fixtures: dict[str, Any], seeds: Sequence[int], plan: Callable[[int], UserPlan]
) -> None:
    __tracebackhide__ = True
    faults = 0
    has_faults = False
    for seed in seeds:
        outcome = run_user_world(plan(seed), test, fixtures)
        faults += outcome.faults
        has_faults = has_faults or bool(outcome.plan.faults)
        if outcome.failures:
            error = outcome.failures[0].error
            raise WorldFailedError(_report(outcome, test, fixtures, len(seeds))) from error
    if has_faults and not faults and len(seeds) >= _WORLDS_FOR_FAULTS:
        raise WorldFailedError(
            f"no fault came while the test ran, in any of {len(seeds)} worlds: let it go on for"
            " longer in each of them, or have the faults earlier (`seconds`)"
        )


def _report(outcome: Outcome, test: Test, fixtures: dict[str, Any], seeds: int) -> str:
    first = outcome
    outcome, attempts = _shrink(outcome, test, fixtures)
    failure = outcome.failures[0]
    lines = [f"seed {first.plan.seed}: {failure}", ""]
    if attempts < 0:
        lines += [
            "It did not fail when it was played again: the test depends on something that is not",
            "simulated, such as real time, the order of a set, or an unseeded random.Random().",
            "",
        ]
    lines += [f"The story, shrunk from {first.plan} to {outcome.plan}:", ""]
    story = tell_user(outcome.history)
    if len(story) > _STORY_LINES_MAX:
        lines.append(f"... {len(story) - _STORY_LINES_MAX} lines before ...")
    lines += story[-_STORY_LINES_MAX:]
    lines += ["", f"To play it again:  {_command(first.plan.seed, test)}"]
    return "\n".join(lines)


def _shrink(outcome: Outcome, test: Test, fixtures: dict[str, Any]) -> tuple[Outcome, int]:
    """Return a smaller world that fails in the same way, and the attempts; -1 if none does."""
    kind = outcome.failures[0].kind()
    until = time.monotonic() + _SHRINK_SECONDS_MAX
    attempts = 0

    def fails(plan: UserPlan) -> bool:
        nonlocal outcome, attempts
        if attempts >= _ATTEMPTS_MAX or (attempts and time.monotonic() > until):
            return False
        attempts += 1
        other = run_user_world(plan, test, fixtures)
        if not other.failures or other.failures[0].kind() != kind:
            return False
        outcome = other
        return True

    if not fails(outcome.plan):
        return outcome, -1
    for simpler in outcome.plan.simpler():
        fails(simpler)
    leave_out(list(outcome.plan.faults), lambda faults: fails(outcome.plan.with_faults(faults)))
    for simpler in outcome.plan.simpler():
        fails(simpler)
    return outcome, attempts


def _command(seed: int, test: Test) -> str:
    # `file::test (call)`.
    name = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    if not name:
        function = test.func if isinstance(test, functools.partial) else test
        return f"{SEEDS_VARIABLE}={seed}, and call {function.__name__}()"
    return f"{SEEDS_VARIABLE}={seed} pytest {name}"


def _seeds(count: int) -> Sequence[int]:
    text = os.environ.get(SEEDS_VARIABLE, "")
    if not text:
        return range(1, count + 1)
    first, colon, end = text.partition(":")
    try:
        return range(int(first), int(end)) if colon else [int(first)]
    except ValueError:
        raise SimulationError(f"{SEEDS_VARIABLE}={text}: expected 17, or 1:1001") from None

"""A user's world, as its test sees it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import paddock
from paddock.client.client import Client
from paddock.testing.simulation.user_handle import TEST, Errors, ProcessHandle
from paddock.testing.simulation.user_process import SimulationError, current_process
from paddock.testing.simulation.user_stage import ELSEWHERE, Stage
from paddock.testing.simulation.writes import Write, writes_of

T = TypeVar("T")


class SimulatedWorld:
    """A world of one seed: servers, the test's processes, and faults. Tests get it as `world`.

        from paddock.testing.simulation import simulated


        @simulated(seeds=20)
        async def test_a_node_is_made(world):
            async def work():
                async with paddock.connect(world.hosts) as client:
                    await client.create("/done")

            world.spawn("alice", work, may_raise=paddock.PaddockError)
            await world.rest()
            assert len(world.written("/done")) <= 1

    Faults begin with the first process that is spawned, so a test can prepare its nodes in peace.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        # The seed from which all of this world follows.
        self.seed: int = stage.plan.seed
        # The test's own randomness, from the seed.
        self.random: random.Random = random.Random(f"{self.seed} test")

    @property
    def hosts(self) -> str:
        """The connection string of all servers."""
        return self._stage.service.hosts

    @property
    def now(self) -> float:
        """The true time in seconds since the world began, whatever a process's clock says."""
        return round(self._stage.loop.time(), 9)

    def client(self, **options: Any) -> Client:
        """Return a new client of the calling process: `paddock.connect(world.hosts, ...)`."""
        return paddock.connect(self.hosts, **options)

    def spawn(
        self,
        name: str,
        function: Callable[..., Awaitable[Any] | Any],
        *arguments: Any,
        may_raise: Errors = (),
        restarts: bool = False,
        background: bool = False,
    ) -> ProcessHandle:
        """Start a process that calls a function, with these arguments.

        `name` is its host, and its name in the story. What it raises fails the world, unless it is
        of `may_raise`: then the process has ended. With `restarts`, a process that was killed or
        has raised such an error is started again. `rest` does not wait for one in the `background`,
        and ends it.

        A plain function runs as blocking code, which may use `paddock.sync` and `time.sleep`.
        """
        return self._stage.spawn(
            name,
            function,
            arguments,
            may_raise=may_raise,
            restarts=restarts,
            background=background,
        )

    async def rest(self) -> None:
        """Wait until all processes have ended. Everything is mended by then.

        Faults come and go from the first process on, until all have ended or the time for faults
        is over. From then on nothing is done to the world.
        """
        _check_test("rest")
        await self._stage.rest()

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a plain function as a request to another service, such as a database, is sent.

        The function is called after a while, and the caller gets what it returns or raises some
        time after that. A request that was sent arrives: also if its caller is paused, killed or
        cancelled meanwhile. An AssertionError that the function raises fails the world.
        """
        process = current_process()
        if process is None:
            raise SimulationError("world.call: only processes of the world may call it")
        process.step()
        delays = [process.draw.uniform(0, self._stage.plan.delay_max) for _ in range(2)]
        loop = self._stage.loop
        answer: asyncio.Future[T] = process.create_future()

        def execute() -> None:
            try:
                result = function(*arguments)
            except AssertionError as error:
                self._stage.fail(ELSEWHERE, error)
            except Exception as error:
                loop.call_later(delays[1], _settle, answer, None, error)
            else:
                loop.call_later(delays[1], _settle, answer, result, None)

        loop.call_later(delays[0], execute)
        return await answer

    def written(self, path: str) -> list[Write]:
        """Return all that was ever written to a node, in the service's order; only for the test.

        Everything that was committed counts, whether its client was told or not. Sequential nodes
        are found by their path without the number.
        """
        _check_test("written")
        return writes_of(self._stage.service.history(), path)

    def note(self, text: str) -> None:
        """Add a line to the story, as the calling process, or as what `call` calls."""
        self._stage.say(text)

    def check(self, is_so: bool, text: str) -> None:
        """Fail the world unless something is so, also where AssertionErrors are caught."""
        if not is_so:
            process = current_process()
            error = AssertionError(text)
            self._stage.fail(ELSEWHERE if process is None else process.name, error)
            raise error


def _settle(answer: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(result)
    else:
        answer.set_exception(error)


def _check_test(name: str) -> None:
    process = current_process()
    if process is None or process.name != TEST:
        raise SimulationError(f"world.{name}: only the test itself may call it")

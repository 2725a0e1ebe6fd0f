"""The stage of a user's world: runs the test and its processes, does the faults, and ends it.

The rules for the processes of a world:

* Each is a coroutine function with an event loop, a clock and a host of its own. What processes
  share as Python objects, they share as the test's omniscience: no message is sent for it.
* A paused process runs nothing, and runs what it has missed when it goes on. A killed process never
  runs again, not even a `finally`.
* What a process raises fails the world at once, unless it is expected (`may_raise`): in its
  function, in a task, or in a callback.
* The test itself is a process as well, to which nothing is done. Faults begin with the first
  process that it spawns, and end when all have ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from paddock.testing.simulation import user_handle
from paddock.testing.simulation.blocking import BlockingThread
from paddock.testing.simulation.user_faults import UserFaults
from paddock.testing.simulation.user_handle import TEST, Errors, Failure, ProcessHandle
from paddock.testing.simulation.user_plan import UserPlan
from paddock.testing.simulation.user_process import UserProcess, current_process
from paddock.testing.simulation.user_service import UserService
from paddock.testing.simulation.world_loop import WorldLoop

# Who says what is called as another service.
ELSEWHERE: Final = "elsewhere"
# How long everything has to come to its end when all is mended.
_PATIENCE_SECONDS: Final = 300.0
_RESTART_SECONDS: Final = 1.0
_SETTLE_SECONDS: Final = 2.0
_TEST_HOST: Final = "10.0.4.1"
_PROCESS_HOST: Final = "10.0.1."


class Stage(user_handle.Stage):
    """All of a world but what its test sees."""

    def __init__(self, plan: UserPlan, loop: WorldLoop, folder: Path) -> None:
        self.plan = plan
        self.loop = loop
        self._seed = f"user world {plan.seed}"
        self.service = UserService(plan, loop, folder, self._seed)
        # Hosts by the names of servers and processes.
        self._hosts = {machine.name: machine.host for machine in self.service.machines}
        self._handles: dict[str, ProcessHandle] = {}
        self._failures: list[Failure] = []
        self._is_over = False
        self._is_mended = False
        # Those who wait for processes to end.
        self._waiting: list[asyncio.Future[None]] = []
        # Set with the first process.
        self._begun = asyncio.Event()
        # Set at the end: of the test, or with the first failure.
        self._end = asyncio.Event()
        self.faults = UserFaults(
            loop,
            self.service.network,
            self.service.recorder,
            self.service.machines,
            self.service.etcd,
            processes=self._targets,
            kill=self.kill,
        )

    async def run(self, test: Callable[[], Awaitable[None]]) -> None:
        """Run a test to its end, or to the first failure."""
        self.service.start()
        process = self._new_process(TEST, _TEST_HOST, rate=1.0, jump=0.0)
        process.spawn(self._run_test(test))
        storm = asyncio.ensure_future(self._blow())
        await self._end.wait()
        storm.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await storm
        self._is_over = True

    def failures(self) -> list[Failure]:
        """Return what has failed; the first one is why the world has ended."""
        found = list(self._failures)
        for process in self.service.network.processes:
            if isinstance(process, UserProcess) and not process.is_dead:
                found += [
                    Failure(process.name, error)
                    for error in process.failed_tasks()
                    if not self._is_expected(process.name, error)
                ]
        return found + [Failure(name, RuntimeError(text)) for name, text in self.service.failures()]

    def bury(self) -> None:
        """Let go of all processes."""
        processes = self.service.network.processes
        for process in processes:
            process.kill()
        # What one of them does at its end may reach another.
        for process in [*processes, *processes]:
            if isinstance(process, UserProcess) and process.thread is not None:
                process.thread.bury()
            process.bury()

    # For the world that the test sees.

    def spawn(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        *,
        may_raise: Errors,
        restarts: bool,
        background: bool,
    ) -> ProcessHandle:
        if name in self._hosts or name == TEST:
            raise ValueError(f"name: there is {name!r} already")
        self._hosts[name] = f"{_PROCESS_HOST}{len(self._handles) + 1}"
        handle = self._handles[name] = ProcessHandle(
            self,
            name,
            function,
            arguments,
            may_raise=may_raise,
            restarts=restarts,
            background=background,
        )
        self._start(handle)
        self.loop.call_soon(self._begun.set)
        return handle

    def say(self, text: str) -> None:
        """Add a line to the story, as the process that runs just now."""
        if not self._is_over:
            process = current_process()
            self.service.recorder.say(ELSEWHERE if process is None else process.name, text)

    def fail(self, who: str, error: BaseException) -> None:
        """End the world with an error."""
        if not self._is_over and not any(one.error is error for one in self._failures):
            self._failures.append(Failure(who, error))
            self.loop.call_soon(self._end.set)

    async def rest(self) -> None:
        """Wait until all processes have ended, and mend everything."""
        while self._busy():
            ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(ended)
            await ended
        self._mend()
        for handle in self._handles.values():
            if not handle.is_over:
                handle.is_over = True
                self._take_down(handle.loop, silently=False)
        self.service.start()
        # What they have sent before their end may still be on its way.
        await asyncio.sleep(_SETTLE_SECONDS)

    def kill(self, process: UserProcess, silently: bool) -> None:
        """Kill a process; its peers learn of it, unless it goes silently."""
        handle = self._handles[process.name]
        self._take_down(process, silently=silently)
        self._after(handle, starts_again=handle.restarts)

    # Processes.

    def _start(self, handle: ProcessHandle) -> None:
        handle.starts += 1
        rate, jump = self.plan.clock_of(handle.name)
        process = self._new_process(handle.name, self._hosts[handle.name], rate=rate, jump=jump)
        process.draw.seed(f"{self._seed} {handle.name} {handle.starts}")
        handle.loop = process
        function = handle.function
        if not inspect.iscoroutinefunction(function):
            process.thread = BlockingThread(process)
            function = process.thread.wrap(function)
        process.spawn(self._run_handle(handle, process, function))

    def _new_process(self, name: str, host: str, *, rate: float, jump: float) -> UserProcess:
        network = self.service.network
        process = UserProcess(  # type: ignore[abstract]
            self.loop,
            network,
            name,
            host,
            draw=random.Random(f"{self._seed} {name}"),
            hosts=self._hosts,
            rate=rate,
            jump=jump,
        )
        process.on_error = lambda error: self._fail_unexpected(name, error)
        network.processes.append(process)
        return process

    async def _run_handle(
        self, handle: ProcessHandle, process: UserProcess, function: Callable[..., Awaitable[Any]]
    ) -> None:
        starts_again = False
        try:
            handle.result = await function(*handle.arguments)
        except asyncio.CancelledError as error:
            self.fail(handle.name, error)
        except Exception as error:
            if not self._is_expected(handle.name, error):
                self.fail(handle.name, error)
                return
            self.say(f"ends with {type(error).__name__}: {error}")
            starts_again = handle.restarts
        else:
            self.say("ends")
        for failed in process.failed_tasks():
            self._fail_unexpected(handle.name, failed)
        self._take_down(process, silently=False)
        self._after(handle, starts_again=starts_again)

    def _is_expected(self, name: str, error: BaseException) -> bool:
        handle = self._handles.get(name)
        return handle is not None and isinstance(error, handle.may_raise)

    def _fail_unexpected(self, name: str, error: BaseException) -> None:
        if not self._is_expected(name, error):
            self.fail(name, error)

    def _take_down(self, process: UserProcess, *, silently: bool) -> None:
        process.kill()
        self.service.network.die(process, silently=silently)

    def _after(self, handle: ProcessHandle, *, starts_again: bool) -> None:
        if starts_again:
            self.loop.call_later(_RESTART_SECONDS, self._restart, handle)
            return
        handle.is_over = True
        waiting, self._waiting = self._waiting, []
        for ended in waiting:
            if not ended.done():
                ended.set_result(None)

    def _restart(self, handle: ProcessHandle) -> None:
        if not handle.is_over and not self._is_over:
            self.service.recorder.note(f"{handle.name} is started again")
            self._start(handle)

    def _busy(self) -> list[str]:
        handles = self._handles.values()
        return [one.name for one in handles if not one.is_over and not one.is_background]

    def _targets(self) -> list[UserProcess]:
        """Return the processes that faults may happen to."""
        running = [handle.loop for handle in self._handles.values() if not handle.is_over]
        return [process for process in running if not process.is_dead]

    # The test, and the end.

    async def _run_test(self, test: Callable[[], Awaitable[None]]) -> None:
        try:
            await test()
            if self._busy():
                # A world whose processes nobody waits for would test nothing.
                await self.rest()
        except BaseException as error:
            self.fail(TEST, error)
        self.loop.call_soon(self._end.set)

    async def _blow(self) -> None:
        """Do what the plan says, from the first process on; then wait, but not for ever."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._begun.wait()
        begun_at = self.loop.time()
        for fault in self.plan.faults:
            await asyncio.sleep(max(0.0, begun_at + fault.at - self.loop.time()))
            self.faults.do(fault)
        await asyncio.sleep(max(0.0, begun_at + self.plan.end - self.loop.time()))
        self._mend()
        self.loop.call_later(_PATIENCE_SECONDS, self._give_up)
        while True:
            # A server that was being stopped when everything was mended.
            self.service.start()
            await asyncio.sleep(1.0)

    def _mend(self) -> None:
        if not self._is_mended:
            self._is_mended = True
            self.faults.mend()

    def _give_up(self) -> None:
        who = " and ".join(self._busy()) or "the test"
        text = f"{who} did not end within {_PATIENCE_SECONDS:.0f} s after everything was mended"
        self.fail(TEST, TimeoutError(text))

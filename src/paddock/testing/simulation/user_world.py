"""A user's world while it runs: its servers, its processes and what they say.

The rules for the processes of a world:

* Each is a coroutine function with an event loop, a clock and a host of its own. What processes
  share as Python objects, they share as the test's omniscience: no message is sent for it.
* A paused process runs nothing, and runs what it has missed when it goes on. A killed process never
  runs again, not even a `finally`.
* What a process raises fails the world at once, unless it is expected (`may_raise`).
* The test itself is a process as well, to which nothing is done. Faults begin with the first
  process that it spawns, and end when all have ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import paddock
from paddock.client.client import Client
from paddock.testing.simulation.blocking import BlockingThread
from paddock.testing.simulation.connection import Tap
from paddock.testing.simulation.history import History
from paddock.testing.simulation.network import SimulatedNetwork
from paddock.testing.simulation.process import ProcessLoop, WorldLoop, new_process
from paddock.testing.simulation.recorder import Recorder
from paddock.testing.simulation.remote_store import WorldEtcd
from paddock.testing.simulation.servers import PORT, Machine, MemberMachine, SingleMachine
from paddock.testing.simulation.user_faults import UserFaults
from paddock.testing.simulation.user_plan import UserPlan
from paddock.testing.simulation.user_process import SimulationError, UserProcess, current_process
from paddock.testing.simulation.witness import add_log, read_log, read_shared_log
from paddock.testing.simulation.writes import Write, writes_of

T = TypeVar("T")
Errors: TypeAlias = type[BaseException] | tuple[type[BaseException], ...]

TEST: Final = "test"
# Who says what `call` calls.
_ELSEWHERE: Final = "elsewhere"
# How long everything has to come to its end when all is mended.
_PATIENCE_SECONDS: Final = 300.0
_RESTART_SECONDS: Final = 1.0
_SETTLE_SECONDS: Final = 2.0
_TEST_HOST: Final = "10.0.4.1"
_PROCESS_HOST: Final = "10.0.1."


@dataclass(eq=False)
class Failure:
    """What has failed a world: who, and the error."""

    who: str
    error: BaseException

    def kind(self) -> str:
        """Return what a shrunk world should show as well: the error, and where it was raised."""
        trace = self.error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        place = "" if trace is None else f"{trace.tb_frame.f_code.co_name} {trace.tb_lineno}"
        return f"{type(self.error).__name__} {place}"

    def __str__(self) -> str:
        text = f"{type(self.error).__name__}: {self.error}".rstrip(": ")
        return text if self.who == TEST else f"{self.who}: {text}"


class ProcessHandle:
    """A process that the test has spawned."""

    def __init__(
        self,
        world: SimulatedWorld,
        name: str,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        *,
        may_raise: Errors,
        restarts: bool,
        background: bool,
    ) -> None:
        self.name = name
        # What its function has returned.
        self.result: Any = None
        self._world = world
        self._function = function
        self._arguments = arguments
        self._may_raise = may_raise
        self._restarts = restarts
        self._is_background = background
        self._starts = 0
        self._is_over = False
        self._loop: UserProcess

    def __repr__(self) -> str:
        return f"<process {self.name}{' (ended)' if self._is_over else ''}>"

    @property
    def is_running(self) -> bool:
        """Whether it has neither ended nor been killed; one that restarts runs for ever."""
        return not self._is_over

    def pause(self) -> None:
        """Stop it, until `resume`."""
        self._world.note(f"pauses {self.name}")
        self._loop.pause()

    def resume(self) -> None:
        """Let it go on."""
        self._world.note(f"lets {self.name} go on")
        self._loop.resume()

    def kill(self) -> None:
        """Kill it; what it has connected to learns of it."""
        self._world.note(f"kills {self.name}")
        self._world._kill(self._loop, silently=False)


class SimulatedWorld:
    """A world of one seed: servers, the test's processes, and faults. Tests get it as `world`.

    Faults begin with the first process that is spawned, so a test can prepare its nodes in peace.

        async def work():
            async with paddock.connect(world.hosts) as client:
                await client.create("/done", make_parents=True)

        world.spawn("alice", work, may_raise=paddock.PaddockError)
        await world.rest()
    """

    def __init__(self, plan: UserPlan, loop: WorldLoop, folder: Path) -> None:
        #: The seed from which all of this world follows.
        self.seed: int = plan.seed
        #: The test's own randomness, from the seed.
        self.random = random.Random(f"{plan.seed} test")
        self._plan = plan
        self._loop = loop
        self._seed = f"user world {plan.seed}"
        self._network = SimulatedNetwork(loop, self._seed, plan.delay_max)
        self._recorder = Recorder(loop)
        self._etcd: WorldEtcd | None = None
        if plan.servers > 1:
            process = new_process(loop, self._network, "etcd", "10.0.3.1")
            self._etcd = WorldEtcd(plan.seed, process)
        self._machines = [self._machine(number, folder) for number in range(1, plan.servers + 1)]
        # Hosts by the names of servers and processes.
        self._hosts = {machine.name: machine.host for machine in self._machines}
        self._names = {machine.host: machine.name for machine in self._machines}
        self._handles: dict[str, ProcessHandle] = {}
        self._failures: list[Failure] = []
        self._is_over = False
        self._is_mended = False
        self._waiting: list[asyncio.Future[None]] = []
        # Set with the first process.
        self._begun = asyncio.Event()
        # Set at the end: of the test, or with the first failure.
        self._end = asyncio.Event()
        self._network.tap = self._tap
        self._faults = UserFaults(
            loop,
            self._network,
            self._recorder,
            self._machines,
            self._etcd,
            processes=self._targets,
            kill=self._kill,
        )

    # For the test.

    @property
    def hosts(self) -> str:
        """The connection string of all servers."""
        return ",".join(f"{machine.host}:{PORT}" for machine in self._machines)

    @property
    def now(self) -> float:
        """The true time in seconds since the world began, whatever a process's clock says."""
        return round(self._loop.time(), 9)

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
        if name in self._handles or name in self._hosts or name == TEST:
            raise ValueError(f"name: there is {name!r} already")
        number = len(self._handles) + 1
        self._hosts[name] = f"{_PROCESS_HOST}{number}"
        handle = ProcessHandle(
            self,
            name,
            function,
            arguments,
            may_raise=may_raise,
            restarts=restarts,
            background=background,
        )
        self._handles[name] = handle
        self._start(handle)
        self._loop.call_soon(self._begun.set)
        return handle

    def note(self, text: str) -> None:
        """Add a line to the story, as the calling process, or as what `call` calls."""
        if not self._is_over:
            process = current_process()
            self._recorder.say(_ELSEWHERE if process is None else process.name, text)

    def check(self, is_so: bool, text: str) -> None:
        """Fail the world unless something is so, also where AssertionErrors are caught."""
        if not is_so:
            process = current_process()
            error = AssertionError(text)
            self._fail(_ELSEWHERE if process is None else process.name, error)
            raise error

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
        delays = [process.draw.uniform(0, self._plan.delay_max) for _ in range(2)]
        answer: asyncio.Future[T] = process.create_future()

        def execute() -> None:
            try:
                result = function(*arguments)
            except AssertionError as error:
                self._fail(_ELSEWHERE, error)
            except Exception as error:
                self._loop.call_later(delays[1], _settle, answer, None, error)
            else:
                self._loop.call_later(delays[1], _settle, answer, result, None)

        self._loop.call_later(delays[0], execute)
        return await answer

    async def rest(self) -> None:
        """Wait until all processes have ended. Everything is mended by then.

        Faults come and go from the first process on, until all processes have ended, or the time of the storm is over. From
        then on nothing is done to the world.
        """
        self._check_test("rest")
        while self._busy():
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future
        self._mend()
        for handle in self._handles.values():
            self._finish(handle)
        for machine in self._machines:
            machine.start()
        # What they have sent before their end may still be on its way.
        await asyncio.sleep(_SETTLE_SECONDS)

    def written(self, path: str) -> list[Write]:
        """Return all that was ever written to a node, in the service's order; only for the test.

        Everything that was committed counts, whether its client was told or not.
        """
        self._check_test("written")
        return writes_of(self.history(), path)

    # For `simulated`.

    def history(self) -> History:
        """Return the history so far, with the log of the service."""
        history = History(self._recorder.history.moments)
        if self._etcd is not None:
            committed = self._etcd.committed
            counts = type(self._machines[0].counts)()
            add_log(history, read_shared_log(committed, counts))
        else:
            machine = self._machines[0]
            assert isinstance(machine, SingleMachine)
            batches = [(batch.at, batch.payload) for batch in machine.disk.batches]
            add_log(history, read_log(batches))
        return history

    async def run(self, test: Callable[..., Awaitable[None]], fixtures: dict[str, Any]) -> None:
        """Run a test to its end, or to the first failure."""
        for machine in self._machines:
            machine.start()
        process = self._new_process(TEST, _TEST_HOST, rate=1.0, jump=0.0)
        process.spawn(self._run_test(test, fixtures))
        storm = asyncio.ensure_future(self._blow())
        await self._end.wait()
        storm.cancel()
        self._is_over = True

    @property
    def faults_done(self) -> int:
        return self._faults.done

    def failures(self) -> list[Failure]:
        """Return what has failed; the first one is why the world has ended."""
        found = list(self._failures)
        for process in self._network.processes:
            if isinstance(process, UserProcess) and not process.is_dead:
                handle = self._handles.get(process.name)
                expected = () if handle is None else handle._may_raise
                found += [
                    Failure(process.name, error)
                    for error in process.failed_tasks()
                    if not isinstance(error, expected)
                ]
        for machine in self._machines:
            machine.collect(machine.process)
            found += [Failure(machine.name, RuntimeError(text)) for text in machine.failures]
        return found

    def bury(self) -> None:
        """Let go of all processes."""
        for process in self._network.processes:
            process.kill()
        # What one of them does at its end may reach another.
        for process in [*self._network.processes, *self._network.processes]:
            if isinstance(process, UserProcess) and process.thread is not None:
                process.thread.bury()
            process.bury()

    # Processes.

    def _start(self, handle: ProcessHandle) -> None:
        if self._is_over:
            return
        handle._starts += 1
        rate, jump = self._plan.clock_of(handle.name)
        process = self._new_process(handle.name, self._hosts[handle.name], rate=rate, jump=jump)
        process.draw.seed(f"{self._seed} {handle.name} {handle._starts}")
        handle._loop = process
        if inspect.iscoroutinefunction(handle._function):
            process.spawn(self._run_handle(handle, process, handle._function))
        else:
            process.thread = BlockingThread(process)
            process.spawn(self._run_handle(handle, process, process.thread.wrap(handle._function)))

    def _new_process(self, name: str, host: str, *, rate: float, jump: float) -> UserProcess:
        process = UserProcess(  # type: ignore[abstract]
            self._loop,
            self._network,
            name,
            host,
            draw=random.Random(f"{self._seed} {name}"),
            hosts=self._hosts,
            rate=rate,
            jump=jump,
        )
        process.on_error = lambda error: self._fail(name, error)
        self._network.processes.append(process)
        return process

    async def _run_handle(
        self, handle: ProcessHandle, process: UserProcess, function: Callable[..., Awaitable[Any]]
    ) -> None:
        try:
            handle.result = await function(*handle._arguments)
        except asyncio.CancelledError as error:
            self._fail(handle.name, error)
        except Exception as error:
            if not isinstance(error, handle._may_raise):
                self._fail(handle.name, error)
            else:
                self._recorder.say(handle.name, f"ends with {type(error).__name__}: {error}")
                self._end_process(handle, process, starts_again=handle._restarts)
        else:
            self._recorder.say(handle.name, "ends")
            self._end_process(handle, process, starts_again=False)

    def _end_process(
        self, handle: ProcessHandle, process: UserProcess, *, starts_again: bool
    ) -> None:
        for error in process.failed_tasks():
            if not isinstance(error, handle._may_raise):
                self._fail(handle.name, error)
        process.kill()
        self._network.die(process, silently=False)
        self._after(handle, starts_again=starts_again)

    def _kill(self, process: UserProcess, silently: bool) -> None:
        handle = self._handles[process.name]
        process.kill()
        self._network.die(process, silently=silently)
        self._after(handle, starts_again=handle._restarts)

    def _after(self, handle: ProcessHandle, *, starts_again: bool) -> None:
        if starts_again:
            self._loop.call_later(_RESTART_SECONDS, self._restart, handle)
        else:
            handle._is_over = True
            self._tell()

    def _restart(self, handle: ProcessHandle) -> None:
        if not handle._is_over:
            self._recorder.note(f"{handle.name} is started again")
            self._start(handle)

    def _finish(self, handle: ProcessHandle) -> None:
        """End a process of the background."""
        if not handle._is_over:
            handle._is_over = True
            handle._loop.kill()
            self._network.die(handle._loop, silently=False)

    def _busy(self) -> list[str]:
        return [
            handle.name
            for handle in self._handles.values()
            if not handle._is_over and not handle._is_background
        ]

    def _targets(self) -> list[UserProcess]:
        """Return the processes that faults may happen to."""
        handles = [handle for handle in self._handles.values() if not handle._is_over]
        return [handle._loop for handle in handles if not handle._loop.is_dead]

    # The test, and the end.

    async def _run_test(
        self, test: Callable[..., Awaitable[None]], fixtures: dict[str, Any]
    ) -> None:
        try:
            await test(**fixtures)
            if self._busy():
                # A world whose processes nobody waits for would test nothing.
                await self.rest()
        except BaseException as error:
            self._fail(TEST, error)
        self._finish_world()

    async def _blow(self) -> None:
        """Do what the plan says, from the first process on; then wait, but not for ever."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._begun.wait()
        begun_at = self._loop.time()
        for fault in self._plan.faults:
            await asyncio.sleep(max(0.0, begun_at + fault.at - self._loop.time()))
            self._faults.do(fault)
        await asyncio.sleep(max(0.0, begun_at + self._plan.end - self._loop.time()))
        self._mend()
        self._loop.call_later(_PATIENCE_SECONDS, self._give_up)
        while True:
            # A server that was being stopped when everything was mended.
            for machine in self._machines:
                machine.start()
            await asyncio.sleep(1.0)

    def _mend(self) -> None:
        if not self._is_mended:
            self._is_mended = True
            self._faults.mend()

    def _fail(self, who: str, error: BaseException) -> None:
        if not self._is_over and not any(one.error is error for one in self._failures):
            self._failures.append(Failure(who, error))
            self._finish_world()

    def _finish_world(self) -> None:
        self._loop.call_soon(self._end.set)

    def _tell(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def _give_up(self) -> None:
        who = " and ".join(self._busy()) or "the test"
        text = f"{who} did not end within {_PATIENCE_SECONDS:.0f} s after everything was mended"
        self._fail(TEST, TimeoutError(text))

    def _check_test(self, name: str) -> None:
        process = current_process()
        if process is None or process.name != TEST:
            raise SimulationError(f"world.{name}: only the test itself may call it")

    # Parts.

    def _machine(self, number: int, folder: Path) -> Machine:
        rate = self._plan.rates[number - 1] if self._plan.rates else 1.0
        if self._etcd is not None:
            return MemberMachine(
                self._loop,
                self._network,
                self._seed,
                number,
                rate=rate,
                etcd=self._etcd,
                folder=folder,
            )
        return SingleMachine(
            self._loop,
            self._network,
            self._seed,
            number,
            rate=rate,
            sync_max=self._plan.sync_max,
        )

    def _tap(self, process: ProcessLoop, host: str) -> Tap | None:
        if host not in self._names or not isinstance(process, UserProcess):
            return None
        return _SteppingTap(self._recorder.tap(process.name, self._names[host]), process)


def _settle(answer: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(result)
    else:
        answer.set_exception(error)


class _SteppingTap(Tap):
    """A tap that tells the process of each step."""

    def __init__(self, tap: Tap, process: UserProcess) -> None:
        self._tap = tap
        self._process = process

    def sent(self, data: bytes) -> None:
        self._process.step()
        self._tap.sent(data)

    def received(self, data: bytes) -> None:
        self._process.step()
        self._tap.received(data)

    def ended(self, reason: str) -> None:
        self._tap.ended(reason)

"""The world: servers, clients and faults, from one seed, in virtual time.

    result = run_world(make_plan(seed=7))
    assert not result.problems, result.report()

A world runs its plan, then mends everything, lets all clients come to rest, and has a reader look
at the whole tree on every server. What clients did and saw is its history, which is judged. A world
also fails if a client does not come to rest, or if a process raised what nobody handled.

The same plan gives the same history, byte for byte, in any process on any machine. So nothing here
may depend on the order of a set, on addresses of objects, on real time or on threads.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import random
from collections import Counter
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from paddock.testing.simulation.aftermath import (
    GONE_SECONDS,
    count,
    find_disturbed,
    find_forgotten,
)
from paddock.testing.simulation.connection import Tap
from paddock.testing.simulation.faults import Faults, roughness
from paddock.testing.simulation.history import History, Logged
from paddock.testing.simulation.judge import Verdict
from paddock.testing.simulation.kept import Kept
from paddock.testing.simulation.network import SimulatedNetwork
from paddock.testing.simulation.paddock_client import PaddockClient
from paddock.testing.simulation.plan import Burst, ClientPlan, Fault, Plan, Wish, make_plan
from paddock.testing.simulation.process import ProcessLoop, new_process
from paddock.testing.simulation.raw_client import RawClient
from paddock.testing.simulation.recipe_client import RecipeClient
from paddock.testing.simulation.recipe_plan import RECIPES
from paddock.testing.simulation.recorder import Recorder
from paddock.testing.simulation.remote_store import WorldEtcd
from paddock.testing.simulation.restoration import Restoration
from paddock.testing.simulation.servers import (
    LEASE_SECONDS,
    PORT,
    Machine,
    MemberMachine,
    SingleMachine,
)
from paddock.testing.simulation.story import tell
from paddock.testing.simulation.surroundings import surroundings
from paddock.testing.simulation.witness import add_log, read_log, read_shared_log
from paddock.testing.simulation.world_loop import WorldLoop

# How long clients have to come to rest when everything is mended.
_REST_SECONDS: Final = 120.0
_CLIENT_HOST: Final = "10.0.1."


@dataclass
class Result:
    """What came of a world."""

    plan: Plan
    history: History = field(repr=False)
    verdict: Verdict = field(repr=False)
    # What failed besides the rules of the judge.
    failures: list[str]
    counts: Counter[str]
    seconds: float

    @property
    def problems(self) -> list[str]:
        return [*self.failures, *map(str, self.verdict.violations)]

    def kinds(self) -> set[str]:
        """Return what kinds of problems there are: a smaller plan should show one of them."""
        kinds = {violation.rule for violation in self.verdict.violations}
        return kinds | {failure.partition(":")[0] for failure in self.failures}

    def trace(self) -> bytes:
        """Return the history as bytes."""
        text = io.StringIO()
        self.history.dump(text)
        return text.getvalue().encode()

    def digest(self) -> str:
        return hashlib.sha256(self.trace()).hexdigest()

    def report(self, *, story: bool = True) -> str:
        """Return what is wrong, and the story of the world."""
        lines = [str(self.plan), *self.failures, self.verdict.report()]
        if story:
            lines += ["", "The story:", *tell(self.history)]
        return "\n".join(lines)


class World:
    """A world while it runs; see `run_world`. `folder` is for the caches of its servers."""

    def __init__(self, plan: Plan, loop: WorldLoop, folder: Path) -> None:
        self.plan = plan
        self.failures: list[str] = []
        self.counts: Counter[str] = Counter()
        self.network = SimulatedNetwork(loop, f"world {plan.seed}", plan.delay_max)
        self.recorder = Recorder(loop)
        self.etcd: WorldEtcd | None = None
        self._loop = loop
        self._seed = f"world {plan.seed}"
        if plan.servers > 1:
            process = new_process(loop, self.network, "etcd", "10.0.3.1")
            self.etcd = WorldEtcd(plan.seed, process)
            self.etcd.faults = roughness(plan.roughness)
        self.machines = [self._machine(number, folder) for number in range(1, plan.servers + 1)]
        self._clients: dict[str, ProcessLoop] = {}
        # Those that have carried out their plan.
        self._rested: set[str] = set()
        self._hosts = {machine.host: machine.name for machine in self.machines}
        self.network.tap = self._tap
        self._faults = Faults(
            loop,
            self.network,
            self.recorder,
            self.machines,
            self._clients,
            self.etcd,
            plan.roughness,
        )

    def _machine(self, number: int, folder: Path) -> Machine:
        rate = self.plan.rates[number - 1] if self.plan.rates else 1.0
        if self.etcd is None:
            return SingleMachine(
                self._loop,
                self.network,
                self._seed,
                number,
                rate=rate,
                sync_max=self.plan.sync_max,
                folder=folder,
            )
        return MemberMachine(
            self._loop,
            self.network,
            self._seed,
            number,
            rate=rate,
            etcd=self.etcd,
            folder=folder,
        )

    async def run(self) -> None:
        """Run the plan to its end."""
        for machine in self.machines:
            machine.start()
        for number, client in enumerate(self.plan.clients, 1):
            self._start_client(client, number)
        restoration = self.plan.restoration
        for fault in self.plan.faults:
            self.counts[f"fault: {fault.kind}"] += 1
            if fault is not restoration:
                await self._sleep_until(fault.at)
                self._faults.do(fault)
        await self._sleep_until(self.plan.end)
        self._faults.mend()
        await self._rest()
        # Sessions that nobody uses any more are over by then.
        await asyncio.sleep(GONE_SECONDS)
        await self._read_everything()
        if any(client.kind == RECIPES for client in self.plan.clients):
            await self._observe_recipes()
        if restoration is not None:
            await self._restore_etcd(restoration)
        for machine in [*self.machines, *self._faults.clones]:
            machine.collect(machine.process)
            if machine.is_running:
                machine.count()
            # First: what ends a server explains what its clients do not get.
            self.failures[:0] = machine.failures
            self.counts += machine.counts

    def log(self) -> Iterator[Logged]:
        """Return the log of the service, once the world is over."""
        if self.etcd is not None:
            return read_shared_log(self.etcd.committed, self.counts, self.etcd.boots)
        machine = self.machines[0]
        assert isinstance(machine, SingleMachine)
        return read_log([(batch.at, batch.payload) for batch in machine.disk.witness.batches])

    def _tap(self, process: ProcessLoop, host: str) -> Tap | None:
        if process.host in self._hosts:
            return None
        return self.recorder.tap(process.name, self._hosts.get(host, host))

    async def _sleep_until(self, at: float) -> None:
        await asyncio.sleep(max(0.0, at - self._loop.time()))

    # Clients.

    def _addresses(self) -> list[tuple[str, int]]:
        return [(machine.host, PORT) for machine in self.machines]

    def _start_client(self, plan: ClientPlan, number: int) -> None:
        host = f"{_CLIENT_HOST}{number}"
        process = new_process(self._loop, self.network, plan.name, host, rate=plan.rate)
        self._clients[plan.name] = process
        draw = random.Random(f"{self._seed} {plan.name}")
        process.spawn(self._run_client(plan, draw))

    def _make_client(
        self, plan: ClientPlan, draw: random.Random
    ) -> RawClient | PaddockClient | RecipeClient:
        if plan.kind == RECIPES:
            return RecipeClient(plan, self._addresses(), draw, self.recorder.say)
        kind = RawClient if plan.kind == "raw" else PaddockClient
        return kind(plan, self._addresses(), draw)

    async def _run_client(self, plan: ClientPlan, draw: random.Random) -> None:
        client = self._make_client(plan, draw)
        try:
            await client.run()
            self._rested.add(plan.name)
            await client.stay()
        except Exception as error:
            self.failures.append(f"client: {plan.name} raised {error!r}")

    # The end.

    async def _rest(self) -> None:
        """Wait until all clients that live have carried out their plan."""
        end = self._loop.time() + _REST_SECONDS
        while True:
            waiting = [
                name
                for name, process in self._clients.items()
                if not process.is_dead and name not in self._rested
            ]
            if not waiting:
                break
            if self._loop.time() > end:
                self.failures.append(f"liveness: no rest for {' '.join(waiting)}")
                break
            if any(machine.failures for machine in self.machines):
                # It need not be waited for what does not come.
                break
            for machine in self.machines:
                # A server that was being stopped when everything was mended.
                machine.start()
            await asyncio.sleep(1.0)

    async def _observe_recipes(self) -> None:
        """Have a client say what the recipes have left."""
        plan = ClientPlan("o1", RECIPES, 8.0, ())
        process = new_process(self._loop, self.network, plan.name, "10.0.2.101")
        draw = random.Random(f"{self._seed} {plan.name}")
        with process.enter():
            observer = RecipeClient(plan, self._addresses(), draw, self.recorder.say)
        await self._wait_for(process, observer.observe(), "no observer of recipes is served")

    async def _read_everything(self) -> None:
        """Have a reader look at the whole tree, on each server."""
        for machine in self.machines:
            name = f"r{machine.number}"
            reads = tuple(Wish(read, path) for path in _ALL_PATHS for read in ("get", "children2"))
            plan = ClientPlan(name, "raw", 8.0, (Burst(0.0, (Wish("sync"),)), Burst(0.0, reads)))
            process = new_process(self._loop, self.network, name, f"10.0.2.{machine.number}")
            draw = random.Random(f"{self._seed} {name}")
            reader = RawClient(plan, [(machine.host, PORT)], draw)
            served = f"{machine.name} does not serve a reader"
            await self._wait_for(process, reader.run(), served)

    async def _restore_etcd(self, fault: Fault) -> None:
        """Replace etcd by an older one, with a client that goes on at each server."""
        assert self.etcd is not None
        for machine in self.machines:
            name = f"v{machine.number}"
            bursts = (Burst(0.5, (Wish("set", "/", name), Wish("get", "/"))),) * 100
            process = new_process(self._loop, self.network, name, f"10.0.2.{50 + machine.number}")
            draw = random.Random(f"{self._seed} {name}")
            visitor = RawClient(ClientPlan(name, "raw", 8.0, bursts), [(machine.host, PORT)], draw)
            process.spawn(visitor.run())
        members = [one for one in self.machines if isinstance(one, MemberMachine)]
        restoration = Restoration(self.etcd, members, self.recorder)
        await restoration.play(fault)
        self.failures += restoration.problems()

    async def _wait_for(
        self, process: ProcessLoop, work: Coroutine[Any, Any, None], failure: str
    ) -> None:
        task = process.spawn(work)
        over = asyncio.Event()
        task.add_done_callback(lambda _: self._loop.call_soon(over.set))
        try:
            async with asyncio.timeout(_REST_SECONDS):
                await over.wait()
        except TimeoutError:
            self.failures.append(f"liveness: {failure}")
            return
        if (error := task.exception()) is not None:
            self.failures.append(f"liveness: {failure}: {error!r}")


_ALL_PATHS: Final = (
    "/", "/a", "/b", "/c", "/a/x", "/a/y", "/b/x", "/q", "/e1", "/e2", "/a/e", "/c/e", "/k", "/c/k",
    "/k/x", "/c/k/x",
)  # fmt: skip


def run_world(plan: Plan) -> Result:
    """Run a world to its end, and judge it."""
    with surroundings() as (loop, folder):
        world = World(plan, loop, folder)
        loop.run_until_complete(world.run())
        seconds = loop.time()
        # What is raised when they are buried does not count.
        failures = [*world.failures]
        for process in world.network.processes:
            process.kill()
        # What one of them does at its end may reach another.
        for process in [*world.network.processes, *world.network.processes]:
            process.bury()
    history = world.recorder.history
    add_log(history, world.log())
    verdict = kept_of(plan, history).judge(world.counts)
    if plan.restoration is None:
        # Otherwise nobody is left who could end a session.
        failures += find_forgotten(verdict)
    if plan.is_calm:
        failures += find_disturbed(verdict)
    if world.etcd is not None and world.etcd.space.get(world.etcd.keys.manifest) is not None:
        world.counts["worlds with snapshots in etcd"] += 1
    count(world.counts, verdict)
    return Result(plan, history, verdict, failures, world.counts, seconds)


def kept_of(plan: Plan, history: History) -> Kept:
    """Return the history of a world with what its judge has to know."""
    rate = max(1.0, *plan.rates, 1.0)
    return Kept(history, clock_rate_max=rate, lease_seconds=LEASE_SECONDS)


def run_seed(seed: int, servers: int = 1) -> Result:
    """Run the world of a seed."""
    return run_world(make_plan(seed, servers))

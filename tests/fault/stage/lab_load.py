"""Clients that write and read on all servers of a lab, and the judgement of what they saw.

    result = play(lab, scene)
    assert not result.problems, result.report()

A scene is a coroutine that does something to the lab. Clients begin before it and go on after it,
until each of them has written once more; then readers look at everything on each server. The judge
of simulations reads the history: what every client sent and received, and the log of etcd.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from paddock.protocol import opcodes
from paddock.testing.simulation.calls import Call, Calls, Connection
from paddock.testing.simulation.judge import Verdict, judge
from paddock.testing.simulation.paddock_client import PaddockClient
from paddock.testing.simulation.plan import Burst, ClientPlan, Wish
from paddock.testing.simulation.raw_client import RawClient
from paddock.testing.simulation.witness import add_log, read_shared_log
from tests.fault.stage.lab import Lab
from tests.fault.stage.tapped_loop import TappedLoop, client_name
from tests.support.members import Member
from tests.support.recipes import until

#: The timeout of all sessions.
SESSION_S: Final = 8.0
CLIENTS: Final = 12
# Between two bursts of calls.
_PAUSE_S: Final = 0.05
# Clients write for so long before the scene and after it.
_BEFORE_S: Final = 3.0
_AFTER_S: Final = 3.0
# A scene with everything around it.
_DEADLINE_S: Final = 180.0
_PARENTS: Final = ("/w", "/e", "/q")

Scene = Callable[["Load"], Awaitable[None]]


@dataclass
class Played:
    """What came of a scene."""

    verdict: Verdict
    #: What failed besides the rules of the judge.
    failures: list[str]
    #: What became of records of the log and of members.
    counts: Counter[str]
    #: The clients whose server was struck, and when the scene began.
    struck: set[str] = field(default_factory=set)
    begun: float = 0.0
    #: Whether a process ended that should.
    has_ended: bool = False
    #: For how long etcd had no leader, as far as was looked; None if it did not elect another one.
    leaderless_s: float | None = None

    @property
    def problems(self) -> list[str]:
        return [*self.failures, *map(str, self.verdict.violations)]

    def report(self) -> str:
        return "\n".join([*self.failures, self.verdict.report()])

    @property
    def calls(self) -> list[Call]:
        return self.verdict.calls.calls

    @property
    def clients(self) -> set[str]:
        return {one.client for one in self._connections() if one.client.startswith("c")}

    @property
    def acknowledged(self) -> int:
        """How many writes were."""
        return sum(_is_done(call) for call in self.calls if call.is_write)

    @property
    def unknown(self) -> int:
        """How many writes had no answer; some of them happened."""
        return sum(call.is_write and call.reply is None for call in self.calls)

    @property
    def ended_sessions(self) -> int:
        """How many clients were told that their session is over."""
        return sum(one.is_refused for one in self._connections())

    @property
    def reconnects(self) -> int:
        """How often a client went on with its session on another connection."""
        return sum(len(one) - 1 for one in self.verdict.calls.sessions().values())

    def longest_wait(self, clients: Iterable[str], *, writes: bool) -> float:
        """Return the longest time without an answer to a write, or to a read, of any client."""
        waits = [0.0]
        for client in clients:
            ends = [
                call.end
                for call in self.calls
                if call.connection.client == client
                and call.operation != opcodes.PING
                and call.is_write == writes
                and _is_done(call)
            ]
            pairs = itertools.pairwise(sorted(ends))
            waits += [later - one for one, later in pairs if later >= self.begun]
        return max(waits)

    def _connections(self) -> list[Connection]:
        return list(self.verdict.calls.connections.values())


class Load:
    """The clients while they run."""

    def __init__(self, lab: Lab, loop: TappedLoop, seed: int) -> None:
        self.lab = lab
        self.struck: set[str] = set()
        self.begun = 0.0
        self.has_ended = False
        self.leaderless_s: float | None = None
        self._loop = loop
        self._seed = seed
        self._is_over = False
        # How many bursts each client has issued.
        self._bursts: Counter[str] = Counter()

    def strike_busiest(self) -> Member:
        """Return the server that most clients are connected to, and say that it is struck."""
        homes = self._homes()
        names = Counter(homes.values())
        member = max(self.lab.members, key=lambda one: names[repr(one)])
        self.strike(member)
        return member

    def strike(self, *members: Member) -> None:
        """Say that a scene begins, and which servers it strikes."""
        names = {repr(member) for member in members}
        self.struck = {client for client, server in self._homes().items() if server in names}
        self.begun = self._loop.time()
        self._loop.recorder.note(f"the scene strikes {', '.join(sorted(names)) or 'etcd'}")

    async def all_write(self) -> None:
        """Wait until every client has had an answer to a burst that began after this moment."""
        before = self._bursts.copy()
        await until(lambda: all(self._bursts[name] >= before[name] + 2 for name in self._names()))

    async def run(self, scene: Scene) -> None:
        async with asyncio.timeout(_DEADLINE_S), asyncio.TaskGroup() as tasks:
            for number, name in enumerate(self._names()):
                tasks.create_task(
                    self._run_client(name, RawClient if number % 2 else PaddockClient)
                )
            await self.all_write()
            await asyncio.sleep(_BEFORE_S)
            await scene(self)
            await asyncio.to_thread(self.lab.heal)
            await self.all_write()
            await asyncio.sleep(_AFTER_S)
            self._is_over = True
        for number, member in enumerate(self.lab.members, 1):
            await self._read_everything(f"r{number}", member)

    def _names(self) -> list[str]:
        return [f"c{number}" for number in range(1, CLIENTS + 1)]

    def _homes(self) -> dict[str, str]:
        calls = Calls(self._loop.recorder.history)
        return {
            one.client: one.server
            for one in calls.connections.values()
            if one.session and one.lost_at is None
        }

    async def _run_client(self, name: str, kind: type[RawClient] | type[PaddockClient]) -> None:
        client_name.set(name)
        draw = random.Random(f"{self._seed} {name}")
        client = kind(ClientPlan(name, "", SESSION_S, ()), self._addresses(), draw)
        try:
            for burst in self._plan(name, draw):
                await client.carry_out(burst)
                self._bursts[name] += 1
                if self._is_over:
                    break
        finally:
            await client.close()

    def _addresses(self) -> list[tuple[str, int]]:
        return [member.address for member in self.lab.members]

    def _plan(self, name: str, draw: random.Random) -> Iterator[Burst]:
        """Yield bursts for ever. What a client sets of its own is larger each time."""
        yield Burst(0.0, tuple(Wish("create", path) for path in _PARENTS))
        yield Burst(0.0, (Wish("create", f"/w/{name}"), Wish("create", f"/e/{name}", flags=1)))
        for count in itertools.count(1):
            others = draw.sample(self._names(), k=2)
            mine = Wish("set", f"/w/{name}", f"{count:08}")
            wishes = [
                mine,
                *(Wish("get", f"/w/{one}", watch=draw.random() < 0.2) for one in others),
            ]
            wishes.append(self._other_wish(draw, name, count))
            yield Burst(_PAUSE_S * draw.uniform(0.5, 1.5), tuple(wishes))

    def _other_wish(self, draw: random.Random, name: str, count: int) -> Wish:
        match draw.randrange(8):
            case 0:
                return Wish("create", "/q/n-", f"{name}-{count}", flags=draw.choice((2, 3)))
            case 1:
                return Wish("sync")
            case 2:
                return Wish("children2", "/e", watch=draw.random() < 0.2)
            case 3:
                steps = (Wish("check", "/w"), Wish("set", f"/w/{name}", f"{count:08}.5"))
                return Wish("multi", steps=steps)
            case 4:
                return Wish("create", f"/e/{name}", flags=1)
            case 5:
                return Wish("ephemerals")
        return Wish("exists", f"/e/{draw.choice(self._names())}", watch=draw.random() < 0.2)

    async def _read_everything(self, name: str, member: Member) -> None:
        client_name.set(name)
        paths = [*_PARENTS, *(f"/w/{one}" for one in self._names())]
        reads = [Wish(read, path) for path in paths for read in ("get", "children2")]
        plan = ClientPlan(name, "raw", SESSION_S, (Burst(0.0, (Wish("sync"),)),))
        reader = RawClient(plan, [member.address], random.Random(name))
        try:
            async with asyncio.timeout(_DEADLINE_S):
                await reader.run()
                await reader.carry_out(Burst(0.0, tuple(reads)))
        finally:
            await reader.close()


def play(lab: Lab, scene: Scene, *, seed: int = 1, clock_rate_max: float = 1.0) -> Played:
    """Play a scene in the lab, and judge it."""
    loop = TappedLoop({member.hosts: repr(member) for member in lab.members})
    load = Load(lab, loop, seed)
    with contextlib.closing(loop), asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(load.run(scene))
    failures = []
    digests = lab.digests()
    if len(digests) > 1:
        failures.append(f"digests: the servers have different states: {sorted(digests)}")
    counts: Counter[str] = Counter()
    history = loop.recorder.history
    # When they were committed is not known here.
    add_log(history, read_shared_log(((-1.0, one) for one in lab.records()), counts))
    verdict = judge(history, clock_rate_max=clock_rate_max)
    return Played(
        verdict,
        failures,
        counts,
        load.struck,
        load.begun,
        load.has_ended,
        load.leaderless_s,
    )


def _is_done(call: Call) -> bool:
    return call.reply is not None and not call.reply.error

"""Clients that write and read on all servers of a stage, and the judgement of what they saw.

    result = play(stage, scene, Path("build/lab/cut_off.history.gz"))
    assert not result.problems, result.report()

A stage has servers, which share a log or have one each: Paddock's or Apache ZooKeeper's. A scene is
a coroutine that does something to it. Clients begin before it and go on after it, until each of
them has written once more; then readers look at everything on each server. The history is what
every client sent and received, and the log of the service. It is kept as a file, and the judge of
simulations reads it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

from paddock.testing.simulation.calls import Calls
from paddock.testing.simulation.history import History, Logged
from paddock.testing.simulation.kept import Kept
from paddock.testing.simulation.paddock_client import PaddockClient
from paddock.testing.simulation.plan import Burst, ClientPlan, Wish
from paddock.testing.simulation.raw_client import RawClient
from paddock.testing.simulation.witness import add_log
from tests.conformance.differences import EVENTS_HAVE_A_ZXID
from tests.fault.stage.lab_played import Played
from tests.fault.stage.tapped_loop import TappedLoop, client_name
from tests.support.members import Member
from tests.support.recipes import until

#: Where histories are kept.
HISTORIES: Final = Path(__file__).parents[3] / "build" / "lab"
#: The timeout of all sessions.
SESSION_S: Final = 8.0
CLIENTS: Final = 12
# Between two bursts of calls.
_PAUSE_S: Final = 0.05
#: Clients write for so long before the scene and after it.
AROUND_S: Final = 3.0
# A scene with everything around it.
_DEADLINE_S: Final = 180.0
_PARENTS: Final = ("/w", "/e", "/q")


class Stage(Protocol):
    """Servers, and what is known of them besides what clients see."""

    @property
    def members(self) -> Sequence[Member]: ...

    def heal(self) -> None:
        """Undo everything that was done, and wait until all serve."""

    def read_log(
        self, history: History, counts: Counter[str], struck: set[Member]
    ) -> Iterable[Logged]:
        """Return what the log holds; servers that were struck may have too little of it."""

    def differences(self) -> list[str]:
        """Return in what the servers differ that should be equal."""


S = TypeVar("S", bound=Stage)


class Load(Generic[S]):
    """The clients while they run."""

    def __init__(self, lab: S, loop: TappedLoop, seed: int, clients: int) -> None:
        self.lab = lab
        #: The clients of the servers that were struck, and these.
        self.struck: set[str] = set()
        self.struck_members: set[Member] = set()
        self.begun = 0.0
        self.has_ended = False
        self.slow_syncs = 0
        self.leaderless_s: float | None = None
        self._loop = loop
        self._seed = seed
        self._clients = clients
        self._is_over = False
        # How many bursts each client has issued.
        self._bursts: Counter[str] = Counter()

    def strike_busiest(self, among: Sequence[Member] | None = None) -> Member:
        """Return the server that most clients are connected to, and say that it is struck."""
        homes = self._homes()
        names = Counter(homes.values())
        candidates = self.lab.members if among is None else among
        member = max(candidates, key=lambda one: names[repr(one)])
        self.strike(member)
        return member

    def strike(self, *members: Member) -> None:
        """Say that a scene begins, and which servers it strikes."""
        names = {repr(member) for member in members}
        self.struck |= {client for client, server in self._homes().items() if server in names}
        self.struck_members.update(members)
        self.begun = self.begun or self._loop.time()
        self._loop.recorder.note(f"the scene strikes {', '.join(sorted(names)) or 'etcd'}")

    async def all_write(self) -> None:
        """Wait until every client has had an answer to a burst that began after this moment."""
        before = self._bursts.copy()
        await until(lambda: all(self._bursts[name] >= before[name] + 2 for name in self._names()))

    async def run(self, scene: Scene[S], around_s: float) -> None:
        async with asyncio.timeout(_DEADLINE_S), asyncio.TaskGroup() as tasks:
            for number, name in enumerate(self._names()):
                tasks.create_task(
                    self._run_client(name, RawClient if number % 2 else PaddockClient)
                )
            await self.all_write()
            await asyncio.sleep(around_s)
            await scene(self)
            await asyncio.to_thread(self.lab.heal)
            await self.all_write()
            await asyncio.sleep(around_s)
            self._is_over = True
        for number, member in enumerate(self.lab.members, 1):
            await self._read_everything(f"r{number}", member)

    def _names(self) -> list[str]:
        return [f"c{number}" for number in range(1, self._clients + 1)]

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


Scene = Callable[[Load[S]], Awaitable[None]]


def play(
    lab: S,
    scene: Scene[S],
    file: Path,
    *,
    seed: int = 1,
    clients: int = CLIENTS,
    around_s: float = AROUND_S,
    clock_rate_max: float = 1.0,
) -> Played:
    """Play a scene, keep its history in a file, and judge it."""
    loop = TappedLoop({member.hosts: repr(member) for member in lab.members})
    load = Load(lab, loop, seed, clients)
    with contextlib.closing(loop), asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(load.run(scene, around_s))
    failures = lab.differences()
    counts: Counter[str] = Counter()
    history = loop.recorder.history
    add_log(history, lab.read_log(history, counts, load.struck_members))
    kept = Kept(
        history,
        clock_rate_max=clock_rate_max,
        events_have_zxids=EVENTS_HAVE_A_ZXID.on(lab.members[0]),
    )
    kept.write(file)
    return Played(
        kept.judge(),
        failures,
        counts,
        struck=load.struck,
        begun=load.begun,
        has_ended=load.has_ended,
        slow_syncs=load.slow_syncs,
        leaderless_s=load.leaderless_s,
    )

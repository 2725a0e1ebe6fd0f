"""A storm: many players, every recipe and all kinds of faults at once, from a seed.

    python -m tests.fault.stage.recipe_storm --seconds 600

Each seed is a world of its own, in virtual time: some players, each behind a proxy of its own, play
one act after the other (`storm_acts`), while the wind does something to one of them every few
seconds. When it has calmed down, everybody has to play every act once more, undisturbed, and
everything is judged as on the stage (`recipe_stage`): the log of grants of each act, the writes
under grants, and what is left. Every other player has exact sessions: nothing is unknown to it as
long as they live. The same seed is the same world: a failure says which one it was.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import hashlib
import logging
import secrets
import sys
import time
import traceback
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from fnmatch import fnmatchcase
from random import Random
from typing import Any, Final

from paddock.api import connect
from paddock.client.client import Client
from paddock.errors import ConnectionLostError, NoNodeError, RecipeError, SessionExpiredError
from paddock.recipes.common.retry import retry
from paddock.testing import (
    EmbeddedServer,
    FaultProxy,
    VirtualClockLoop,
    expire_session,
    run_virtually,
)
from tests.fault.stage.cutting import FAULTS, in_real_time
from tests.fault.stage.grant_log import GrantLog
from tests.fault.stage.recipe_players import SESSION_TIMEOUT_S, Note, Player
from tests.fault.stage.storm_acts import ACTS, Act

# In virtual time.
_STORM_S: Final = 90.0
_GUST_S: Final = 3.0
_CALM_DEADLINE_S: Final = 600.0
_SETTLED_S: Final = 30.0
_LOOK_S: Final = 0.5
_BEGAN_MS: Final = 1_700_000_000_000
# In real time, for one world.
_REAL_DEADLINE_S: Final = 120

_PLAYERS: Final = (2, 6)
# A gust comes at one of so many passes of the event loop.
_PASSES_MAX: Final = 50
# What ends an act when the session is over, besides an unknown outcome.
_EXCUSES: Final = (SessionExpiredError, RecipeError)


class _Place:
    """Where an act is played."""

    def __init__(self, name: str, act: Act) -> None:
        self.act = act
        self.path = f"/{name}"
        self.log = GrantLog(act.capacity, f"/{name}-writes")

    async def left(self, observer: Client) -> list[str]:
        """Return the nodes below its path that should not be there."""
        left = []
        level = [self.path]
        while level:
            path = level.pop()
            try:
                names = await observer.children(path)
            except NoNodeError:
                continue
            paths = [f"{path}/{name}" for name in sorted(names)]
            level += paths
            left += [one for one in paths if not self._may_remain(one)]
        return left

    def _may_remain(self, path: str) -> bool:
        return any(fnmatchcase(path, pattern) for pattern in self.act.remains)


class _Sailor:
    """A player in the storm, and the proxy before it."""

    def __init__(self, player: Player, proxy: FaultProxy, random: Random) -> None:
        self.player = player
        self.proxy = proxy
        self.random = random
        # What it plays just now; cancelled by the wind.
        self.playing: asyncio.Task[None] | None = None
        self.done = 0

    async def sail(self, places: list[_Place], until: float) -> None:
        """Play one act after the other, whatever happens to them."""
        loop = asyncio.get_running_loop()
        while loop.time() < until:
            await self._attempt(self.random.choice(places))
            await asyncio.sleep(self.random.uniform(0.0, 1.0))

    async def arrive(self, places: list[_Place]) -> None:
        """Play every act once, with nothing in the way."""
        # Only the service can tell whether the session has survived.
        with suppress(SessionExpiredError):
            await retry(self.player.client, self.player.client.sync)
        await self._have_session()
        for place in places:
            await self._play(place)

    async def _attempt(self, place: _Place) -> None:
        try:
            await self._have_session()
            self.playing = asyncio.create_task(self._play(place))
            await asyncio.wait((self.playing,))
            self.player.check_watches()
            if not self.playing.cancelled():
                self.playing.result()
        except ConnectionLostError:
            self.player.check_doubt()
        except _EXCUSES:
            pass
        finally:
            self.playing = None

    async def _play(self, place: _Place) -> None:
        self.player.log = place.log
        await place.act.play(self.player, place.path, self.random)
        self.done += 1

    async def _have_session(self) -> None:
        while self.player.client.state.is_final:
            try:
                await self.player.connect()
            except ConnectionLostError:
                # Nobody could be reached for a whole session timeout.
                continue


class _Wind:
    """Injects a fault into a sailor every few seconds."""

    def __init__(self, sailors: list[_Sailor], server: EmbeddedServer, random: Random) -> None:
        self._sailors = sailors
        self._server = server
        self._random = random
        self._gusts: list[Callable[[_Sailor], Awaitable[None]]] = [
            self._break,
            self._break,
            self._cut,
            self._keep_away,
            self._hush,
            self._expire,
            self._expire_while_away,
            self._cancel,
            self._cancel,
        ]
        self._changing: list[asyncio.TimerHandle] = []

    async def blow(self, until: float) -> None:
        loop = asyncio.get_running_loop()
        while loop.time() < until:
            await asyncio.sleep(self._random.expovariate(1 / _GUST_S))
            await self._wait_for_a_moment()
            await self._random.choice(self._gusts)(self._random.choice(self._sailors))
        for one in self._changing:
            one.cancel()
        for sailor in self._sailors:
            sailor.proxy.heal()

    async def _wait_for_a_moment(self) -> None:
        """Wait until something goes on: what is asked and answered takes no virtual time."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualClockLoop)
        reached = asyncio.Event()
        loop.call_at_pass(loop.passes + self._random.randint(1, _PASSES_MAX), reached.set)
        await reached.wait()

    async def _break(self, sailor: _Sailor) -> None:
        """Have one of the stage's faults happen to one of the next requests."""
        kind = self._random.choice(FAULTS)
        kind.arm(sailor.proxy.when(nth=self._random.randint(1, 5)))
        if "silence" in kind.name:
            self._heal_later(sailor)

    async def _cut(self, sailor: _Sailor) -> None:
        sailor.proxy.cut(reset=self._random.random() < 0.5)

    async def _keep_away(self, sailor: _Sailor) -> None:
        sailor.proxy.refuse(self._seconds())

    async def _hush(self, sailor: _Sailor) -> None:
        sailor.proxy.blackhole()
        self._heal_later(sailor)

    async def _expire(self, sailor: _Sailor) -> None:
        client, record = sailor.player.client, sailor.player.session
        if not client.state.is_final:
            record.expired_at = asyncio.get_running_loop().time()
            address = self._server.address
            await expire_session(address, client.session_id, client.session_password)

    async def _expire_while_away(self, sailor: _Sailor) -> None:
        sailor.proxy.refuse(self._seconds())
        await self._expire(sailor)

    async def _cancel(self, sailor: _Sailor) -> None:
        if sailor.playing is not None:
            sailor.playing.cancel()

    def _seconds(self) -> float:
        """Return a duration that a session may or may not survive."""
        return self._random.uniform(0.0, 1.5 * SESSION_TIMEOUT_S)

    def _heal_later(self, sailor: _Sailor) -> None:
        loop = asyncio.get_running_loop()
        self._changing.append(loop.call_later(self._seconds(), sailor.proxy.heal))


class World:
    """What happens from one seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._places = [_Place(name, act) for name, act in ACTS.items()]
        self._notes: list[Note] = []
        self._problems: list[str] = []
        self.grants = 0

    async def play(self) -> None:
        """Play it to its end."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._take_problem)
        before = asyncio.all_tasks()
        await self._play()
        left = asyncio.all_tasks() - before
        # An error that nobody asked for is told of when its task is deleted: not in a later world.
        gc.collect()
        assert not left, f"tasks are left over: {left}"
        assert not self._problems, self._problems

    def _take_problem(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        who = context.get("future") or context.get("task")
        self._problems.append(f"{context['message']}: {context.get('exception')!r}, of {who!r}")

    async def _play(self) -> None:
        loop = asyncio.get_running_loop()
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(
                EmbeddedServer(
                    wall_clock_ms=lambda: _BEGAN_MS + int(loop.time() * 1000),
                    random_bytes=Random(self._random.random()).randbytes,
                )
            )
            observer = await stack.enter_async_context(connect(server.hosts, random=Random(0)))
            for place in self._places:
                await place.log.prepare(observer)
            sailors = [
                await self._embark(stack, server, number)
                for number in range(self._random.randint(*_PLAYERS))
            ]
            await self._sail(sailors, server, observer)
            await self._settle(observer)
            for sailor in sailors:
                sailor.player.check_watches()
                await sailor.player.close()
            await self._judge(observer)

    async def _embark(self, stack: AsyncExitStack, server: EmbeddedServer, number: int) -> _Sailor:
        proxy = await stack.enter_async_context(FaultProxy(server.address))
        random = Random(self._random.random())
        log = self._places[0].log
        # Of both kinds, together in each world.
        exact = number % 2 == 0
        player = Player(f"player {number}", proxy.hosts, random, log, self._notes, exact=exact)
        await player.connect()
        return _Sailor(player, proxy, random)

    async def _sail(self, sailors: list[_Sailor], server: EmbeddedServer, observer: Client) -> None:
        until = asyncio.get_running_loop().time() + _STORM_S
        wind = _Wind(sailors, server, Random(self._random.random()))
        try:
            async with asyncio.timeout(_STORM_S + _CALM_DEADLINE_S):
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(wind.blow(until))
                    for sailor in sailors:
                        tasks.create_task(sailor.sail(self._places, until))
                async with asyncio.TaskGroup() as tasks:
                    for sailor in sailors:
                        tasks.create_task(sailor.arrive(self._places))
        except TimeoutError:
            left = [path for place in self._places for path in await place.left(observer)]
            raise AssertionError(f"somebody waits for ever: {left}") from None

    async def _settle(self, observer: Client) -> None:
        loop = asyncio.get_running_loop()
        limit = loop.time() + _SETTLED_S
        for place in self._places:
            while left := await place.left(observer):
                if loop.time() > limit:
                    raise AssertionError(f"left behind, by players who are still there: {left}")
                await asyncio.sleep(_LOOK_S)

    async def _judge(self, observer: Client) -> None:
        for place in self._places:
            place.log.check()
            place.log.check_writes(await place.log.read_writes(observer))
            assert await place.left(observer) == []
            if place.act.judge is not None:
                notes = [note for note in self._notes if note.log is place.log]
                await place.act.judge(observer, place.path, notes)
            self.grants += len(place.log.holds)

    def digest(self) -> str:
        """Return a hash of all grants and their times, which differs from world to world."""
        holds = [
            f"{place.path} {hold.session.owner} {hold.token} {hold.begun_at} {hold.ended_at}"
            for place in self._places
            for hold in place.log.holds
        ]
        return hashlib.sha256("\n".join(holds).encode()).hexdigest()


def play_world(seed: int) -> World:
    """Play the world of a seed; what it raises says which one it was."""
    world = World(seed)
    with in_real_time(_REAL_DEADLINE_S):
        try:
            run_virtually(world.play())
        except BaseException as error:
            error.add_note(f"this replays it: make storm STORM_SEED={seed}")
            raise
    return world


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="how long to go on")
    parser.add_argument("--seed", type=int, help="play this world only")
    options = parser.parse_args()
    # Clients warn of much in a storm.
    logging.disable(logging.WARNING)
    end = time.monotonic() + options.seconds
    worlds = grants = 0
    while worlds == 0 or (options.seed is None and time.monotonic() < end):
        seed = secrets.randbits(32) if options.seed is None else options.seed
        try:
            grants += play_world(seed).grants
        except Exception:
            traceback.print_exc()
            print(f"\nworld {seed} failed; again with: make storm STORM_SEED={seed}")
            return 1
        worlds += 1
    print(f"{worlds} worlds, {grants} grants, no failure")
    return 0


if __name__ == "__main__":
    sys.exit(main())

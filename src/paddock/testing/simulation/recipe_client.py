"""The recipes as a client of a world: it plays the acts of its plan, and says what it holds.

An act is one use of a recipe, from its beginning to its end. Others play the same acts at the same
nodes. What a client says becomes a note of the history, by which the promises of the recipes are
judged (`promises`). The notes are words and `key=value`:

    lock began token=17 share=1 of=1 session=81     a grant is held
    lock ended token=17                             it is held no more, or about to be released
    lock refused token=17                           a guarded write failed though it was held
    thief steals token=17                           the node of a lock's holder is deleted by hand
    queue put item=c1-3                             an item is surely in the queue

An act may fail with what a recipe raises when its session is over, or when the service refuses all
writes; then it is over as well. Anything else that it raises is a failure of the world.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final

from paddock.api import connect
from paddock.client.client import Client
from paddock.errors import (
    ConnectionLostError,
    NodeExistsError,
    NoNodeError,
    PaddockError,
    RecipeError,
    SessionExpiredError,
    SessionMovedError,
    SystemFailureError,
    TransactionFailedError,
)
from paddock.recipes import (
    Counter,
    Election,
    Grant,
    Lease,
    Lock,
    Membership,
    Naming,
    Queue,
    ReadWriteLock,
    Semaphore,
    ServiceInstance,
    ServiceRegistry,
    SimpleMutex,
)
from paddock.testing.simulation.plan import Burst, ClientPlan, Wish
from paddock.testing.simulation.process import ProcessLoop

Say = Callable[[str, str], None]
Address = tuple[str, int]

ROOT: Final = "/recipes"
# More than there are clients; a writer has all of it.
READERS: Final = 100
LEASES: Final = 2
# What ends an act.
_EXCUSES: Final = (
    SessionExpiredError,
    ConnectionLostError,
    RecipeError,
    SystemFailureError,
    SessionMovedError,
)
# When the last act begins.
_LAST_SECONDS: Final = 60.0
# How long an act that waits for others goes on: for ever, or it is cancelled.
_PATIENCE: Final = (None, None, None, 0.2, 1.0, 5.0)


def writes_path(act: str) -> str:
    """Return where guarded writes of an act go, as sequential nodes."""
    return f"{ROOT}/{act}-writes"


class RecipeClient:
    """One client, on the process's loop that runs it."""

    def __init__(
        self, plan: ClientPlan, servers: Sequence[Address], draw: random.Random, say: Say
    ) -> None:
        self._plan = plan
        self._hosts = ",".join(f"{host}:{port}" for host, port in servers)
        self._draw = draw
        self._client: Client | None = None
        self._tell = say
        # What a dead process does when its world is cleared away is not said.
        process = asyncio.get_running_loop()
        assert isinstance(process, ProcessLoop)
        self._process = process

    async def run(self) -> None:
        """Play the acts of the plan, whatever comes of them."""
        for act in GUARDED:
            await self._make(writes_path(act))
        loop = asyncio.get_running_loop()
        for burst in self._plan.bursts:
            # Those who wait for each other take longer than planned.
            if loop.time() < _LAST_SECONDS:
                await self.carry_out(burst)

    async def carry_out(self, burst: Burst) -> None:
        """Play some acts at once, after their pause."""
        await asyncio.sleep(burst.pause)
        client = await self._open()
        acts = [self._play(client, wish) for wish in burst.wishes]
        results = await asyncio.gather(*acts, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, _EXCUSES):
                raise result
        if any(isinstance(result, SystemFailureError) for result in results):
            # What could not be deleted, as an act says by its error, goes with the session.
            await client.close()

    async def stay(self) -> None:
        """Stay connected, for ever."""
        while True:
            await self._open()
            await asyncio.sleep(1.0)

    async def observe(self) -> None:
        """Say what is left when everybody has come to rest."""
        client = await self._open()
        await client.sync(ROOT)
        queue = Queue(client, f"{ROOT}/queue")
        for entry in await queue.items():
            self.say(f"queue left item={entry.data.decode()} taken={int(entry.is_taken)}")
        for letter in await queue.dead_letters():
            self.say(f"queue left item={letter.data.decode()} taken=0")
        self.say(f"counter final sum={await Counter(client, f'{ROOT}/counter').get()}")
        for act in ("members", "services"):
            self.say(f"{act} looks by=observer")
            self.say(f"{act} final by=observer names={await _names(client, act)}")

    def say(self, text: str) -> None:
        if not self._process.is_dead:
            self._tell(self._plan.name, text)

    async def _open(self) -> Client:
        while self._client is None or self._client.state.is_final:
            client = connect(
                self._hosts,
                session_timeout=self._plan.timeout,
                random=self._draw,
                exact=self._plan.name[-1] in "02468",
            )
            try:
                await client.start()
            except PaddockError:
                await client.close()
                continue
            self._client = client
        return self._client

    async def _make(self, path: str) -> None:
        """Make a node that all clients need."""
        while True:
            client = await self._open()
            try:
                await client.create(path, make_parents=True)
                return
            except NodeExistsError:
                return
            except _EXCUSES:
                await asyncio.sleep(0.1)

    async def _play(self, client: Client, wish: Wish) -> None:
        draw = random.Random(wish.data)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(draw.choice(_PATIENCE)):
                await ACTS[wish.name](_Player(self, client, wish.name, wish.data, draw))


class _Player:
    """One act of a client."""

    def __init__(
        self, owner: RecipeClient, client: Client, act: str, mark: str, draw: random.Random
    ) -> None:
        self.client = client
        self.path = f"{ROOT}/{act}"
        self.mark = mark
        self.draw = draw
        self._owner = owner
        self._act = act

    def say(self, text: str) -> None:
        self._owner.say(f"{self._act} {text}")

    @contextlib.contextmanager
    def holds(self, token: int, share: int = 1, of: int = 1) -> Iterator[None]:
        """Say that something is held, in a scope."""
        self.say(f"began token={token} share={share} of={of} session={self.client.session_id}")
        try:
            yield
        finally:
            self.say(f"ended token={token}")

    @contextlib.contextmanager
    def is_member(self) -> Iterator[None]:
        """Say that we have joined, and that we leave, in a scope."""
        self.say(f"joined name={self.mark} session={self.client.session_id}")
        try:
            yield
        finally:
            self.say(f"leaves name={self.mark}")

    def say_left(self) -> None:
        """Say that we are no member any more, if we know it.

        Nobody waits longer for that than the session surely lives; then the node goes with it.
        """
        if self.client.session_valid_until > asyncio.get_running_loop().time():
            self.say(f"left name={self.mark}")

    async def write(self, grant: Grant) -> None:
        """Write under a grant."""
        guard = grant.guard()
        guard.create(f"{writes_path(self._act)}/w-", b"%d" % grant.token, sequential=True)
        try:
            await guard.commit()
        except TransactionFailedError:
            self.say(f"refused token={grant.token}")

    async def some_time(self) -> None:
        """Wait: as a rule not for long, sometimes longer than a session timeout."""
        longest = self.draw.choice((0.1, 0.5, 1.0, 3.0)) if self.draw.random() < 0.85 else 15.0
        await asyncio.sleep(self.draw.uniform(0, longest))


async def _use(me: _Player, grant: Grant, share: int = 1, of: int = 1) -> None:
    with me.holds(grant.token, share, of):
        await me.write(grant)
        for _ in range(me.draw.choice((1, 1, 4))):
            await me.some_time()
            await me.write(grant)


async def _lock(me: _Player) -> None:
    async with Lock(me.client, me.path) as grant:
        await _use(me, grant)


async def _thief(me: _Player) -> None:
    """Delete the node of whoever holds the lock."""
    for one in (await Lock(me.client, f"{ROOT}/lock").contenders())[:1]:
        me.say(f"steals token={one.token}")
        with contextlib.suppress(NoNodeError):
            await me.client.delete(one.path)


async def _mutex(me: _Player) -> None:
    async with SimpleMutex(me.client, me.path, "mutex") as grant:
        await _use(me, grant)


async def _election(me: _Player) -> None:
    async with Election(me.client, me.path).lead() as grant:
        await _use(me, grant)


async def _lease(me: _Player) -> None:
    async with Lease(me.client, me.path, seconds=5.0) as grant:
        with me.holds(grant.token):
            await me.write(grant)
            await asyncio.sleep(me.draw.uniform(0, 3))
            await grant.renew()
            await asyncio.sleep(me.draw.uniform(0, 3))
            await me.write(grant)


async def _semaphore(me: _Player) -> None:
    async with Semaphore(me.client, me.path, leases=LEASES) as grant:
        await _use(me, grant, 1, LEASES)


async def _read_write_lock(me: _Player) -> None:
    shared = ReadWriteLock(me.client, me.path)
    if me.draw.random() < 0.6:
        async with shared.read as grant:
            await _use(me, grant, 1, READERS)
    else:
        async with shared.write as grant:
            await _use(me, grant, READERS, READERS)


async def _queue(me: _Player) -> None:
    queue = Queue(me.client, me.path)
    me.say(f"tried item={me.mark}")
    await queue.put(me.mark.encode(), priority=me.draw.randint(1, 2))
    me.say(f"put item={me.mark}")
    async with queue.try_take() as item:
        if item is not None:
            name = item.data.decode()
            await me.some_time()
            if me.draw.random() < 0.1:
                # A worker that fails: the item has to come back.
                raise RecipeError("given up")
            me.say(f"finished item={name}")
    if item is not None:
        me.say(f"done item={name}")


async def _counter(me: _Player) -> None:
    counter = Counter(me.client, me.path)
    for _ in range(6):
        me.say("tried")
        me.say(f"added sum={await counter.add()}")
        await asyncio.sleep(me.draw.uniform(0, 0.5))


async def _naming(me: _Player) -> None:
    me.say(f"number sum={await Naming(me.client, me.path).new_id()}")


async def _members(me: _Player) -> None:
    async with Membership(me.client, me.path).joined(me.mark):
        with me.is_member():
            await me.some_time()
            await _look(me)
    me.say_left()


async def _services(me: _Player) -> None:
    async with ServiceRegistry(me.client, me.path) as registry:
        await registry.register(ServiceInstance("search", me.mark))
        with me.is_member():
            await me.some_time()
            await _look(me)
        await registry.unregister("search", me.mark)
        me.say_left()


async def _look(me: _Player) -> None:
    me.say(f"looks by={me.mark}")
    await me.client.sync(me.path)
    act = me.path.rpartition("/")[2]
    me.say(f"saw by={me.mark} names={await _names(me.client, act)}")


async def _names(client: Client, act: str) -> str:
    path = f"{ROOT}/{act}"
    if act == "members":
        return ",".join(sorted(one.name for one in await Membership(client, path).members()))
    async with ServiceRegistry(client, path) as registry:
        return ",".join(sorted(one.id for one in await registry.instances("search")))


ACTS: Final[dict[str, Callable[[_Player], Awaitable[None]]]] = {
    "lock": _lock,
    "thief": _thief,
    "mutex": _mutex,
    "election": _election,
    "lease": _lease,
    "semaphore": _semaphore,
    "rw-lock": _read_write_lock,
    "queue": _queue,
    "counter": _counter,
    "naming": _naming,
    "members": _members,
    "services": _services,
}
# Those under whose grants something is written.
GUARDED: Final = ("lock", "mutex", "election", "lease", "semaphore", "rw-lock")

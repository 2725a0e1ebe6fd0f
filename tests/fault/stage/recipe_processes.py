"""Recipes whose players are processes that are killed: while waiting, while holding, in the create.

A victim is a Python process of its own, behind a fault proxy that says how far it has come, and
ends by `kill -9`. Those who survive it are here, with clients of their own: they must come to their
end, and of the victim nothing may be left when its session is over. What all of them do is one
function of a test module, which the process imports by its name:

    async def take_part(me: Actor) -> None:
        async with Lock(me.client, me.path) as grant:
            me.say("holding", grant.token)
            await me.wait_to_go_on()


    def test_a_lock_survives_its_holder() -> None:
        play_kills(Killing(take_part))
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, TypeAlias

from paddock.api import connect
from paddock.client.client import Client
from paddock.errors import NoNodeError
from paddock.server.config.config import ServerConfig
from paddock.testing import Direction, EmbeddedServer, FaultProxy

# In real time, on a machine that may be busy.
_DEADLINE_S: Final = 120.0
_SETTLED_S: Final = 60.0
# Of victims: so long their nodes outlive them.
_VICTIM_TIMEOUT_S: Final = 2.0
# Of the others, who are not to expire while the machine is busy.
_TIMEOUT_S: Final = 30.0
_TICK_MS: Final = 200

PATH: Final = "/recipe"
# What a victim says when it holds, or otherwise has, what it came for.
HOLDING: Final = "holding"

MOMENTS: Final = ("waiting", HOLDING, "creating")


class Actor:
    """One who takes part, in this process or in another one."""

    def __init__(self, name: str, client: Client) -> None:
        self.name = name
        self.client = client
        self.path = PATH
        # What it has said: a word, and a value as text.
        self.said: list[tuple[str, str]] = []
        self._has_spoken = asyncio.Event()
        self._may_go_on = asyncio.Event()

    def say(self, word: str, value: object = "") -> None:
        """Tell those who watch how far it has come."""
        self.said.append((word, str(value)))
        self._has_spoken.set()

    async def wait_to_go_on(self) -> None:
        """Wait for a sign from outside; a victim waits for its end."""
        await self._may_go_on.wait()

    def let_go_on(self) -> None:
        self._may_go_on.set()

    async def wait_until_said(self, word: str) -> None:
        while not any(word == one for one, _ in self.said):
            self._has_spoken.clear()
            await self._has_spoken.wait()


TakePart: TypeAlias = Callable[[Actor], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What is there when a victim was killed and everybody else has come to an end."""

    # When it was killed.
    moment: str
    # On a connection of its own.
    observer: Client
    # By actor, in the order in which they began: what each one said.
    said: dict[str, list[tuple[str, str]]]


async def make_container(observer: Client) -> None:
    """Make the node that a recipe stands under, so that its first create is the one that counts."""
    await observer.create(PATH, container=True)


async def judge_tokens(aftermath: Aftermath) -> None:
    """See that everybody but the victim has held it, and each token is larger than those before."""
    said = aftermath.said
    holding = {name: [value for word, value in said[name] if word == HOLDING] for name in said}
    for name, values in holding.items():
        assert name == "victim" or values, f"{name} never held it: {said}"
    tokens = [int(value) for values in holding.values() for value in values]
    assert tokens == sorted(set(tokens)), f"{aftermath.moment}: {holding}"


@dataclass(frozen=True, slots=True)
class Killing:
    """What is played, once for each moment at which the victim is killed.

    The one before the victim, if it is to wait, and the one behind it do the same as the victim,
    but they are let go on.
    """

    take_part: TakePart
    moments: tuple[str, ...] = MOMENTS
    # The request in the middle of which it is killed, and which one of them that is: it was carried
    # out, and not answered.
    creates_with: str = "create2"
    creates_nth: int = 1
    # The request with which it begins to wait, and which one of them that is.
    waits_with: str = "get"
    waits_nth: int = 1
    prepare: Callable[[Client], Awaitable[None]] = make_container
    judge: Callable[[Aftermath], Awaitable[None]] = judge_tokens
    # What may be left below the path: patterns of whole paths.
    remains: tuple[str, ...] = ()


def play_kills(killing: Killing) -> None:
    """Kill a victim at each of the moments, and judge what is left."""

    async def main() -> None:
        config = ServerConfig(port=0, tick_time_ms=_TICK_MS)
        async with (
            asyncio.timeout(_DEADLINE_S),
            EmbeddedServer(config=config) as server,
            asyncio.TaskGroup() as tasks,
        ):
            # At once, each in a place of its own: most of the time they wait for sessions to end.
            for moment in killing.moments:
                tasks.create_task(_play(killing, moment, server))

    asyncio.run(main())


async def _play(killing: Killing, moment: str, server: EmbeddedServer) -> None:
    chroot = f"/{moment}"
    async with connect(server.hosts, session_timeout=_TIMEOUT_S) as making:
        await making.create(chroot)
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(FaultProxy(server.address))
        observer = await _client(stack, server.hosts + chroot)
        await killing.prepare(observer)
        before = Actor("before", await _client(stack, server.hosts + chroot))
        behind = Actor("behind", await _client(stack, server.hosts + chroot))
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        if moment == "waiting":
            tasks.create_task(_finish(killing, before))
            await before.wait_until_said(HOLDING)
        victim = Victim(killing.take_part, proxy.hosts + chroot)
        reached = _arm(killing, moment, proxy, victim)
        await victim.start()
        try:
            await _reach(moment, reached, victim)
            surviving = tasks.create_task(_finish(killing, behind))
        finally:
            await victim.kill()
        before.let_go_on()
        behind.let_go_on()
        await surviving
        await _wait_until_nothing_is_left(killing, observer)
        said = {"victim": victim.said, "behind": behind.said}
        if moment == "waiting":
            said = {"before": before.said, **said}
        await killing.judge(Aftermath(moment, observer, said))


def _arm(killing: Killing, moment: str, proxy: FaultProxy, victim: Victim) -> Awaitable[object]:
    """Return an awaitable that is done when the victim reaches the moment to be killed."""
    if moment == HOLDING:
        return victim.wait_until_said(HOLDING)
    if moment == "creating":
        chosen = proxy.when(operation=killing.creates_with, nth=killing.creates_nth)
        return chosen.blackhole(Direction.TO_CLIENT).happened()
    chosen = proxy.when(operation=killing.waits_with, nth=killing.waits_nth)
    return chosen.delay_reply(0.0).happened()


async def _reach(moment: str, reached: Awaitable[object], victim: Victim) -> None:
    """Wait until the victim is where it is to be killed; raises AssertionError if it goes past."""
    waiting = [asyncio.ensure_future(reached), asyncio.ensure_future(victim.wait_until_gone())]
    if moment != HOLDING:
        waiting.append(asyncio.ensure_future(victim.wait_until_said(HOLDING)))
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert waiting[0].done(), f"the victim never came to this, or ended before: {moment}"
        await waiting[0]
    finally:
        for one in waiting:
            one.cancel()


async def _client(stack: AsyncExitStack, hosts: str) -> Client:
    return await stack.enter_async_context(connect(hosts, session_timeout=_TIMEOUT_S))


async def _finish(killing: Killing, actor: Actor) -> None:
    await killing.take_part(actor)


async def _wait_until_nothing_is_left(killing: Killing, observer: Client) -> None:
    left: list[str] = []
    try:
        async with (
            asyncio.timeout(_SETTLED_S),
            aclosing(observer.watch(PATH, recursive=True)) as changes,
        ):
            async for _ in changes:
                left = await _left(killing, observer)
                if not left:
                    return
    except TimeoutError:
        raise AssertionError(f"left behind: {left}") from None


async def _left(killing: Killing, observer: Client) -> list[str]:
    left = []
    level = [PATH]
    while level:
        path = level.pop()
        try:
            names = await observer.children(path)
        except NoNodeError:
            continue
        paths = [f"{path}/{name}" for name in names]
        level += paths
        left += [
            one
            for one in paths
            if not any(fnmatchcase(one, pattern) for pattern in killing.remains)
        ]
    return left


class Victim:
    """A process that takes part until it is killed."""

    def __init__(self, take_part: TakePart, hosts: str) -> None:
        self._command = [
            *(sys.executable, "-m", "tests.fault.stage.recipe_processes"),
            *(hosts, take_part.__module__, take_part.__qualname__),
        ]
        self.said: list[tuple[str, str]] = []
        self._has_spoken = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            cwd=Path(__file__).parents[3],
        )
        self._listening = asyncio.create_task(self._listen(self._process))

    async def wait_until_said(self, word: str) -> None:
        while not any(word == one for one, _ in self.said):
            self._has_spoken.clear()
            await self._has_spoken.wait()

    async def wait_until_gone(self) -> None:
        assert self._listening is not None
        await asyncio.shield(self._listening)

    async def kill(self) -> None:
        """End it as `kill -9` does, with no chance to say or do anything."""
        assert self._process is not None
        assert self._listening is not None
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        await self._listening

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            word, _, value = line.decode().strip().partition(" ")
            self.said.append((word, value))
            self._has_spoken.set()


class _SpeakingActor(Actor):
    """An actor in a process of its own: what it says is a line of its output."""

    def say(self, word: str, value: object = "") -> None:
        print(word, value, flush=True)


async def _take_part(hosts: str, module: str, function: str) -> None:
    take_part: TakePart = getattr(importlib.import_module(module), function)
    async with connect(hosts, session_timeout=_VICTIM_TIMEOUT_S) as client:
        await take_part(_SpeakingActor("victim", client))


if __name__ == "__main__":
    asyncio.run(_take_part(*sys.argv[1:]))

"""What is played in a storm: every recipe that can be, each at a place of its own.

An act is what one player does with one recipe, from its beginning to its end, as long as nothing
happens to it. It may raise what a recipe raises when its session is over, and is played again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from random import Random
from typing import Final

from paddock.client.client import Client
from paddock.recipes import Lock, MultiLock, Queue, ReadWriteLock, Semaphore, SimpleMutex
from tests.fault.recipe_players import SESSION_TIMEOUT_S, Fenced, Note, Player


@dataclass(frozen=True, slots=True)
class Act:
    """What is played, by any number of players at once."""

    # With the path at which the recipe has its nodes.
    play: Callable[[Player, str, Random], Awaitable[None]]
    capacity: int = 1
    # What may be left below the path: patterns of whole paths.
    remains: tuple[str, ...] = ()
    # Raises AssertionError when everybody has gone: by what a client of its own reads below the
    # path, and by the notes of the players.
    judge: Callable[[Client, str, list[Note]], Awaitable[None]] | None = None


def some_time(random: Random) -> float:
    """Give how long something is held: as a rule not long, now and then longer than a session."""
    return random.uniform(0.0, 3.0) if random.random() < 0.9 else 1.5 * SESSION_TIMEOUT_S


async def lock(me: Player, path: str, random: Random) -> None:
    async with Lock(me.client, path) as grant:
        with me.holds(grant.token):
            await me.write(grant)
            await asyncio.sleep(some_time(random))
            await me.write(grant)


async def mutex(me: Player, path: str, random: Random) -> None:
    async with SimpleMutex(me.client, path, "mutex") as grant:
        with me.holds(grant.token):
            await me.write(grant)
            await asyncio.sleep(some_time(random))


# More than there are players; a writer holds as many as there are.
READERS: Final = 100
LEASES: Final = 2


async def read_write_lock(me: Player, path: str, random: Random) -> None:
    shared = ReadWriteLock(me.client, path)
    if random.random() < 0.6:
        async with shared.read as grant:
            with me.holds(grant.token, share=1):
                await me.write(grant)
                await asyncio.sleep(some_time(random))
                await me.write(grant)
        return
    async with shared.write as writing:
        with ExitStack() as holding:
            hold = holding.enter_context(me.holds(writing.token))
            await me.write(writing)
            await asyncio.sleep(random.uniform(0.0, 2.0))
            async with shared.read as reading:
                with holding.pop_all():
                    hold.share = 1
                    await writing.release()
                    await asyncio.sleep(random.uniform(0.0, 2.0))
                    await me.write(reading)


async def semaphore(me: Player, path: str, random: Random) -> None:
    async with Semaphore(me.client, path, leases=LEASES) as grant:
        with me.holds(grant.token, share=1):
            await me.write(grant)
            await asyncio.sleep(some_time(random))
            await me.write(grant)


async def multi_lock(me: Player, path: str, random: Random) -> None:
    """Take a lock that all want, together with some others in any order."""
    others = random.sample("abde", random.randint(0, 2))
    names = random.sample(["c", *others], 1 + len(others))
    async with MultiLock([Lock(me.client, f"{path}/{name}") for name in names]) as grant:
        wanted = Fenced(grant.tokens[names.index("c")], grant.guard)
        with me.holds(wanted.token):
            await me.write(wanted)
            await asyncio.sleep(random.uniform(0.0, 2.0))
            await me.write(wanted)


async def queue(me: Player, path: str, random: Random) -> None:
    """Put an item, and take one, whichever that is; some are not finished with it."""
    shared = Queue(me.client, path)
    own = me.client.new_mark().encode()
    await shared.put(own, priority=random.randint(1, 2), delay=random.choice((0.0, 0.0, 1.0)))
    me.note("put", own)
    try:
        async with shared.take() as item:
            await asyncio.sleep(random.uniform(0.0, 3.0))
            if random.random() < 0.2:
                raise ArithmeticError
            me.note("finished", item.data)
        me.note("done", item.data)
    except ArithmeticError:
        pass


async def judge_queue(observer: Client, path: str, notes: list[Note]) -> None:
    """See that nothing is lost, and nothing was acknowledged twice or is there nevertheless."""
    put, finished, done = (
        Counter(note.value for note in notes if note.what == what)
        for what in ("put", "finished", "done")
    )
    left = Counter(item.data for item in await Queue(observer, path).items())
    assert set(put) <= set(finished) | set(left)
    assert max((done + left).values(), default=0) <= 1


ACTS: Final[dict[str, Act]] = {
    "lock": Act(lock),
    "mutex": Act(mutex),
    "multi lock": Act(multi_lock, remains=("*/[a-e]",)),
    "queue": Act(queue, remains=("/queue/*",), judge=judge_queue),
    "read-write lock": Act(read_write_lock, capacity=READERS),
    "semaphore": Act(semaphore, capacity=LEASES, remains=("*/locks", "*/leases")),
}

"""What is played in a storm: every recipe that can be, each at a place of its own.

An act is what one player does with one recipe, from its beginning to its end, as long as nothing
happens to it. It may raise what a recipe raises when its session is over, and is played again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from paddock.client.client import Client
from paddock.recipes import Lock, SimpleMutex
from tests.fault.recipe_players import Note, Player


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


async def lock(me: Player, path: str, random: Random) -> None:
    async with Lock(me.client, path) as grant:
        with me.holds(grant.token):
            await me.write(grant)
            await asyncio.sleep(random.uniform(0.0, 3.0))
            await me.write(grant)


async def mutex(me: Player, path: str, random: Random) -> None:
    async with SimpleMutex(me.client, path, "mutex") as grant:
        with me.holds(grant.token):
            await me.write(grant)
            await asyncio.sleep(random.uniform(0.0, 3.0))


ACTS: Final[dict[str, Act]] = {
    "lock": Act(lock),
    "mutex": Act(mutex),
}

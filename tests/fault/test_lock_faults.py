"""A lock in every trouble: one holder at a time, everybody's turn comes, nothing is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeAlias

import pytest

from paddock.client.client import Client
from paddock.recipes import Lock, SimpleMutex
from tests.fault.stage.recipe_players import Player
from tests.fault.stage.recipe_stage import Part, Scene, Story, everybody_held, play
from tests.fault.stage.recipe_troubles import BRIEF, TROUBLES

# Longer than a session lives that nobody hears of: a holder that is cut off has to be told.
LONG_S: Final = 12.0


# What one contender has of its client.
Make: TypeAlias = Callable[[Client], Lock | SimpleMutex]


def new_lock(client: Client) -> Lock:
    return Lock(client, "/recipe")


def new_mutex(client: Client) -> SimpleMutex:
    return SimpleMutex(client, "/recipe", "mutex")


def contender(after_s: float = 0.0, for_s: float = 2.0, make: Make = new_lock) -> Part:
    """Return a client that requests the lock after `after_s` and holds it for `for_s` seconds."""

    async def contend(me: Player) -> None:
        await asyncio.sleep(after_s)
        async with make(me.client) as grant:
            with me.holds(grant.token):
                await me.write(grant)
                await asyncio.sleep(for_s)
                await me.write(grant)

    return contend


# One holds before the subject does, one waits behind it, and one comes when it holds.
IN_THE_MIDDLE: Final = Story(
    subject=contender(1.0, LONG_S),
    rivals=(contender(), contender(1.5), contender(4.0)),
    judge=everybody_held,
)
FIRST: Final = Story(subject=contender(0.0, LONG_S), rivals=(contender(1.0),), judge=everybody_held)
MUTEX: Final = Story(
    subject=contender(1.0, LONG_S, new_mutex),
    rivals=(contender(0.0, 2.0, new_mutex), contender(4.0, 2.0, new_mutex)),
    judge=everybody_held,
)


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_lock_in_every_trouble(trouble: str) -> None:
    assert TROUBLES[trouble](IN_THE_MIDDLE) > 1


@pytest.mark.parametrize("trouble", BRIEF)
def test_the_first_one_of_all_in_trouble(trouble: str) -> None:
    """Who comes first makes the node that the others stand under, too."""
    assert BRIEF[trouble](FIRST) > 1


@pytest.mark.parametrize("trouble", [*BRIEF, "its nodes deleted"])
def test_a_mutex_in_trouble(trouble: str) -> None:
    assert {**TROUBLES, **BRIEF}[trouble](MUTEX) > 1


@pytest.mark.long
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_mutex_in_every_trouble(trouble: str) -> None:
    assert TROUBLES[trouble](MUTEX) > 1


def test_whoever_waits_hears_only_of_the_one_before() -> None:
    """However many stand in the line, their end comes as one event, and is looked at once."""

    async def judge_line(scene: Scene) -> None:
        await everybody_held(scene)
        # The other one is of its own node, when it has left.
        assert len(scene.proxy.events) == 2
        looks = [one for one in scene.proxy.requests if one.name.startswith("get_children")]
        assert len(looks) == 2

    rivals = tuple(contender(0.1 * number) for number in range(8))
    play(Story(subject=contender(1.0), rivals=rivals, judge=judge_line))

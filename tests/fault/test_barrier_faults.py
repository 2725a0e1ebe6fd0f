"""Barriers in every trouble: none opens too early, and none stays shut for those who are there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Final

import pytest

from paddock.client.client import Client
from paddock.recipes import Barrier, DoubleBarrier
from tests.fault.stage.recipe_players import Player
from tests.fault.stage.recipe_stage import Part, Scene, Story
from tests.fault.stage.recipe_troubles import BRIEF, TROUBLES

# Longer than the session timeout, so that a player that is cut off learns of the expiry.
LONG_S: Final = 12.0
# After so long one gives up, who was not needed.
NEVER_S: Final = 40.0


def times(scene: Scene, what: str, *but: str) -> list[float]:
    """Return the times at which `what` was noted, except by the players in `but`."""
    return sorted(note.at for note in scene.notes if note.what == what and note.who not in but)


# A group of three.


def member(after_s: float, for_s: float, *, is_needed: bool = True) -> Part:
    """Return a member that arrives after `after_s` and stays inside for `for_s` seconds."""

    async def take_part(me: Player) -> None:
        await asyncio.sleep(after_s)
        barrier = DoubleBarrier(me.client, "/recipe", 3)
        me.note("came")
        try:
            async with asyncio.timeout(None if is_needed else NEVER_S) as limit:
                async with barrier:
                    limit.reschedule(None)
                    me.note("began")
                    await asyncio.sleep(for_s)
                    me.note("ended")
                me.note("left")
        except TimeoutError:
            pass

    return take_part


async def judge(scene: Scene) -> None:
    """See that nobody began before three had come, and nobody left before the others had ended."""
    came, began, left = (times(scene, what) for what in ("came", "began", "left"))
    assert began[0] >= came[2]
    # Those who have good connections had to wait for each other, whatever the subject did.
    ended = times(scene, "ended", "the subject", "rival 3")
    assert len(ended) == 2
    assert times(scene, "left", "the subject", "rival 3")[0] >= max(ended)
    names = {note.who for note in scene.notes if note.what == "left"}
    assert names >= {"rival 1", "rival 2"}
    if scene.is_undisturbed:
        assert names == {"rival 1", "rival 2", "the subject"}
        assert left[0] >= times(scene, "ended")[-1]


# The subject completes the group, and is the slowest of it; one comes later, who takes its place
# if it has failed, and otherwise is one too many.
COMPLETED: Final = Story(
    subject=member(1.0, LONG_S),
    rivals=(member(0.0, 1.0), member(0.5, 3.0), member(20.0, 1.0, is_needed=False)),
    judge=judge,
)
# It comes first, and so leaves last.
FIRST: Final = Story(
    subject=member(0.0, 1.0),
    rivals=(member(0.5, 1.0), member(1.0, LONG_S), member(20.0, 1.0, is_needed=False)),
    judge=judge,
)


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(name, marks=pytest.mark.long) if name == "every two cuts" else name
        for name in TROUBLES
    ],
)
def test_a_double_barrier_in_every_trouble(trouble: str) -> None:
    assert TROUBLES[trouble](COMPLETED) > 1


@pytest.mark.parametrize("trouble", BRIEF)
def test_who_came_first_in_trouble(trouble: str) -> None:
    assert BRIEF[trouble](FIRST) > 1


# A gate.

GATE: Final = "/recipe/gate"


async def close(me: Player) -> None:
    await asyncio.sleep(1.0)
    await Barrier(me.client, GATE).close()
    me.note("closed")


async def open_whenever_closed(me: Player) -> None:
    gate = Barrier(me.client, GATE)
    async for data in states_of_gate(me):
        if data is not None:
            me.note("opened")
            await gate.open()


async def close_whenever_open(me: Player) -> None:
    gate = Barrier(me.client, GATE)
    async for data in states_of_gate(me):
        if data is None:
            me.note("closed again")
            await gate.close()


async def states_of_gate(me: Player) -> AsyncIterator[bytes | None]:
    """Yield the data of the gate after each change, until no change is to be expected."""
    try:
        async with asyncio.timeout(NEVER_S), aclosing(me.client.watch(GATE)) as changes:
            async for change in changes:
                yield change.data
    except TimeoutError:
        pass


async def judge_closing(scene: Scene) -> None:
    """See that who closes once has it closed once, though it is opened before it hears of that."""
    assert len(times(scene, "closed")) <= len(times(scene, "opened")) <= 1
    assert await scene.observer.exists(GATE) is None


async def close_gate(client: Client) -> None:
    await Barrier(client, GATE).close()


async def open_gate(me: Player) -> None:
    await asyncio.sleep(1.0)
    await Barrier(me.client, GATE).open()
    me.note("opened")


async def judge_opening(scene: Scene) -> None:
    """See that who opens once opens what is closed then, and not what is closed later."""
    assert len(times(scene, "opened")) <= len(times(scene, "closed again")) <= 1
    assert await scene.observer.exists(GATE) is not None


CLOSING: Final = Story(subject=close, rivals=(open_whenever_closed,), judge=judge_closing)
OPENING: Final = Story(
    prepare=close_gate,
    subject=open_gate,
    rivals=(close_whenever_open,),
    judge=judge_opening,
    remains=(GATE,),
)


@pytest.mark.parametrize("trouble", BRIEF)
def test_who_closes_a_gate_in_trouble(trouble: str) -> None:
    assert BRIEF[trouble](CLOSING) > 1


@pytest.mark.parametrize("trouble", BRIEF)
def test_who_opens_a_gate_in_trouble(trouble: str) -> None:
    assert BRIEF[trouble](OPENING) > 1


async def wait_at_gate(me: Player) -> None:
    await asyncio.sleep(1.0)
    await Barrier(me.client, GATE).wait()
    me.note("went on")


async def open_late(me: Player) -> None:
    await asyncio.sleep(LONG_S)
    me.note("opening")
    await Barrier(me.client, GATE).open()


async def judge_waiting(scene: Scene) -> None:
    went_on = times(scene, "went on")
    assert all(at >= times(scene, "opening")[0] for at in went_on)
    assert went_on or not scene.is_undisturbed


WAITING: Final = Story(
    prepare=close_gate, subject=wait_at_gate, rivals=(open_late,), judge=judge_waiting
)


@pytest.mark.parametrize("trouble", BRIEF)
def test_who_waits_at_a_gate_in_trouble(trouble: str) -> None:
    assert BRIEF[trouble](WAITING) > 1

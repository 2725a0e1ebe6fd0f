"""Requests to let go in every trouble: of who asks, and of who is asked."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

import pytest

from paddock.recipes import Lock
from tests.fault.stage.recipe_players import Player
from tests.fault.stage.recipe_stage import Scene, Story, everybody_held
from tests.fault.stage.recipe_troubles import BRIEF, TROUBLES
from tests.fault.test_lock_faults import contender

# In virtual time: so long a holder waits for a request that may never come.
PATIENCE_S: Final = 60.0


async def hold(me: Player) -> None:
    """Hold the lock until somebody asks for it."""
    async with Lock(me.client, "/recipe", data=b"holder") as grant:
        with me.holds(grant.token):
            await me.write(grant)
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_S):
                    for request in await grant.wait_asked():
                        me.note("heard of", request.data)
            # The asker stands in the line by then.
            await asyncio.sleep(1.0)
            await me.write(grant)


async def ask(me: Player) -> None:
    """Ask the holder of the lock, once, and hold it then; nobody asks us."""
    await asyncio.sleep(1.0)
    lock = Lock(me.client, "/recipe", data=b"asker")
    for asked in await lock.ask_to_release():
        me.note("asked", asked.data)
    async with lock as grant:
        with me.holds(grant.token):
            await me.write(grant)
            await asyncio.sleep(2.0)
            me.expect(grant.asked == (), "it is asked for what another has released")


async def judge(scene: Scene) -> None:
    """See that every request was heard, by the holder that lived, and its words came with it."""
    await everybody_held(scene)
    asked = [note.value for note in scene.notes if note.what == "asked"]
    heard = [note.value for note in scene.notes if note.what == "heard of"]
    assert set(asked) <= {b"holder"}
    assert set(heard) <= {b"asker"}
    if scene.is_undisturbed:
        assert asked == [b"holder"]
        assert heard == [b"asker"]


async def judge_asker(scene: Scene) -> None:
    await judge(scene)
    if any(note.what == "asked" for note in scene.notes):
        assert any(note.what == "heard of" for note in scene.notes)


# One stands behind the asker, whom nobody asks.
ASKING: Final = Story(subject=ask, rivals=(hold, contender(1.5)), judge=judge_asker)
ASKED: Final = Story(subject=hold, rivals=(ask,), judge=judge)


@pytest.mark.parametrize("trouble", ["undisturbed", "every cut", "the subject gone"])
def test_who_asks_is_in_trouble(trouble: str) -> None:
    assert BRIEF[trouble](ASKING) > 1


@pytest.mark.parametrize("trouble", ["undisturbed", "every cut", "a slow network"])
def test_who_is_asked_is_in_trouble(trouble: str) -> None:
    assert BRIEF[trouble](ASKED) > 1


@pytest.mark.long
@pytest.mark.parametrize("trouble", TROUBLES)
def test_who_asks_is_in_every_trouble(trouble: str) -> None:
    assert TROUBLES[trouble](ASKING) > 1


@pytest.mark.long
@pytest.mark.parametrize("trouble", TROUBLES)
def test_who_is_asked_is_in_every_trouble(trouble: str) -> None:
    assert TROUBLES[trouble](ASKED) > 1

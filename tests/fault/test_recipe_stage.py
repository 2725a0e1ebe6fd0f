"""The stage finds what is wrong with a lock, and nothing wrong with one that is right."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from paddock.client.client import Client
from tests.fault.stage.recipe_players import Player
from tests.fault.stage.recipe_stage import Part, Story
from tests.fault.stage.recipe_troubles import TROUBLES
from tests.fault.stage.toy_lock import Flaw, ToyLock


async def make_line(observer: Client) -> None:
    await observer.create("/recipe")


def contender(flaw: Flaw, after_s: float = 0.0, for_s: float = 2.0) -> Part:
    async def contend(me: Player) -> None:
        await asyncio.sleep(after_s)
        async with ToyLock(me.client, "/recipe", flaw).hold() as grant:
            with me.holds(grant.token):
                await me.write(grant)
                await asyncio.sleep(for_s)
                await me.write(grant)

    return contend


def line(flaw: Flaw) -> Story:
    """One holds before the subject does, and two wait behind it."""
    return Story(
        # Longer than a session lives that nobody hears of.
        subject=contender(flaw, 1.0, 12.0),
        rivals=(contender(flaw), contender(flaw, 1.5), contender(flaw, 4.0)),
        prepare=make_line,
    )


@pytest.mark.parametrize("trouble", TROUBLES)
def test_nothing_is_wrong_with_a_lock_that_is_right(trouble: str) -> None:
    assert TROUBLES[trouble](line(Flaw.NONE)) > 1


# In which trouble each is found, and as what.
FOUND: Final = {
    Flaw.STAYS_WHEN_CANCELLED: ("every cancellation", "rival 2 waits for ever"),
    Flaw.STAYS_WHEN_CANCELLED_EARLY: ("every cancellation", "rival 2 waits for ever"),
    Flaw.CREATES_TWICE: ("every fault", "rival 2 waits for ever"),
    Flaw.DELETES_ONCE: ("every fault", "rival 2 waits for ever"),
    Flaw.TRUSTS_THE_EVENT: ("every cancellation", "more is held than there is: rival 2"),
    Flaw.KEEPS_THE_BODY: ("the subject gone", "held on, though its client knew at 11.000 s"),
    Flaw.WRONG_TOKEN: ("undisturbed", "a token was given twice"),
    Flaw.NO_GUARD: ("its nodes deleted", "token 10 has written after token 11"),
    Flaw.LEAVES_A_WATCH: ("every cancellation", "the subject has left watches behind"),
    Flaw.LEAVES_A_TASK: ("undisturbed", "tasks are left over"),
    Flaw.SWALLOWS: ("every cancellation", "the subject was cancelled, and did not heed it"),
}


@pytest.mark.parametrize("flaw", FOUND)
def test_a_flaw_is_found(flaw: Flaw) -> None:
    trouble, problem = FOUND[flaw]
    with pytest.raises(AssertionError, match=problem):
        TROUBLES[trouble](line(flaw))


def test_every_flaw_is_looked_for() -> None:
    assert {*FOUND, Flaw.NONE} == {*Flaw}

"""A divided set in every trouble: no item has two members at a time, and each ends up with one."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, aclosing
from typing import Final
from weakref import WeakKeyDictionary

import pytest

from paddock.recipes import Partitioner
from tests.fault.stage.grant_log import GrantLog
from tests.fault.stage.recipe_players import Player
from tests.fault.stage.recipe_stage import Part, Scene, Story
from tests.fault.stage.recipe_troubles import BRIEF, TROUBLES

ITEMS: Final = ("a", "b")

# By play: what was held of each item.
logs: Final[WeakKeyDictionary[GrantLog, dict[str, GrantLog]]] = WeakKeyDictionary()


def log_of(item: str, play: GrantLog) -> GrantLog:
    return logs.setdefault(play, {}).setdefault(item, GrantLog())


def member(after_s: float, for_s: float) -> Part:
    """Return a member that joins after `after_s` and takes part for `for_s` seconds."""

    async def take_part(me: Player) -> None:
        await asyncio.sleep(after_s)
        holds = {item: ExitStack() for item in ITEMS}
        async with Partitioner(me.client, "/recipe", ITEMS) as partitioner:
            try:
                async with asyncio.timeout(for_s), aclosing(partitioner.shares()) as shares:
                    async for share in shares:
                        for item in share.removed:
                            holds[item].close()
                        for item in share.gained:
                            token = partitioner.grant(item).token
                            log = log_of(item, me.log)
                            holds[item].enter_context(log.hold(me.session, token))
            except TimeoutError:
                pass
            finally:
                for hold in holds.values():
                    hold.close()

    return take_part


async def judge(scene: Scene) -> None:
    """Assert that no item had two members at a time, and that each had one in the end."""
    for item in ITEMS:
        log = log_of(item, scene.log)
        log.check()
        last = max(log.holds, key=lambda hold: hold.ended_at)
        assert last.session.owner == "rival 2"
        if scene.is_undisturbed:
            assert log.of("the subject")


# One is there before the subject and leaves; one comes when the subject has everything.
STORY: Final = Story(
    subject=member(1.0, 14.0),
    rivals=(member(0.0, 4.0), member(6.0, 60.0)),
    judge=judge,
    remains=("/recipe/members", "/recipe/items"),
)
MORE: Final = ("a slow network", "its nodes deleted")
PLAYS: Final = BRIEF | {name: TROUBLES[name] for name in MORE}


@pytest.mark.parametrize("trouble", PLAYS)
def test_a_member_in_trouble(trouble: str) -> None:
    assert PLAYS[trouble](STORY) > 1

"""A node that is kept, in every trouble: it comes back, others have their turn, none is left."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from paddock.recipes import PersistentNode
from tests.fault.stage.recipe_players import Player
from tests.fault.stage.recipe_stage import Part, Scene, Story
from tests.fault.stage.recipe_troubles import BRIEF, TROUBLES

NODE: Final = "/recipe/node"


def keeper(after_s: float, for_s: float) -> Part:
    """Return a client that starts after `after_s` and keeps the node for `for_s` seconds."""

    async def keep(me: Player) -> None:
        await asyncio.sleep(after_s)
        async with PersistentNode(me.client, NODE, me.name.encode()) as node:
            me.note("has it")
            await asyncio.sleep(for_s)
            # Whatever has happened meanwhile.
            await node.wait_there()
            await node.set_data(b"changed by " + me.name.encode())
            me.note("changed it")

    return keep


async def judge(scene: Scene) -> None:
    """See that everybody had the node, and that nobody made it again after it was closed."""
    had = {note.who for note in scene.notes if note.what == "changed it"}
    assert had >= {"rival 1", "rival 2"}
    if scene.is_undisturbed:
        assert "the subject" in had


# One has the node before the subject, and one waits behind it.
IN_THE_MIDDLE: Final = Story(
    subject=keeper(1.0, 11.0), rivals=(keeper(0.0, 2.0), keeper(4.0, 1.0)), judge=judge
)


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_node_that_is_kept_in_every_trouble(trouble: str) -> None:
    assert TROUBLES[trouble](IN_THE_MIDDLE) > 1


async def keep_through(me: Player) -> None:
    """Keep a node that nobody else wants; it outlives its session, so nothing is ever raised."""
    async with PersistentNode(me.client, NODE, b"1") as node:
        await asyncio.sleep(30.0)
        await node.wait_there()
        await node.set_data(b"2")
        await asyncio.sleep(30.0)
        me.note("done")


async def watch_it(me: Player) -> None:
    """See how the node is, when trouble has come and gone."""
    await asyncio.sleep(50.0)
    stat = await me.client.exists(NODE)
    me.note("there" if stat is not None else "not there")
    await asyncio.sleep(80.0)


async def judge_restored(scene: Scene) -> None:
    there = [note.what for note in scene.notes if note.who == "rival 1"] == ["there"]
    assert there or scene.is_subject_gone or scene.is_subject_cancelled
    if not scene.is_subject_gone and not scene.is_subject_cancelled:
        assert "done" in {note.what for note in scene.notes}


ALONE: Final = Story(subject=keep_through, rivals=(watch_it,), judge=judge_restored, ends_with=())


@pytest.mark.parametrize("trouble", BRIEF)
def test_a_node_is_restored_whatever_becomes_of_its_session(trouble: str) -> None:
    assert BRIEF[trouble](ALONE) > 1

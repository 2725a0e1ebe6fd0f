"""Nodes whose keepers are killed, as processes: they are gone, and others may keep them then."""

from __future__ import annotations

from paddock.recipes import PersistentNode
from tests.fault.stage.recipe_processes import HOLDING, Actor, Killing, play_kills


async def keep_the_node(me: Actor) -> None:
    path = f"{me.path}/node"
    async with PersistentNode(me.client, path):
        stat = await me.client.exists(path)
        assert stat is not None
        assert stat.ephemeral_owner == me.client.session_id
        me.say(HOLDING, stat.czxid)
        await me.wait_to_go_on()


def test_a_node_is_kept_by_another_one_when_its_keeper_is_killed() -> None:
    play_kills(Killing(keep_the_node, waits_with="exists"))

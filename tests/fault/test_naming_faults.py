"""Names, numbers and configuration in every trouble: nothing twice, and the last one always."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Final

import pytest

from paddock.client.client import Client
from paddock.protocol import opcodes
from paddock.recipes import Configuration, Naming
from tests.fault.stage.recipe_players import Player
from tests.fault.stage.recipe_stage import Scene, Story, Trouble, play
from tests.fault.stage.recipe_troubles import BRIEF

PATH: Final = "/recipe"
# When all trouble is over.
LATE_S: Final = 60.0


async def name_things(me: Player) -> None:
    """Bind a name that nobody else wants, take a number, and unbind the name."""
    naming = Naming(me.client, PATH)
    # Whose reply is lost must not find its own name taken.
    await naming.bind(me.name, b"mine")
    me.note("has bound")
    me.note("has number", await naming.new_id())
    await naming.unbind(me.name)
    me.note("has unbound")
    await asyncio.sleep(1.0)


async def judge_names(scene: Scene) -> None:
    numbers = [note.value for note in scene.notes if note.what == "has number"]
    assert len(set(numbers)) == len(numbers)
    names = await Naming(scene.observer, PATH).names()
    have = {what: {note.who for note in scene.notes if note.what == what} for what in WHAT}
    # The subject may have been cut short in between.
    assert have["has bound"] - have["has unbound"] >= {*names} - {"the subject"}
    assert not have["has unbound"] & {*names}


WHAT: Final = ("has bound", "has unbound")
NAMING: Final = Story(
    subject=name_things,
    rivals=(name_things,),
    judge=judge_names,
    remains=("/recipe/names", "/recipe/ids", "/recipe/names/the subject"),
)


@pytest.mark.parametrize("trouble", BRIEF)
def test_names_and_numbers_in_trouble(trouble: str) -> None:
    assert BRIEF[trouble](NAMING) > 1


def test_what_another_one_has_bound_since_is_not_unbound() -> None:
    """The reply of the unbinding is lost, and before we look the name is bound by another."""

    async def unbind(me: Player) -> None:
        await Naming(me.client, PATH).unbind("shared")

    async def judge(scene: Scene) -> None:
        found = await Naming(scene.observer, PATH).resolve("shared")
        assert found == (None if scene.is_undisturbed else b"by another")

    def bound_while_away(nth: int) -> Trouble:
        def begin(scene: Scene) -> None:
            fault = scene.proxy.when(nth=nth).cut_after(stay_away=True)
            scene.expect(fault, "the reply is lost")

            async def bind() -> None:
                await fault.happened()
                await Naming(scene.observer, PATH).bind("shared", b"by another")
                scene.proxy.heal()

            scene.help(bind())

        return Trouble("the name is bound while we are away", begin)

    story = Story(
        subject=unbind,
        prepare=lambda client: Naming(client, PATH).bind("shared", b"ours"),
        judge=judge,
        remains=("/recipe/*",),
    )
    requests = play(story).requests
    [write] = [nth for nth, one in enumerate(requests, 1) if one.operation == opcodes.DELETE]
    play(story, bound_while_away(write))


def test_a_name_is_not_unbound_under_whoever_is_just_binding_it() -> None:
    """Another client has bound it and has not heard of it yet, as its marker shows."""

    async def bind(client: Client) -> None:
        await Naming(client, PATH).bind("shared", b"by another")
        await client.create(f"{PATH}/names/shared/_mark_0", ephemeral=True)

    async def unbind(me: Player) -> None:
        await Naming(me.client, PATH).unbind("shared")
        me.note("has unbound")

    async def judge(scene: Scene) -> None:
        [note] = scene.notes
        assert note.at >= 5.0
        assert await Naming(scene.observer, PATH).names() == []

    def begin(scene: Scene) -> None:
        async def hear_of_it() -> None:
            await asyncio.sleep(5.0)
            assert not scene.notes
            await scene.observer.delete(f"{PATH}/names/shared/_mark_0")

        scene.help(hear_of_it())

    story = Story(subject=unbind, prepare=bind, judge=judge, remains=("/recipe/*",))
    play(story, Trouble("the marker stays for a while", begin))


async def follow(me: Player) -> None:
    """Follow a number that grows, until it is 3, and add one to it in between."""
    async with (
        Configuration(me.client, PATH, int, default=0) as configuration,
        aclosing(configuration.changes()) as stream,  # type: ignore[type-var]
    ):
        me.note("tries")
        await configuration.update(lambda number: number + 10)
        me.note("has added")
        async for number in stream:
            me.note("sees", number)
            if number % 10 == 3:
                return


async def count(me: Player) -> None:
    """Add one, add one, break it for a while, and add one when all trouble is over."""
    async with Configuration(me.client, PATH, int, default=0) as configuration:
        for _ in range(2):
            await asyncio.sleep(1.0)
            good = await configuration.update(lambda number: number + 1)
        await me.client.set(PATH, b"broken")
        await asyncio.sleep(0.01)
        await configuration.set(good)
        await asyncio.sleep(LATE_S)
        await configuration.update(lambda number: number + 1)


async def judge_configuration(scene: Scene) -> None:
    number = int((await scene.observer.get(PATH)).data)
    tried = [note for note in scene.notes if note.what == "tries"]
    added = [note for note in scene.notes if note.what == "has added"]
    seen = [note.value for note in scene.notes if note.what == "sees"]
    # It may have happened, and then has once.
    assert number in {10 * len(added) + 3, 10 * len(tried) + 3}
    assert seen == sorted(set(seen))
    if seen and seen[-1] % 10 == 3:
        assert seen[-1] == number
    if scene.is_undisturbed:
        assert seen[-1] == 13


CONFIGURED: Final = Story(
    subject=follow, rivals=(count,), judge=judge_configuration, remains=("/recipe/*",)
)


@pytest.mark.parametrize("trouble", BRIEF)
def test_a_configuration_in_trouble(trouble: str) -> None:
    assert BRIEF[trouble](CONFIGURED) > 1

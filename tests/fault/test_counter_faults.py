"""Counters and shared values in every trouble: each write counts once, and its writer knows."""

from __future__ import annotations

import asyncio
import itertools
from typing import Final

import pytest

from paddock.client.client import Client
from paddock.errors import ConnectionLostError
from paddock.protocol import opcodes
from paddock.recipes import Counter, SharedValue
from tests.fault.stage.cutting import CUT_AFTER
from tests.fault.stage.recipe_players import Player
from tests.fault.stage.recipe_stage import Part, Scene, Story, Trouble, play
from tests.fault.stage.recipe_troubles import BRIEF, TROUBLES, faults

PATH: Final = "/recipe"


def adder(amount: int, rounds: int) -> Part:
    """Return a client that adds `amount` in each of `rounds` rounds, in step with the others."""

    async def add(me: Player) -> None:
        counter = Counter(me.client, PATH)
        for _ in range(rounds):
            me.note("tries", amount)
            me.note("has added", (amount, await counter.add(amount)))
            await asyncio.sleep(0.5)

    return add


async def judge_counter(scene: Scene) -> None:
    """See that the sums are those of one addition after the other, each of them once."""
    number = int((await scene.observer.get(PATH)).data)
    added = [note.value for note in scene.notes if note.what == "has added"]
    tried = [note.value for note in scene.notes if note.what == "tries"]
    # Of at most one nobody knows: the last one of the subject.
    unsure = sum(tried) - sum(amount for amount, _ in added)
    assert number - sum(amount for amount, _ in added) in (0, unsure)
    steps = sorted((total - amount, total) for amount, total in added)
    for (_, before), (after, _) in itertools.pairwise(steps):
        # They follow each other without an overlap: no addition was made from an old number.
        assert before <= after


# The amounts tell whose additions are in a sum.
COUNTING: Final = Story(
    subject=adder(1, 1), rivals=(adder(100, 2), adder(10_000, 2)), judge=judge_counter
)


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_counter_in_every_trouble(trouble: str) -> None:
    assert TROUBLES[trouble](COUNTING) > 1


async def append(me: Player) -> None:
    """Add a letter of one's own to what is there."""
    value = SharedValue(me.client, PATH)
    letter = b"s" if me.name == "the subject" else me.name[-1].encode()
    me.note("tries", letter)
    await value.update(lambda data: (data or b"") + letter)
    me.note("has added", letter)
    # Wait for slower players, so that all of them are there to the end.
    await asyncio.sleep(1.0)


async def judge_value(scene: Scene) -> None:
    """See that every letter is there as often as it was added."""
    found = (await scene.observer.get(PATH)).data
    for letter in (b"s", b"1"):
        tried = [note for note in scene.notes if (note.what, note.value) == ("tries", letter)]
        added = [note for note in scene.notes if (note.what, note.value) == ("has added", letter)]
        assert len(added) <= found.count(letter) <= len(tried)


APPENDING: Final = Story(subject=append, rivals=(append,), judge=judge_value)


@pytest.mark.parametrize("trouble", BRIEF)
def test_a_shared_value_in_trouble(trouble: str) -> None:
    assert BRIEF[trouble](APPENDING) > 1


def test_a_lost_addition_counts_once_although_others_have_added_since() -> None:
    """A counter that only compares its data or its version could not tell whose they are."""

    async def add_once(me: Player) -> None:
        await Counter(me.client, PATH).add(1)

    async def add_beside(me: Player) -> None:
        for _ in range(30):
            await Counter(me.client, PATH).add(100)
            await asyncio.sleep(0.05)

    async def judge(scene: Scene) -> None:
        assert (await scene.observer.get(PATH)).data == b"3001"

    story = Story(subject=add_once, rivals=(add_beside,), judge=judge)
    for nth, request in enumerate(play(story).requests, 1):
        play(story, faults((CUT_AFTER, nth, request)))


@pytest.mark.parametrize("exact", [False, True])
def test_what_nobody_can_know_is_said_and_not_done_again(exact: bool) -> None:
    """The reply is lost, and the counter is deleted with its marker before the client looks.

    In an exact session it is known.
    """

    async def add(me: Player) -> None:
        try:
            assert await Counter(me.client, PATH).add(1) == 6
        except ConnectionLostError as error:
            me.note("is told", str(error))

    async def set_up(client: Client) -> None:
        await client.create(PATH, b"5")

    async def judge(scene: Scene) -> None:
        is_there = await scene.observer.exists(PATH) is not None
        assert is_there == scene.is_undisturbed
        assert len(scene.notes) == (0 if scene.is_undisturbed or exact else 1)

    def deleted_while_away(nth: int) -> Trouble:
        def begin(scene: Scene) -> None:
            fault = scene.proxy.when(nth=nth).cut_after(stay_away=True)
            scene.expect(fault, "the reply is lost")

            async def delete() -> None:
                await fault.happened()
                await scene.observer.delete_tree(PATH)
                scene.proxy.heal()

            scene.help(delete())

        return Trouble("the counter is deleted while we are away", begin)

    story = Story(subject=add, prepare=set_up, judge=judge, exact=exact)
    [write] = [
        nth for nth, one in enumerate(play(story).requests, 1) if one.operation == opcodes.MULTI
    ]
    play(story, deleted_while_away(write))

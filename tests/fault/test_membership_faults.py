"""Membership in every trouble: who is there is seen by all, nobody twice, and nobody for ever."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Final

import pytest

from paddock.recipes import Membership, MembershipChange
from tests.fault.stage.recipe_players import Player
from tests.fault.stage.recipe_stage import Part, Scene, Story
from tests.fault.stage.recipe_troubles import BRIEF, TROUBLES

# Longer than a session lives that nobody hears of: a member that is cut off has to be told.
LONG_S: Final = 12.0


def member(name: str, after_s: float = 0.0, for_s: float = 2.0) -> Part:
    """Return a member that joins after `after_s`, stays for `for_s` and updates its data once."""

    async def be_there(me: Player) -> None:
        await asyncio.sleep(after_s)
        membership = Membership(me.client, "/recipe")
        async with membership.joined(
            name,
            b"first",
            on_connect=lambda one: me.note("connected", one),
            on_disconnect=lambda one: me.note("disconnected", one),
        ) as mates:
            me.note("found", mates)
            await asyncio.sleep(for_s / 2)
            await membership.update(b"second")
            me.note("updated", name)
            await asyncio.sleep(for_s / 2)

    return be_there


def observer(for_s: float) -> Part:
    """Return a client that only observes."""

    async def look(me: Player) -> None:
        try:
            async with (
                asyncio.timeout(for_s),
                aclosing(Membership(me.client, "/recipe").events()) as events,
            ):
                async for event in events:
                    me.note("event", event)
        except TimeoutError:
            pass

    return look


def judge_events(scene: Scene, who: str, is_to_the_end: bool) -> None:
    """See that every member comes once before it goes once, and changes only in between."""
    there: dict[int, bytes] = {}
    gone: set[int] = set()
    for note in scene.notes:
        if note.who != who or note.what != "event":
            continue
        change, one = note.value.change, note.value.member
        if change in (MembershipChange.PRESENT, MembershipChange.JOINED):
            assert one.token not in there.keys() | gone
            assert one.name not in _names(scene, there)
            there[one.token] = one.payload
        elif change is MembershipChange.UPDATED:
            assert (there[one.token], one.payload) == (b"first", b"second")
            there[one.token] = one.payload
        else:
            assert there.pop(one.token) == one.payload
            gone.add(one.token)
    if is_to_the_end:
        assert not there


def _names(scene: Scene, tokens: dict[int, bytes]) -> set[str]:
    return {
        note.value.member.name
        for note in scene.notes
        if note.what == "event" and note.value.member.token in tokens
    }


async def judge_a_member(scene: Scene) -> None:
    judge_events(scene, "rival 1", is_to_the_end=True)
    # The one beside it finds it or is told of it, unless it never was there; and never twice.
    told = [note for note in scene.notes if note.who == "rival 3"]
    names = [one.name for note in told if note.what == "found" for one in note.value]
    names += [note.value.name for note in told if note.what == "connected"]
    left = [note.value.name for note in told if note.what == "disconnected"]
    assert names.count("subject") == left.count("subject") <= 2
    assert names.count("early") == left.count("early") == 1
    own = [note for note in scene.notes if note.who == "the subject"]
    if scene.is_undisturbed:
        assert names.count("subject") == 1
        assert [note.what for note in own] == ["found", "connected", "disconnected", "updated"]
        assert [one.name for one in own[0].value] == ["early"]
    if not scene.forgiven and not scene.is_subject_gone and not scene.is_subject_cancelled:
        # So is the subject told of both of them, however late it was.
        seen = [one.name for one in own[0].value]
        seen += [note.value.name for note in own if note.what == "connected"]
        assert seen.count("late") == 1
        left = [note.value.name for note in own if note.what == "disconnected"]
        assert seen.count("early") == left.count("early")


def claimant(after_s: float, for_s: float, *, twice: bool = False) -> Part:
    """Return a client that claims a contested name, once or `twice`."""

    async def want(me: Player) -> None:
        await asyncio.sleep(after_s)

        async def have_it() -> None:
            membership = Membership(me.client, "/recipe")
            async with membership.joined("name", me.name.encode()):
                [own] = await membership.members()
                with me.holds(own.token):
                    await asyncio.sleep(for_s)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(2 if twice else 1):
                tasks.create_task(have_it())

    return want


async def judge_an_observer(scene: Scene) -> None:
    judge_events(scene, "the subject", is_to_the_end=False)
    if not scene.is_subject_gone and not scene.is_subject_cancelled and not scene.forgiven:
        judge_events(scene, "the subject", is_to_the_end=True)


# One looks on, one is there before the subject, and one comes and stays longer than it.
MEMBER: Final = Story(
    subject=member("subject", 1.0, LONG_S),
    rivals=(observer(60.0), member("early", 0.0, 3.0), member("late", 1.5, 50.0)),
    judge=judge_a_member,
)
OBSERVER: Final = Story(
    subject=observer(30.0),
    rivals=(member("one", 0.0, 4.0), member("one", 6.0, 4.0)),
    judge=judge_an_observer,
)


# One has the name before the subject, which wants it twice, and one waits behind it.
NAME: Final = Story(
    subject=claimant(1.0, 3.0, twice=True),
    rivals=(claimant(0.0, 3.0), claimant(1.5, 3.0), observer(60.0)),
    ends_with=(ExceptionGroup,),
)
MORE: Final = ("a slow network", "its nodes deleted")
PLAYS: Final = BRIEF | {name: TROUBLES[name] for name in MORE}


@pytest.mark.parametrize("trouble", PLAYS)
def test_a_member_in_trouble(trouble: str) -> None:
    assert PLAYS[trouble](MEMBER) > 1


@pytest.mark.parametrize("trouble", BRIEF)
def test_who_looks_in_trouble(trouble: str) -> None:
    assert BRIEF[trouble](OBSERVER) > 1


@pytest.mark.parametrize("trouble", BRIEF)
def test_who_wants_a_name_in_trouble(trouble: str) -> None:
    assert BRIEF[trouble](NAME) > 1

"""An election in every trouble: one leader at a time, everybody's turn comes, nothing stays."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from paddock.errors import SessionExpiredError
from paddock.recipes import Election, ElectionEvent
from tests.fault.stage.recipe_players import Player
from tests.fault.stage.recipe_stage import Part, Scene, Story
from tests.fault.stage.recipe_troubles import BRIEF, TROUBLES

# Longer than a session lives that nobody hears of: a leader that is cut off has to be told.
LONG_S: Final = 12.0


def in_a_scope(after_s: float = 0.0, for_s: float = 2.0) -> Part:
    """Return a candidate that stands after `after_s` and leads for `for_s` seconds."""

    async def stand(me: Player) -> None:
        await asyncio.sleep(after_s)
        election = Election(me.client, "/recipe", data=me.name.encode())
        async with election.lead() as leadership:
            with me.holds(leadership.token):
                assert election.is_leader
                await me.write(leadership)
                await asyncio.sleep(for_s)
                await me.write(leadership)

    return stand


def in_the_background(after_s: float, for_s: float) -> Part:
    """Return a candidate that leads twice for `for_s` seconds, with a step down in between."""

    async def stand(me: Player) -> None:
        await asyncio.sleep(after_s)
        election = Election(me.client, "/recipe", data=me.name.encode())
        election.add_listener(lambda event: me.note("event", event))
        async with election:
            has_stepped_down = False
            while True:
                leadership = await election.wait_leader()
                with me.holds(leadership.token):
                    await me.write(leadership)
                    try:
                        async with asyncio.timeout(for_s):
                            await leadership.wait_over()
                    except TimeoutError:
                        pass
                if leadership.is_held and has_stepped_down:
                    return
                if leadership.is_held:
                    has_stepped_down = True
                    await election.step_down()

    return stand


async def judge(scene: Scene) -> None:
    """See that everybody led, if nobody was kept from it."""
    rivals = {hold.session.owner for hold in scene.log.holds} - {"the subject"}
    assert len(rivals) == len(scene.story.rivals)
    if scene.is_undisturbed:
        assert scene.log.of("the subject")


async def judge_events(scene: Scene) -> None:
    await judge(scene)
    events = [note.value for note in scene.notes if note.who == "the subject"]
    # Events come in a permitted order, and each end is told once.
    for before, event in zip([None, *events], events, strict=False):
        assert before in _BEFORE[event], f"{before} before {event}"
    if events and not scene.is_subject_gone:
        assert events[-1].is_final


_DETERMINING: Final = (ElectionEvent.DETERMINING,)
_BEFORE: Final[dict[ElectionEvent, tuple[ElectionEvent | None, ...]]] = {
    ElectionEvent.START: (None,),
    ElectionEvent.OFFER: (ElectionEvent.START, ElectionEvent.ELECTED, *_DETERMINING),
    ElectionEvent.DETERMINING: (ElectionEvent.OFFER, ElectionEvent.READY),
    ElectionEvent.READY: _DETERMINING,
    ElectionEvent.ELECTED: _DETERMINING,
    ElectionEvent.FAILED: tuple(event for event in ElectionEvent if not event.is_final),
    # Who leaves the scope of an election that has failed stops it, too.
    ElectionEvent.STOPPED: (
        *(event for event in ElectionEvent if event is not ElectionEvent.STOPPED),
    ),
}

# One leads before the subject does, one waits behind it, and one comes when it leads.
SCOPE: Final = Story(
    subject=in_a_scope(1.0, LONG_S),
    rivals=(in_a_scope(), in_a_scope(1.5), in_a_scope(4.0)),
    judge=judge,
)
BACKGROUND: Final = Story(
    subject=in_the_background(1.0, LONG_S),
    # The last one comes when the subject leads for the second time.
    rivals=(in_a_scope(), in_a_scope(1.5), in_a_scope(20.0)),
    judge=judge_events,
    ends_with=(SessionExpiredError,),
)


@pytest.mark.parametrize("trouble", BRIEF)
def test_the_scope_of_a_leader_in_trouble(trouble: str) -> None:
    assert BRIEF[trouble](SCOPE) > 1


# Two troubles at a time are those of the line, and a lock has been through them.
ONE_AT_A_TIME: Final = {name: TROUBLES[name] for name in ("a slow network", "its nodes deleted")}


@pytest.mark.parametrize("trouble", BRIEF | ONE_AT_A_TIME)
def test_an_election_in_the_background_in_trouble(trouble: str) -> None:
    assert (BRIEF | ONE_AT_A_TIME)[trouble](BACKGROUND) > 1

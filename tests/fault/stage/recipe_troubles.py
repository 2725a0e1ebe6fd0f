"""Everything that may happen to the subject of a story, wherever it can happen.

Each of `TROUBLES` plays a story again and again, each time with the trouble in another place, and
gives how many plays that were. The places are the subject's requests, and for cancellation the
passes of the event loop (`stepping`), as a play without trouble has them: in virtual time a play
repeats itself exactly up to where the trouble is.

    @pytest.mark.parametrize("trouble", TROUBLES)
    def test_a_lock_in_every_trouble(trouble: str) -> None:
        assert TROUBLES[trouble](STORY) > 0
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from paddock.testing import Direction, SeenRequest
from tests.fault.stage.cutting import CUT_AFTER, CUTS, FAULTS, FaultKind
from tests.fault.stage.recipe_players import SESSION_TIMEOUT_S
from tests.fault.stage.recipe_stage import Scene, Story, Trouble, play

# How many requests after a fault are met by another one.
_FOLLOWING: Final = 4
# Virtual seconds in which another client acts before a request goes on.
_MOMENT_S: Final = 0.1
# So long nobody reaches a client whose session was ended: it still believes in it.
_AWAY_S: Final = SESSION_TIMEOUT_S / 2
_SLOW_S: Final = (0.3, 1.0)
# At so many moments after a fault the subject is cancelled.
_CANCELLED_AFTER_MAX: Final = 8

# Plays a story in a trouble wherever it can happen; gives how many plays that were.
Plays: TypeAlias = Callable[[Story], int]


def undisturbed(story: Story) -> int:
    """Nothing happens, and the same twice: or nothing could be placed."""
    first, second = play(story), play(story)
    assert list(map(str, first.requests)) == list(map(str, second.requests))
    assert first.moments == second.moments
    return 2


# The connection is lost, or silent, or slow; the session lives on.


def faults(*plan: tuple[FaultKind, int, SeenRequest]) -> Trouble:
    """Return a trouble made of faults; each request is numbered among the subject's, from 1."""
    name = ", then ".join(f"{kind.name} {nth}: {request}" for kind, nth, request in plan)

    def begin(scene: Scene) -> None:
        scene.forgiven = scene.story.tolerates
        for kind, nth, _ in plan:
            scene.expect(kind.arm(scene.proxy.when(nth=nth)), name)

    return Trouble(name, begin)


def with_every_fault(story: Story, kinds: Sequence[FaultKind] = FAULTS) -> int:
    """Each fault happens to each request."""
    requests = play(story).requests
    for nth, request in enumerate(requests, 1):
        for kind in kinds:
            play(story, faults((kind, nth, request)))
    return len(requests) * len(kinds)


def with_every_cut(story: Story) -> int:
    """The connection is cut before and after each request."""
    return with_every_fault(story, CUTS)


def with_every_two_cuts(story: Story) -> int:
    """The connection is cut, and again at each of the requests that follow."""
    count = 0
    for nth, request in enumerate(play(story).requests, 1):
        for kind in CUTS:
            first = kind, nth, request
            later = play(story, faults(first)).requests[nth:][:_FOLLOWING]
            for following, another in enumerate(later, nth + 1):
                for other in CUTS:
                    play(story, faults(first, (other, following, another)))
                    count += 1
    return count


def slow(seconds: float, directions: Sequence[Direction]) -> Trouble:
    """Return a network that is slow in one direction, or in both by turns."""

    def begin(scene: Scene) -> None:
        scene.forgiven = scene.story.tolerates
        for turn, direction in enumerate(directions):
            chosen = scene.proxy.when(
                predicate=lambda one, turn=turn: one.number % len(directions) == turn,  # type: ignore[misc]
                times=None,
            )
            to_server = direction is Direction.TO_SERVER
            fault = chosen.delay(seconds) if to_server else chosen.delay_reply(seconds)
            scene.expect(fault, f"slow {direction.value}")

    return Trouble(f"{seconds} s for every message {directions}", begin)


def on_a_slow_network(story: Story) -> int:
    """Every request is late, or every reply, or the one and the other by turns."""
    ways = ([Direction.TO_SERVER], [Direction.TO_CLIENT], [*Direction])
    for seconds in _SLOW_S:
        for directions in ways:
            play(story, slow(seconds, directions))
    return len(ways) * len(_SLOW_S)


# The session ends: it is closed from outside, or expires while the subject is cut off.


def expired(nth: int, request: SeenRequest, when: str) -> Trouble:
    """End the session around a request: `before` it, `after` its reply, or while `away` then."""

    def begin(scene: Scene) -> None:
        scene.forgiven = (*scene.story.tolerates, *scene.story.ends_with)
        chosen = scene.proxy.when(nth=nth)
        if when == "before":
            fault = chosen.delay(_MOMENT_S)
        elif when == "after":
            fault = chosen.delay_reply(_MOMENT_S)
        else:
            fault = chosen.cut_after(stay_away=True)
        scene.expect(fault, trouble.name)

        async def expire() -> None:
            await fault.happened()
            await scene.expire_subject()
            if when == "away":
                await asyncio.sleep(_AWAY_S)
                scene.proxy.heal()

        scene.help(expire())

    trouble = Trouble(f"the session is ended from outside, {when} {nth}: {request}", begin)
    return trouble


def with_the_session_ended(story: Story) -> int:
    """The session is ended from outside around each request."""
    requests = play(story).requests
    ways = ("before", "after", "away")
    for nth, request in enumerate(requests, 1):
        for when in ways:
            play(story, expired(nth, request, when))
    return len(requests) * len(ways)


def disowned(nth: int, request: SeenRequest) -> Trouble:
    """Delete the subject's nodes when a request has been answered; its session lives on."""

    def begin(scene: Scene) -> None:
        scene.forgiven = (*scene.story.tolerates, *scene.story.ends_with)
        fault = scene.proxy.when(nth=nth).delay_reply(_MOMENT_S)
        scene.expect(fault, trouble.name)

        async def disown() -> None:
            await fault.happened()
            await scene.disown_subject()

        scene.help(disown())

    trouble = Trouble(f"somebody deletes the subject's nodes after {nth}: {request}", begin)
    return trouble


def with_its_nodes_deleted(story: Story) -> int:
    """Delete the subject's nodes after each request."""
    requests = play(story).requests
    for nth, request in enumerate(requests, 1):
        play(story, disowned(nth, request))
    return len(requests)


def vanished(nth: int, request: SeenRequest, *, is_sent: bool) -> Trouble:
    """Let nobody ever hear of the subject again, from a request on that the server gets or not.

    To everybody else that is a process that was killed. The subject itself lives on, cut off, and
    must not believe for too long that it holds anything.
    """
    word = "after" if is_sent else "before"

    def begin(scene: Scene) -> None:
        scene.forgiven = (*scene.story.tolerates, *scene.story.ends_with)
        scene.is_subject_gone = True
        chosen = scene.proxy.when(nth=nth)
        fault = chosen.blackhole(Direction.TO_CLIENT) if is_sent else chosen.blackhole()
        scene.expect(fault, trouble.name)

        async def vanish() -> None:
            await fault.happened()
            scene.proxy.blackhole()

        scene.help(vanish())

    trouble = Trouble(f"nobody hears of the subject any more, {word} {nth}: {request}", begin)
    return trouble


def with_the_subject_gone(story: Story) -> int:
    """The subject vanishes at each request, before and after the server has it."""
    requests = play(story).requests
    for nth, request in enumerate(requests, 1):
        for is_sent in (False, True):
            play(story, vanished(nth, request, is_sent=is_sent))
    return 2 * len(requests)


# The subject is cancelled.


def cancelled(passes: int, *others: Trouble) -> Trouble:
    """Cancel the subject after so many passes of the event loop, in another trouble or in none."""

    def begin(scene: Scene) -> None:
        for other in others:
            other.begin(scene)
        scene.loop.call_at_pass(scene.loop.passes + passes, scene.cancel_subject)

    names = "".join(f"; {other.name}" for other in others)
    return Trouble(f"cancelled after {passes} passes{names}", begin)


def with_every_cancellation(story: Story) -> int:
    """The subject is cancelled at every await, at each moment that makes a difference."""
    moments = play(story).moments
    for passes in moments:
        play(story, cancelled(passes))
    return len(moments)


def with_every_cancellation_on_a_lost_connection(story: Story) -> int:
    """The reply to a request is lost, for each of them, and the subject is cancelled after that."""
    requests = enumerate(play(story).requests, 1)
    lost = [faults((CUT_AFTER, nth, request)) for nth, request in requests]
    return sum(_cancel_after(story, one) for one in lost)


def with_every_cancellation_when_the_session_ends(story: Story) -> int:
    """The session is ended from outside, and the subject is cancelled while it hears of that."""
    requests = enumerate(play(story).requests, 1)
    ended = [expired(nth, request, "after") for nth, request in requests]
    return sum(_cancel_after(story, one) for one in ended)


def _cancel_after(story: Story, other: Trouble) -> int:
    """Cancel the subject at some moments after a fault; give how many they were."""
    report = play(story, other)
    moments = [one for one in report.moments if one >= report.fault_passes[0]]
    for passes in moments[:_CANCELLED_AFTER_MAX]:
        play(story, cancelled(passes, other))
    return len(moments[:_CANCELLED_AFTER_MAX])


TROUBLES: Final[dict[str, Plays]] = {
    "undisturbed": undisturbed,
    "every fault": with_every_fault,
    "every two cuts": with_every_two_cuts,
    "a slow network": on_a_slow_network,
    "the session ended": with_the_session_ended,
    "its nodes deleted": with_its_nodes_deleted,
    "the subject gone": with_the_subject_gone,
    "every cancellation": with_every_cancellation,
    "every cancellation on a lost connection": with_every_cancellation_on_a_lost_connection,
    "every cancellation when the session ends": with_every_cancellation_when_the_session_ends,
}
"""For the main story of a recipe."""

BRIEF: Final[dict[str, Plays]] = {
    "undisturbed": undisturbed,
    "every cut": with_every_cut,
    "a slow network": on_a_slow_network,
    "the session ended": with_the_session_ended,
    "the subject gone": with_the_subject_gone,
    "every cancellation": with_every_cancellation,
}
"""For the other ones."""

"""Leases in every trouble: one holder at a time, also by the clock, and nobody waits for long."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from paddock.api import connect
from paddock.errors import GrantLostError
from paddock.protocol import opcodes
from paddock.recipes import Lease
from paddock.testing import EmbeddedServer, FaultProxy, run_virtually
from tests.fault.stage.recipe_players import SESSION_TIMEOUT_S, Player
from tests.fault.stage.recipe_stage import Part, Scene, Story, play
from tests.fault.stage.recipe_troubles import TROUBLES, vanished

PATH: Final = "/recipe"
# Shorter than a session: what a lease is for.
SECONDS: Final = 4.0


def tenant(after_s: float, renewals: int) -> Part:
    """Return a tenant that takes the lease after `after_s` seconds and renews it in time."""

    async def hold(me: Player) -> None:
        await asyncio.sleep(after_s)
        async with Lease(me.client, PATH, seconds=SECONDS) as grant:
            with me.holds(grant.token):
                await me.write(grant)
                for _ in range(renewals):
                    await asyncio.sleep(SECONDS * 0.6)
                    await grant.renew()
        me.note("has had it")

    return hold


async def judge(scene: Scene) -> None:
    """See that everybody had the lease, if nobody was kept from it."""
    having = [note.who for note in scene.notes]
    assert {f"rival {one}" for one in range(1, len(scene.story.rivals) + 1)} <= {*having}
    if scene.is_undisturbed:
        assert having == ["rival 1", "the subject", "rival 2"]


RENEWED: Final = Story(
    subject=tenant(0.5, 2),
    rivals=(tenant(0.0, 1), tenant(1.0, 0)),
    judge=judge,
    # Who cannot renew for as long as it lasts has lost it.
    tolerates=(GrantLostError,),
)


# Not with its nodes deleted: who waits stands in the line again then, and is not told.
CHOSEN: Final = (
    "undisturbed",
    "every fault",
    "a slow network",
    "the session ended",
    "the subject gone",
    "every cancellation",
)


@pytest.mark.parametrize("trouble", CHOSEN)
def test_a_lease_in_every_trouble(trouble: str) -> None:
    assert TROUBLES[trouble](RENEWED) > 1


async def overstay(me: Player) -> None:
    """Hold it for too long, without renewing it."""

    async def hold() -> None:
        async with Lease(me.client, PATH, seconds=SECONDS) as grant:
            with me.holds(grant.token):
                await me.write(grant)
                await asyncio.sleep(SESSION_TIMEOUT_S * 3)

    with pytest.raises(GrantLostError):
        await hold()


async def judge_overstayed(scene: Scene) -> None:
    """See that its time was over soon, for the holder first."""
    [subject] = scene.log.of("the subject")
    [rival] = scene.log.of("rival 1")
    assert subject.ended_at - subject.begun_at <= SECONDS
    assert subject.ended_at <= rival.begun_at
    # By then its session has not ended yet.
    assert rival.begun_at - subject.begun_at < SESSION_TIMEOUT_S


OVERSTAYED: Final = Story(subject=overstay, rivals=(tenant(0.5, 0),), judge=judge_overstayed)


def test_a_lease_that_is_not_renewed_ends_although_the_session_lives() -> None:
    play(OVERSTAYED)


def test_a_holder_that_has_vanished_is_not_waited_for_until_its_session_ends() -> None:
    """Its process may have been killed or paused: to the others that is the same."""
    requests = play(OVERSTAYED).requests
    count = 0
    for nth, request in enumerate(requests, 1):
        if request.operation == opcodes.EXISTS:
            # With that it watches what it holds, so it holds it.
            play(OVERSTAYED, vanished(nth, request, is_sent=True))
            count += 1
    assert count == 1


def test_one_who_vanishes_in_the_line_is_not_waited_for_either() -> None:
    """It becomes the first one without saying so, and those behind it notice."""

    async def judge(scene: Scene) -> None:
        [first] = scene.log.of("rival 1")
        [last] = scene.log.of("rival 2")
        assert last.begun_at - first.ended_at < SESSION_TIMEOUT_S - SECONDS

    story = Story(subject=tenant(0.5, 0), rivals=(tenant(0.0, 3), tenant(1.0, 0)), judge=judge)
    requests = play(story).requests
    # It waits, and has asked everything that it asks before something happens.
    waits = [nth for nth, one in enumerate(requests, 1) if one.operation == opcodes.GET_DATA]
    play(story, vanished(waits[0], requests[waits[0] - 1], is_sent=True))


def test_a_renewal_that_comes_before_the_deposition_counts() -> None:
    """Who waits has seen nothing for too long; then its delete is late, and the holder is not."""

    async def scenario() -> None:
        async with (
            EmbeddedServer() as server,
            FaultProxy(server.address) as proxy,
            connect(server.hosts) as holder,
            connect(proxy.hosts) as waiter,
        ):
            node = await holder.create(
                f"{PATH}/lease-", b"2", ephemeral=True, sequential=True, make_parents=True
            )
            deposition = proxy.when(operation=opcodes.DELETE).delay(1.0)
            waiting = asyncio.create_task(Lease(waiter, PATH, seconds=SECONDS).acquire())
            await deposition.happened()
            await holder.set(node, b"2")
            await asyncio.sleep(1.5)
            assert await holder.exists(node) is not None
            assert not waiting.done()
            # But nobody renews it any more.
            await waiting
            assert await holder.exists(node) is None

    run_virtually(scenario())

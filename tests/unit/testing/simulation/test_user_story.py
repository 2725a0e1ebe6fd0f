"""The story of a user's world: what a person has to know, and no more."""

import asyncio

import pytest

import paddock
from paddock.testing.simulation import Faults, SimulatedWorld, WorldFailedError, simulated


def test_a_story_has_calls_sessions_pauses_and_notes() -> None:
    @simulated(seeds=1, faults=Faults.NONE)
    async def test(world: SimulatedWorld) -> None:
        async def hold() -> None:
            async with world.client(session_timeout=4) as client:
                await client.create("/held", b"here", ephemeral=True)
                world.note("has what it wants")
                await asyncio.sleep(100)

        holder = world.spawn("alice", hold, may_raise=paddock.PaddockError)
        await asyncio.sleep(1)
        holder.pause()
        await asyncio.sleep(10)
        raise ArithmeticError("planted")

    with pytest.raises(WorldFailedError) as failed:
        test()
    story = str(failed.value)
    for line in (
        "alice      connects to s1",
        "alice      has session 1, with a timeout of 4 s",
        "alice      create /held b'here' ephemeral -> /held",
        "alice      has what it wants",
        "test       pauses alice",
        "service    ends session 1, of alice",
    ):
        assert line in story
    assert "ping" not in story

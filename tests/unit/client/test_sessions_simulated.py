"""Programs in one session after the other, in simulated worlds full of faults: they come to an end.

A program that only begins again for its session's sake needs nobody to start it again.
"""

from __future__ import annotations

import asyncio

import paddock
from paddock import ConnectionLostError, SystemFailureError
from paddock.recipes import Lock
from paddock.testing.simulation import SimulatedWorld, simulated


async def take_turns(hosts: str, name: bytes, turns: int) -> None:
    """Take so many turns under a lock, over all sessions."""
    sessions = 0
    taken = 0

    async def work(client: paddock.Client) -> None:
        nonlocal sessions, taken
        sessions += 1
        while taken < turns:
            async with Lock(client, "/turns/lock") as grant:
                await asyncio.sleep(1)
                async with grant.guard() as transaction:
                    transaction.set("/turns/last", b"%d %s" % (grant.token, name))
                taken += 1

    try:
        await paddock.run_in_sessions(lambda: paddock.connect(hosts, session_timeout=4), work)
    except ConnectionLostError:
        # The first session has to be granted within its timeout.
        assert not sessions


@simulated(seeds=12)
async def test_programs_come_to_their_end_whatever_becomes_of_their_sessions(
    world: SimulatedWorld,
) -> None:
    async with world.client() as client:
        await client.ensure_path("/turns/last")
    for name in ("alice", "bob"):
        arguments = world.hosts, name.encode(), 3
        # A full disk is no matter of sessions.
        world.spawn(name, take_turns, *arguments, may_raise=SystemFailureError)
    await world.rest()
    writes = [write.data.split() for write in world.written("/turns/last") if write.data]
    tokens = [int(token) for token, _ in writes]
    assert tokens == sorted({*tokens}), f"turns were taken in the order {tokens}"

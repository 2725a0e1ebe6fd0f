"""Calls of a client with an exact session, whose servers are killed."""

from __future__ import annotations

import asyncio
import random

import pytest

import paddock
from paddock.testing.simulation.store_faults import StoreFaults
from paddock.testing.virtual import in_virtual_time
from tests.unit.server.cluster.stage import Stage, staged


@pytest.mark.parametrize("seed", range(6))
@in_virtual_time
async def test_calls_on_their_way_through_a_server_that_is_killed_have_their_outcome(
    seed: int,
) -> None:
    faults = StoreFaults(swapped=0.3, reply_lost=0.05)
    async with staged("a", "b", "c", seed=seed, faults=faults) as stage:
        draw = random.Random(seed)
        async with paddock.connect(stage.hosts(), random=draw, exact=True) as client:
            assert client.is_exact
            await client.create("/line", b"")
            placed: list[asyncio.Future[str]] = []
            counted: list[asyncio.Future[paddock.Stat]] = []
            for number in range(100):
                placed.append(client.create("/line/n-", sequential=True))
                counted.append(client.set("/line", b"", version=number))
                await asyncio.sleep(draw.uniform(0, 0.01))
                if number in (30, 60):
                    await _kill_server_of(stage, client)
            names = [await one for one in placed]
            assert names == [f"/line/n-{number:010d}" for number in range(100)]
            assert [(await one).version for one in counted] == list(range(1, 101))
            await client.sync("/line")
            assert len(await client.children("/line")) == 100


async def _kill_server_of(stage: Stage, client: paddock.Client) -> None:
    for name, server in list(stage.servers.items()):
        if stage.core(server).tracker.get(client.session_id) is not None:
            await stage.kill(name)

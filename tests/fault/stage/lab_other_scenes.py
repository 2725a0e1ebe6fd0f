"""Scenes of a single server with its own log, and of Apache ZooKeeper, the control."""

from __future__ import annotations

import asyncio
from typing import Final

from tests.fault.stage.lab_apache import EPOCHS, ApacheLab
from tests.fault.stage.lab_load import SESSION_S, Load
from tests.fault.stage.lab_played import Played
from tests.fault.stage.lab_scenes import SLOW_S, Scene
from tests.fault.stage.lab_sole import Sole
from tests.support.slow_disk import SlowDisk

_PAUSE_S: Final = 5.0
_FAULT_S: Final = 6.0


async def sole_killed(load: Load[Sole]) -> None:
    """Kill the server, twice, and start it again."""
    load.strike(*load.lab.members)
    for _ in range(2):
        load.lab.server.kill()
        await asyncio.to_thread(load.lab.heal)
        await load.all_write()


async def sole_paused(load: Load[Sole]) -> None:
    load.strike(*load.lab.members)
    load.lab.server.pause()
    await asyncio.sleep(0.75 * SESSION_S)


async def sole_disk_slow(load: Load[Sole]) -> None:
    load.strike(*load.lab.members)
    slow = await asyncio.to_thread(SlowDisk, load.lab.server.pid, SLOW_S)
    try:
        await asyncio.sleep(_FAULT_S)
    finally:
        load.slow_syncs = await asyncio.to_thread(slow.end)


async def leader_killed(load: Load[ApacheLab]) -> None:
    leader = await asyncio.to_thread(load.lab.leader)
    load.strike(leader)
    leader.kill()
    await asyncio.sleep(_FAULT_S)


async def follower_cut_off(load: Load[ApacheLab]) -> None:
    """Cut a follower off from the other members; clients reach it."""
    lab = load.lab
    struck = load.strike_busiest(await asyncio.to_thread(lab.followers))
    place = lab.place_of(struck)
    others = [other for other in lab.server_places if other is not place]
    await asyncio.to_thread(lab.network.part, [place], others)
    await asyncio.sleep(_FAULT_S)


async def follower_paused(load: Load[ApacheLab]) -> None:
    struck = load.strike_busiest(await asyncio.to_thread(load.lab.followers))
    struck.pause()
    await asyncio.sleep(_PAUSE_S)


def _disconnected(played: Played) -> bool:
    return played.reconnects >= len(played.struck) > 0


def _disconnected_twice(played: Played) -> bool:
    # And once at the end.
    return played.losses >= 3 * len(played.struck) > 0


def _led_anew(played: Played) -> bool:
    return played.counts[EPOCHS] >= 2 and _disconnected(played)


def _slow(played: Played) -> bool:
    return played.slow_syncs >= _FAULT_S


SOLE_SCENES: Final[tuple[Scene[Sole], ...]] = (
    Scene("a single server is killed and started, twice", sole_killed, _disconnected_twice),
    Scene("a single server is paused for 6 s", sole_paused, _disconnected),
    Scene("each sync of a single server takes 0.25 s", sole_disk_slow, _slow),
)
APACHE_SCENES: Final[tuple[Scene[ApacheLab], ...]] = (
    Scene("Apache ZooKeeper: the leader is killed", leader_killed, _led_anew),
    Scene("Apache ZooKeeper: a follower is cut off", follower_cut_off, _disconnected),
    Scene("Apache ZooKeeper: a follower is paused for 5 s", follower_paused, _disconnected),
)

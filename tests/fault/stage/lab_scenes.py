"""The scenes of the lab: what is done to servers, etcd and the network while clients are busy.

A scene strikes, waits, and checks that what it is about has happened. The lab is mended after it.
`lab_other_scenes` has those of a single server, and of Apache ZooKeeper.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Final, Generic

from tests.fault.stage.lab import SIZE, Lab, T, fill, wait_until
from tests.fault.stage.lab_load import CLIENTS, SESSION_S, Load, S
from tests.fault.stage.lab_played import Played
from tests.support.etcd import Etcd
from tests.support.slow_disk import SlowDisk

#: How long an election of etcd's may take without a lease being lost: 0.8 T, less the time since
#: the last renewal, and less what it takes to notice the new leader.
ELECTION_S_MAX: Final = 0.8 * T - T / 4 - 0.3
#: How long a sync of a slow disk takes.
SLOW_S: Final = 0.25


@dataclass(frozen=True)
class Scene(Generic[S]):
    """What is played, and what it must have caused so that it says something."""

    #: Its row in the table.
    title: str
    play: Callable[[Load[S]], Coroutine[None, None, None]]
    caused: Callable[[Played], bool]
    #: Of the clocks of the leases.
    rates: tuple[float, ...] = (1.0, 1.0, 1.0)
    #: How many sessions end.
    ended: int = 0

    def __str__(self) -> str:
        return self.play.__name__


async def cut_off(load: Load[Lab]) -> None:
    lab, struck = load.lab, load.strike_busiest()
    await asyncio.to_thread(lab.network.part, [lab.place_of(struck)], lab.etcd_places)
    await asyncio.sleep(1.5 * T)


async def slow_clock_cut_off(load: Load[Lab]) -> None:
    """Cut off the server whose clock is slow: it speaks longest."""
    lab = load.lab
    struck = min(lab.members, key=lambda member: member.rate)
    load.strike(struck)
    await asyncio.to_thread(lab.network.part, [lab.place_of(struck)], lab.etcd_places)
    await asyncio.sleep(1.5 * T)


async def cut_off_for_a_moment(load: Load[Lab]) -> None:
    lab, struck = load.lab, load.strike_busiest()
    for _ in range(3):
        await asyncio.to_thread(lab.network.part, [lab.place_of(struck)], lab.etcd_places)
        await asyncio.sleep(0.25 * T)
        await asyncio.to_thread(lab.network.mend)
        await load.all_write()


async def minority(load: Load[Lab]) -> None:
    """Cut off a server together with the leader of etcd. Clients reach both sides."""
    lab, struck = load.lab, load.strike_busiest()
    leader = await asyncio.to_thread(lab.etcd.leader)
    few = [lab.place_of(struck), lab.place_of(leader)]
    many = [place for place in [*lab.etcd_places, *lab.server_places] if place not in few]
    await asyncio.to_thread(lab.network.part, few, many)
    await asyncio.sleep(1.5 * T)


async def requests_to_etcd_lost(load: Load[Lab]) -> None:
    lab, struck = load.lab, load.strike_busiest()
    for etcd in lab.etcd_places:
        await asyncio.to_thread(lab.network.lose, lab.place_of(struck), etcd)
    await asyncio.sleep(1.5 * T)


async def answers_of_etcd_lost(load: Load[Lab]) -> None:
    lab, struck = load.lab, load.strike_busiest()
    for etcd in lab.etcd_places:
        await asyncio.to_thread(lab.network.lose, etcd, lab.place_of(struck))
    await asyncio.sleep(1.5 * T)


async def clients_cut_off(load: Load[Lab]) -> None:
    lab, struck = load.lab, load.strike_busiest()
    await asyncio.to_thread(lab.network.part, [lab.clients], [lab.place_of(struck)])
    await asyncio.sleep(SESSION_S)


async def answers_to_clients_lost(load: Load[Lab]) -> None:
    lab, struck = load.lab, load.strike_busiest()
    await asyncio.to_thread(lab.network.lose, lab.place_of(struck), lab.clients)
    await asyncio.sleep(SESSION_S)


async def clients_cut_off_from_all(load: Load[Lab]) -> None:
    lab = load.lab
    load.strike(*lab.members)
    await asyncio.to_thread(lab.network.part, [lab.clients], lab.server_places)
    await asyncio.sleep(1.5 * SESSION_S)


async def paused(load: Load[Lab]) -> None:
    load.strike_busiest().pause()
    await asyncio.sleep(2 * T)


async def paused_while_clients_wait(load: Load[Lab]) -> None:
    """Go on before clients have given up, so that they would take late answers."""
    struck = load.strike_busiest()
    struck.pause()
    await asyncio.sleep(1.2 * T)
    struck.resume()
    await asyncio.sleep(T)


async def killed(load: Load[Lab]) -> None:
    load.strike_busiest().kill()
    await asyncio.sleep(2 * T)


async def killed_and_started(load: Load[Lab]) -> None:
    struck = load.strike_busiest()
    struck.kill()
    struck.launch()
    await asyncio.to_thread(wait_until, struck.is_serving, "the server serves again")
    await asyncio.sleep(T)


async def etcd_leader_killed(load: Load[Lab]) -> None:
    load.strike()
    leader = await asyncio.to_thread(load.lab.etcd.leader)
    leader.kill()
    load.leaderless_s = await asyncio.to_thread(_elect, load.lab, leader)
    await asyncio.sleep(1.5 * T)


async def etcd_killed(load: Load[Lab]) -> None:
    """Kill all members of etcd at once; they keep what they have written."""
    load.strike(*load.lab.members)
    for etcd in load.lab.etcd.members:
        etcd.kill()
    await asyncio.sleep(0.25 * T)
    await asyncio.to_thread(load.lab.etcd.start)
    await asyncio.sleep(T)


async def etcd_leader_paused(load: Load[Lab]) -> None:
    load.strike()
    leader = await asyncio.to_thread(load.lab.etcd.leader)
    leader.pause()
    load.leaderless_s = await asyncio.to_thread(_elect, load.lab, leader)
    await asyncio.sleep(1.5 * T)


async def etcd_leader_cut_off(load: Load[Lab]) -> None:
    """Cut the leader of etcd off from the other members; servers still reach it."""
    lab = load.lab
    load.strike()
    leader = await asyncio.to_thread(lab.etcd.leader)
    place = lab.place_of(leader)
    others = [other for other in lab.etcd_places if other is not place]
    await asyncio.to_thread(lab.network.part, [place], others)
    # It does not know yet that it is cut off.
    if await asyncio.to_thread(leader.leads):
        load.leaderless_s = await asyncio.to_thread(_elect, lab, leader)
    await asyncio.sleep(1.5 * T)


def _elect(lab: Lab, former: Etcd) -> float:
    """Wait until another member of etcd leads; return how long that took."""
    begun = time.monotonic()
    others = [member for member in lab.etcd.members if member is not former]
    wait_until(lambda: any(member.leads() for member in others), "etcd has another leader")
    return time.monotonic() - begun


async def no_quorum(load: Load[Lab]) -> None:
    lab = load.lab
    load.strike(*lab.members)
    for place in lab.etcd_places:
        others = [other for other in lab.etcd_places if other is not place]
        await asyncio.to_thread(lab.network.part, [place], others)
    await asyncio.sleep(1.5 * T)


async def etcd_disk_full(load: Load[Lab]) -> None:
    """Fill the disk of one member, which ends at its next snapshot."""
    load.strike()
    etcd = load.lab.small_etcd
    await asyncio.to_thread(fill, etcd)
    load.has_ended = await asyncio.to_thread(etcd.wait_ended, 10 * T)
    await asyncio.sleep(T)


async def etcd_disk_slow(load: Load[Lab]) -> None:
    """Slow down the disk of the leader of etcd."""
    load.strike()
    leader = await asyncio.to_thread(load.lab.etcd.leader)
    slow = await asyncio.to_thread(SlowDisk, leader.pid, SLOW_S)
    try:
        await asyncio.sleep(2 * T)
    finally:
        load.slow_syncs = await asyncio.to_thread(slow.end)


async def server_disk_full(load: Load[Lab]) -> None:
    struck = load.strike_busiest()
    await asyncio.to_thread(fill, struck)
    await asyncio.sleep(2 * T)


def _deposed(played: Played) -> bool:
    return played.counts["members: deposed"] >= 1


def _disconnected(played: Played) -> bool:
    return played.reconnects >= len(played.struck) > 0


def _nobody_left(played: Played) -> bool:
    return played.counts["members: deposed"] == 0 and played.counts["members: joined"] == SIZE


def _led_anew(played: Played) -> bool:
    """Nobody is left without a lease unless etcd was without a leader for too long."""
    if played.leaderless_s is None:
        return False
    return played.leaderless_s > ELECTION_S_MAX or _nobody_left(played)


def _joined_again(played: Played) -> bool:
    return played.counts["members: joined"] > SIZE


def _all_expired(played: Played) -> bool:
    return played.ended_sessions == CLIENTS


def _all_joined_again(played: Played) -> bool:
    return played.counts["members: joined"] >= 2 * SIZE


def _ended(played: Played) -> bool:
    return played.has_ended


def _taken_over(played: Played) -> bool:
    """The server has joined again, and needed not be missed for that."""
    return played.counts["members: deposed"] == 0 and _joined_again(played)


def _slow(played: Played) -> bool:
    return played.slow_syncs >= 2 * T


def _all_waited(played: Played) -> bool:
    return played.longest_wait(played.clients, writes=True) >= 0.25 * T


SCENES: Final[tuple[Scene[Lab], ...]] = (
    Scene("a server is cut off from etcd", cut_off, _deposed),
    Scene("a server is cut off from etcd for 1 s, three times", cut_off_for_a_moment, _nobody_left),
    Scene("a server and the leader of etcd are cut off from the others", minority, _joined_again),
    Scene("what a server sends to etcd is lost", requests_to_etcd_lost, _deposed),
    Scene("what etcd sends to a server is lost", answers_of_etcd_lost, _deposed),
    Scene("clients are cut off from their server", clients_cut_off, _disconnected),
    Scene("what a server sends to its clients is lost", answers_to_clients_lost, _disconnected),
    Scene(
        "clients are cut off from all servers for 12 s",
        clients_cut_off_from_all,
        _all_expired,
        ended=CLIENTS,
    ),
    Scene("a server is paused for 8 s", paused, _deposed),
    Scene("a server is paused for 4.8 s", paused_while_clients_wait, _disconnected),
    Scene("a server is killed, and started after 8 s", killed, _deposed),
    Scene("a server is killed, and started at once", killed_and_started, _taken_over),
    Scene("the leader of etcd is killed", etcd_leader_killed, _led_anew),
    Scene("all members of etcd are killed, and started after 1 s", etcd_killed, _all_waited),
    Scene("the leader of etcd is paused", etcd_leader_paused, _led_anew),
    Scene(
        "the leader of etcd is cut off from its members, not from servers",
        etcd_leader_cut_off,
        _led_anew,
    ),
    Scene("etcd has no quorum for 6 s", no_quorum, _all_joined_again),
    Scene("the disk of an etcd member is full", etcd_disk_full, _ended),
    Scene("each sync of the leader of etcd takes 0.25 s", etcd_disk_slow, _slow),
    Scene("the disk of a server is full", server_disk_full, _nobody_left),
    Scene(
        "a server with a clock of rate 0.9 is cut off from etcd; others 1.1, 1.0",
        slow_clock_cut_off,
        _deposed,
        rates=(0.9, 1.1, 1.0),
    ),
)

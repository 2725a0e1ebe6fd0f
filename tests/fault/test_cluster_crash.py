"""kill -9 of servers and of etcd, in turn, under the load of writers on every server of a cluster.

Nothing that was acknowledged is lost, nothing happens twice, nothing that was refused is there, all
sessions live on with their ephemerals, and all servers have one state. What was not answered may
have happened or not, but only as the first few of what a client had sent.

CRASH_ROUNDS says how often, twice; CRASH_SEED with which choices. How things meet does not follow
from the seed, so a failure may need some rounds more.
"""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import Iterator
from typing import Final

import pytest

from tests.fault.stage.cluster_load import IN_FLIGHT_MIN, ClusterLoad
from tests.support.etcd import Etcd
from tests.support.members import Member
from tests.support.paddock_cluster import PaddockCluster
from tests.support.server import Options, ServerMissingError

pytestmark = pytest.mark.judge

ROUNDS: Final = int(os.environ.get("CRASH_ROUNDS", "10")) // 2
SEED: Final = int(os.environ.get("CRASH_SEED", secrets.randbits(32)))

#: Answers before the kill, and after it.
UNTIL_MAX: Final = 2_500
MORE: Final = 500
#: How often the server is also killed while it starts.
EARLY_KILLS: Final = 0.25
#: How often a server that is killed with all others has no data when it starts again.
LOST_FOLDERS: Final = 0.25
#: Nearly twice a lease.
PAUSE_S_MAX: Final = 7.0


@pytest.fixture
def cluster() -> Iterator[PaddockCluster]:
    """Three servers, which start from snapshots of their own, on three etcds."""
    try:
        with PaddockCluster(Options(extra=(("snapCount", "100"),)), etcd_members=3) as cluster:
            yield cluster
    except ServerMissingError as missing:
        pytest.skip(str(missing))


class Killer:
    """Kills a server, a member of etcd, or both, one after the other."""

    def __init__(self, cluster: PaddockCluster, choices: random.Random) -> None:
        self._cluster = cluster
        self._choices = choices
        self._number = 0
        self._members = list(cluster.members)
        #: What it has done last.
        self.said = ""

    def kill(self) -> None:
        cluster, number = self._cluster, self._number
        self._number += 1
        victims: list[str] = []
        if number % 3 != 1:
            member = self._members[0]
            self._members = [*self._members[1:], member]
            member.kill()
            victims.append(repr(member))
        if number % 3 != 0:
            assert cluster.etcd_cluster is not None
            etcd = self._choices.choice([cluster.etcd_cluster.leader(), *cluster.etcd])
            etcd.kill()
            victims.append(repr(etcd))
        self.said = f"{' and '.join(victims)} killed"

    def bring_back(self) -> None:
        for member in self._cluster.members:
            if not member.alive and self._choices.random() < EARLY_KILLS:
                member.launch()
                member.wait_ended(self._choices.uniform(0.1, 0.8))
                member.kill()
        self._cluster.heal()


class Wrecker(Killer):
    """Kills all servers, all of etcd, or everything at once; servers may lose their folders."""

    def kill(self) -> None:
        cluster = self._cluster
        victims = self._choices.choice(["all servers", "etcd", "everything"])
        if victims != "etcd":
            for member in cluster.members:
                member.kill()
        if victims != "all servers":
            for etcd in cluster.etcd:
                etcd.kill()
        for member in cluster.members:
            if not member.alive and self._choices.random() < LOST_FOLDERS:
                member.clear()
        self.said = f"{victims} killed"


class Pauser(Killer):
    """Pauses a server or the leader of etcd, for less or more than a lease."""

    def kill(self) -> None:
        cluster = self._cluster
        assert cluster.etcd_cluster is not None
        either: list[Member | Etcd] = [*cluster.members, cluster.etcd_cluster.leader()]
        one = self._choices.choice(either)
        seconds = self._choices.uniform(0.5, PAUSE_S_MAX)
        one.pause()
        one.wait_ended(seconds)
        one.resume()
        self.said = f"{one!r} paused for {seconds:.1f} s"


def test_kill_of_servers_and_etcd_loses_nothing_and_does_nothing_twice(
    cluster: PaddockCluster,
) -> None:
    campaign(cluster, Killer, ROUNDS, MORE)


@pytest.mark.long
def test_kill_of_everything_at_once_loses_nothing_and_does_nothing_twice(
    cluster: PaddockCluster,
) -> None:
    campaign(cluster, Wrecker, max(1, ROUNDS // 3), 0)


@pytest.mark.long
def test_a_pause_of_a_server_or_of_etcd_loses_nothing_and_does_nothing_twice(
    cluster: PaddockCluster,
) -> None:
    campaign(cluster, Pauser, max(1, ROUNDS // 3), MORE)


def campaign(cluster: PaddockCluster, kind: type[Killer], rounds: int, more: int) -> None:
    """Let something happen so often, with all checks in between."""
    print(f"\nCRASH_SEED={SEED}")
    choices = random.Random(SEED)
    killer = kind(cluster, choices)
    with ClusterLoad(cluster, choices.getrandbits(64)) as load:
        for number in range(1, rounds + 1):
            until = choices.randint(1, UNTIL_MAX)
            load.run(until, killer.kill, more)
            killer.bring_back()
            found = load.check()
            print(
                f"round {number}: {killer.said} after {until} answers, with"
                f" {load.in_flight} writes in flight; {found.nodes} nodes, {found.survived} of"
                f" {found.unanswered} unanswered writes survived"
            )
            assert load.in_flight >= IN_FLIGHT_MIN
        print(f"{load.acknowledged} writes acknowledged, {load.refused} refused")
        assert load.acknowledged > 0
        assert load.refused > 0

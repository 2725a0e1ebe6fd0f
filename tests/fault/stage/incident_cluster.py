"""Incidents in a cluster of two: the holder is on one server, and the other is asked afterwards.

That one has never seen the holder's connection. What it knows is in the shared log, and that it has
missed the other server.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Final

from paddock.history.stories import lock as k
from paddock.history.stories import session as s
from paddock.storage import events as e
from paddock.testing import FaultProxy
from tests.fault.stage.incident_holder import PATIENT
from tests.fault.stage.incident_kinds import GONE, NOTHING, SILENT, Truth, after
from tests.fault.stage.incident_scene import Holder, Plan, Scene
from tests.support import wire
from tests.support.paddock_cluster import PaddockCluster
from tests.support.server import Options

# Short, so that a server is soon missed: 4 s.
_LEASE_TICKS: Final = "20"

DEPOSED: Final = Truth(s.SERVER_GONE, k.EXPIRED, e.MEMBER_DEPOSED)
LEFT: Final = Truth(s.SERVER_GONE, k.EXPIRED, e.MEMBER_LEFT)


class ClusterScene(Scene):
    """A scene on the first of two servers; the others are on the second, whose data is kept."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.cluster = PaddockCluster(Options(extra=(("syncLimit", _LEASE_TICKS),)), size=2)
        home, self.survivor = self.cluster.members
        super().__init__(folder, plan, home)
        # The way to the second one, which the holder does not find at first.
        self.way_out = FaultProxy(self.survivor.address)
        self._knows_both = False

    @property
    def hosts(self) -> str:
        return f"{self.proxy.hosts},{self.way_out.hosts}" if self._knows_both else self.proxy.hosts

    @property
    def others_address(self) -> wire.Address:
        return self.survivor.address

    def begin_with_a_way_out(self) -> Holder:
        """Let the holder know both servers; it is on the first one."""
        self._knows_both = True
        self.way_out.refuse()
        holder = self.begin(PATIENT)
        self.way_out.heal()
        return holder

    def finish(self) -> None:
        """Stop the server that is asked, and keep its data."""
        self.survivor.stop()
        shutil.move(self.survivor.data, self.data)

    def _start(self, stack: contextlib.ExitStack) -> None:
        stack.enter_context(self.cluster)
        self.cluster.wait_quorum()
        stack.enter_context(self.proxy)
        stack.enter_context(self.way_out)


def member_killed(scene: ClusterScene) -> tuple[Holder, Truth]:
    holder = scene.begin()
    scene.server.kill()
    scene.wait_lost(holder)
    return holder, DEPOSED


def member_paused(scene: ClusterScene) -> tuple[Holder, Truth]:
    holder = scene.begin()
    scene.server.pause()
    scene.wait_lost(holder)
    return holder, DEPOSED


def member_stopped(scene: ClusterScene) -> tuple[Holder, Truth]:
    holder = scene.begin()
    scene.server.stop()
    scene.wait_lost(holder)
    return holder, LEFT


def member_killed_and_left_for_the_other(scene: ClusterScene) -> tuple[Holder, Truth]:
    """The holder finds the other server."""
    holder = scene.begin_with_a_way_out()
    scene.server.kill()
    return holder, after(holder, DEPOSED)


def member_killed_and_client_killed_later(scene: ClusterScene) -> tuple[Holder, Truth]:
    holder, truth = member_killed_and_left_for_the_other(scene)
    if truth != NOTHING:
        return holder, truth
    holder.kill()
    scene.wait_lost(holder)
    return holder, GONE


def member_stopped_and_client_paused_later(scene: ClusterScene) -> tuple[Holder, Truth]:
    holder = scene.begin_with_a_way_out()
    scene.server.stop()
    truth = after(holder, LEFT)
    if truth != NOTHING:
        return holder, truth
    holder.pause()
    scene.wait_lost(holder)
    return holder, SILENT


CLUSTER_KINDS: Final = (
    member_killed,
    member_paused,
    member_stopped,
    member_killed_and_left_for_the_other,
    member_killed_and_client_killed_later,
    member_stopped_and_client_paused_later,
)

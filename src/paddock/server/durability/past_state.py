"""A server of a state of the past: clients may read it, and nothing changes any more.

It has no log. It is in read-only mode from its start to its end: no session is opened or ended, and
no node is reaped.
"""

from __future__ import annotations

from collections.abc import Callable

from paddock.log.interface import Log
from paddock.server.connections.core import Core
from paddock.server.durability.backing import Backing
from paddock.server.durability.snapshotter import Snapshotter
from paddock.server.durability.startup import Engine, Restored
from paddock.server.replication.replica import Replica
from paddock.state.machine import StateMachine
from paddock.storage.replay import Replay


class PastState(Backing):
    """A state that was, in place of a log."""

    def __init__(self, machine: StateMachine, engine: Engine) -> None:
        self._machine = machine
        self._core: Core | None = None
        # Nothing is ever proposed to it.
        self._log = engine.open()

    @property
    def log(self) -> Log:
        return self._log

    async def load(self, make_replica: Callable[[Replay], Replica]) -> tuple[Restored, Replica]:
        machine = self._machine
        if machine.roster is not None:
            machine.unshare()
        # None of them lives, and none may end.
        machine.sessions.clear()
        restored = Restored(Replay(machine, 0))
        replica = make_replica(restored.replay)
        replica.follow(self._log)
        return restored, replica

    def snapshotter(self, replica: Replica, restored: Restored) -> Snapshotter | None:
        return None

    def assemble(self, core: Core, snapshotter: Snapshotter | None) -> None:
        self._core = core
        core.is_open = False

    async def open(self) -> None:
        assert self._core is not None
        self._core.is_read_only = True

    def is_on_duty(self) -> bool:
        return False

    async def drain(self) -> None:
        pass

    async def settle(self) -> None:
        pass

    def keeps_state(self) -> bool:
        return False

"""The last act of some worlds: etcd is replaced by an older one, from a backup.

What was acknowledged since the backup is lost, and no server can help that. But none may go on as
if nothing had happened: clients have seen zxids that would be used again.

* A server that runs notices it, and ends.
* A server that was stopped meanwhile does not start on a cache that is newer than its log.
* So nobody is answered any more, once the leases are over.

A server that starts without such a cache cannot know it, which is why an operator has to begin an
epoch (`paddock cluster epoch`). None is started here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from paddock.testing.simulation import history as h
from paddock.testing.simulation.plan import Fault
from paddock.testing.simulation.recorder import Recorder
from paddock.testing.simulation.remote_store import WorldEtcd
from paddock.testing.simulation.servers import LEASE_SECONDS, MemberMachine

# How long a server may take to stop, and how long it is looked whether somebody is answered.
_STOP_SECONDS: Final = 40.0
_LOOK_SECONDS: Final = 30.0

_ANSWERS: Final = (h.GRANTED, h.REPLY, h.EVENT)


class Restoration:
    """Replaces the etcd of a world while servers run, or while all of them are stopped."""

    def __init__(
        self, etcd: WorldEtcd, machines: Sequence[MemberMachine], recorder: Recorder
    ) -> None:
        self._etcd = etcd
        self._machines = machines
        self._recorder = recorder
        self._unaware: list[str] = []
        self._over_at = float("inf")

    async def play(self, fault: Fault) -> None:
        """Make a backup, go on for a while, and restore it."""
        backup, index = self._etcd.backup(), self._etcd.last_index
        self._recorder.note("etcd is backed up")
        await asyncio.sleep(fault.seconds)
        is_stopped = fault.value < 0.5
        if is_stopped:
            await self._stop_all()
        if self._etcd.last_index == index:
            self._recorder.note("nothing was written since")
            return
        running = [machine for machine in self._machines if machine.is_running]
        for machine in self._machines:
            machine.is_outdone = True
            machine.stay_down()
        with self._etcd.process.enter():
            self._etcd.restore(backup)
        self._recorder.note(f"etcd is restored: its last record is {index} again")
        self._over_at = self._etcd.process.true_time() + LEASE_SECONDS
        if is_stopped:
            for machine in self._machines:
                if machine.cached_index() > index:
                    machine.start()
        await asyncio.sleep(_LOOK_SECONDS)
        self._unaware = [machine.name for machine in running if machine.is_running]

    def problems(self) -> list[str]:
        """Return who has gone on."""
        servers: dict[int, str] = {}
        answering: dict[str, None] = {}
        for moment in self._recorder.history:
            if moment.kind == h.CONNECT:
                servers[moment.connection] = moment.text.split()[1]
            elif moment.kind in _ANSWERS and moment.at > self._over_at:
                answering[servers[moment.connection]] = None
        return [
            *(f"restored: {name} answers, on a log that is gone" for name in answering),
            *(f"restored: {name} does not notice it" for name in self._unaware),
        ]

    async def _stop_all(self) -> None:
        for machine in self._machines:
            machine.stop()
        waited = 0.0
        while any(machine.is_running for machine in self._machines) and waited < _STOP_SECONDS:
            await asyncio.sleep(1.0)
            waited += 1.0
        for machine in self._machines:
            machine.kill(silently=False)

"""What is done to a world: each kind of fault of a plan, and how it ends."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

from paddock.testing.simulation import plan as p
from paddock.testing.simulation.plan import Fault
from paddock.testing.simulation.servers import Machine, MemberMachine, SingleMachine
from paddock.testing.simulation.store_faults import StoreFaults

if TYPE_CHECKING:
    from paddock.testing.simulation.network import SimulatedNetwork
    from paddock.testing.simulation.process import ProcessLoop
    from paddock.testing.simulation.recorder import Recorder
    from paddock.testing.simulation.remote_store import WorldEtcd
    from paddock.testing.simulation.world_loop import WorldLoop

_SLOW_SYNC_SECONDS = 2.0
_LAG_SECONDS_MIN = 0.4
_LAG_SECONDS_MAX = 1.5
_JUMP_MS = 20_000


def roughness(share: float) -> StoreFaults:
    """Return the faults of an etcd that is so rough; 1 is as rough as it gets."""
    faults = StoreFaults()
    rough = StoreFaults.rough()
    for field in dataclasses.fields(StoreFaults):
        value = getattr(rough, field.name)
        if isinstance(value, float):
            setattr(faults, field.name, value * share)
    # No fault: it happens to those who have several appends in flight.
    faults.swapped = rough.swapped
    return faults


class Faults:
    """Does what a plan says to the machines, clients, network and etcd of a world."""

    def __init__(
        self,
        loop: WorldLoop,
        network: SimulatedNetwork,
        recorder: Recorder,
        machines: list[Machine],
        clients: dict[str, ProcessLoop],
        etcd: WorldEtcd | None,
        rough: float,
    ) -> None:
        self._loop = loop
        self._network = network
        self._recorder = recorder
        self._machines = machines
        self._clients = clients
        self._etcd = etcd
        self._rough = rough
        # Machines that were copied from others, while these started.
        self.clones: list[MemberMachine] = []
        # What waits to be undone: what is mended early is not undone again.
        self._lasting: dict[asyncio.TimerHandle, Callable[[], object]] = {}

    def do(self, fault: Fault) -> None:
        """Do something to the world."""
        machine = self._machines[(fault.target - 1) % len(self._machines)]
        client = self._clients.get(f"c{fault.target}")
        said = ""
        if fault.kind in (p.CUT, p.CUT_REPLIES):
            said = self._cut(fault)
        elif fault.kind in (p.PART, p.PAUSE_CLIENT, p.KILL_CLIENT):
            if client is not None:
                self._do_to_client(fault, client)
        elif fault.kind in (p.STOP, p.KILL, p.POWER, p.PAUSE, p.JUMP, p.CLONE):
            said = self._do_to_server(fault, machine)
        elif isinstance(machine, SingleMachine):
            self._do_to_disk(fault, machine)
        elif self._etcd is not None:
            with self._etcd.process.enter():
                self._do_to_etcd(fault, machine, self._etcd)
        self._recorder.note(f"{fault}{': ' if said else ''}{said}")

    def mend(self) -> None:
        """End everything that lasts, and start all servers."""
        self._recorder.note("everything is mended")
        lasting, self._lasting = self._lasting, {}
        for timer, undo in lasting.items():
            timer.cancel()
            undo()
        for machine in self._machines:
            machine.resume()
            machine.start()
        if self._etcd is not None:
            self._etcd.faults = roughness(0.0)
        for clone in self.clones:
            clone.kill(silently=False)

    def _lasts(self, fault: Fault, undo: Callable[[], object]) -> None:
        def end() -> None:
            del self._lasting[timer]
            undo()
            self._recorder.note(f"no more: {fault.kind} ({fault.target})")

        timer = self._loop.call_later(fault.seconds, end)
        self._lasting[timer] = undo

    # Clients and the network.

    def _cut(self, fault: Fault) -> str:
        """Cut connections of one client, or of all."""
        everybody = fault.value < 0.2
        cut = 0
        for connection in self._network.alive():
            if everybody or connection.client.name == f"c{fault.target}":
                connection.cut(lose_replies_only=fault.kind == p.CUT_REPLIES)
                cut += 1
        return f"{cut} connections"

    def _do_to_client(self, fault: Fault, client: ProcessLoop) -> None:
        if fault.kind == p.PAUSE_CLIENT:
            client.pause()
            self._lasts(fault, client.resume)
        elif fault.kind == p.KILL_CLIENT:
            client.kill()
            self._network.die(client, silently=fault.value < 0.5)
        else:
            number = int(fault.value * len(self._machines))
            one, other = client.host, self._machines[number].host
            self._network.part(one, other)
            self._lasts(fault, lambda: self._network.join(one, other))

    # Servers.

    def _do_to_server(self, fault: Fault, machine: Machine) -> str:
        if fault.kind == p.JUMP:
            machine.jump_ms += int((fault.value - 0.5) * _JUMP_MS)
            return ""
        if fault.kind == p.PAUSE:
            machine.pause()
            self._lasts(fault, machine.resume)
            return ""
        said = ""
        if fault.kind == p.CLONE:
            if isinstance(machine, MemberMachine):
                machine.kill(silently=False)
                self.clones.append(machine.clone(len(self.clones)))
            return said
        if fault.kind == p.STOP:
            machine.stop()
        else:
            said = machine.kill(silently=fault.kind == p.POWER)
            if isinstance(machine, MemberMachine) and fault.value < 0.3:
                machine.lose_cache()
                said = "its cache is lost"
        self._lasts(fault, machine.start)
        return said

    def _do_to_disk(self, fault: Fault, machine: SingleMachine) -> None:
        disk = machine.disk
        if fault.kind == p.FULL:
            disk.is_full = True
            self._lasts(fault, lambda: setattr(disk, "is_full", False))
        elif fault.kind == p.FAIL:
            disk.is_failing = True
            self._lasts(fault, lambda: setattr(disk, "is_failing", False))
        else:
            quick, disk.sync_max = disk.sync_max, _SLOW_SYNC_SECONDS
            self._lasts(fault, lambda: setattr(disk, "sync_max", min(quick, disk.sync_max)))

    def _do_to_etcd(self, fault: Fault, machine: Machine, etcd: WorldEtcd) -> None:
        link = etcd.link(machine.name)
        if fault.kind == p.UNLINK:
            link.cut()
            self._lasts(fault, self._in_etcd(link.heal))
        elif fault.kind == p.MUTE:
            link.cut_replies()
            self._lasts(fault, self._in_etcd(link.heal))
        elif fault.kind == p.GAG:
            link.cut_requests()
            self._lasts(fault, self._in_etcd(link.heal))
        elif fault.kind == p.LAG:
            spread = _LAG_SECONDS_MAX - _LAG_SECONDS_MIN
            link.delay_s = _LAG_SECONDS_MIN + spread * fault.value
            self._lasts(fault, lambda: setattr(link, "delay_s", 0.0))
        elif fault.kind == p.HOARD:
            link.hoard_s = 60.0 * fault.value
            self._lasts(fault, lambda: setattr(link, "hoard_s", 0.0))
        elif fault.kind == p.DEAF:
            link.silence_streams()
        elif fault.kind == p.BREAK:
            link.break_streams()
        elif fault.kind == p.ELECT:
            etcd.elect()
        elif fault.kind == p.QUORUM:
            etcd.lose_quorum()
            self._lasts(fault, self._in_etcd(etcd.regain_quorum))
        elif fault.kind == p.COMPACT:
            etcd.compact(etcd.space.revision)
        elif fault.kind == p.NOSPACE:
            etcd.fill()
            self._lasts(fault, self._in_etcd(etcd.make_space))
        elif fault.kind == p.ROUGH:
            etcd.faults = roughness(1.0)
            self._lasts(fault, self._calm)

    def _calm(self) -> None:
        assert self._etcd is not None
        self._etcd.faults = roughness(self._rough)

    def _in_etcd(self, action: Callable[[], object]) -> Callable[[], None]:
        """Return a call of something as etcd's process."""

        def act() -> None:
            assert self._etcd is not None
            with self._etcd.process.enter():
                action()

        return act

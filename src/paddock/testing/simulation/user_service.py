"""The service of a user's world: its servers, their etcd, and the network with its recorder."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from paddock.testing.simulation.connection import Tap
from paddock.testing.simulation.history import History
from paddock.testing.simulation.network import SimulatedNetwork
from paddock.testing.simulation.process import ProcessLoop, new_process
from paddock.testing.simulation.recorder import Recorder
from paddock.testing.simulation.remote_store import WorldEtcd
from paddock.testing.simulation.servers import PORT, Machine, MemberMachine, SingleMachine
from paddock.testing.simulation.user_plan import UserPlan
from paddock.testing.simulation.user_process import UserProcess
from paddock.testing.simulation.witness import add_log, read_log, read_shared_log
from paddock.testing.simulation.world_loop import WorldLoop


class UserService:
    """Servers on a simulated network. `folder` is for what they store."""

    def __init__(self, plan: UserPlan, loop: WorldLoop, folder: Path, seed: str) -> None:
        self.network = SimulatedNetwork(loop, seed, plan.delay_max)
        self.recorder = Recorder(loop)
        self.etcd: WorldEtcd | None = None
        if plan.servers > 1:
            process = new_process(loop, self.network, "etcd", "10.0.3.1")
            self.etcd = WorldEtcd(plan.seed, process)
        rates = plan.rates or (1.0,) * plan.servers
        self.machines: list[Machine] = []
        for number, rate in enumerate(rates, 1):
            if self.etcd is None:
                machine: Machine = SingleMachine(
                    loop,
                    self.network,
                    seed,
                    number,
                    rate=rate,
                    sync_max=plan.sync_max,
                    folder=folder,
                )
            else:
                machine = MemberMachine(
                    loop, self.network, seed, number, rate=rate, etcd=self.etcd, folder=folder
                )
            self.machines.append(machine)
        self._names = {machine.host: machine.name for machine in self.machines}
        self.network.tap = self._tap

    @property
    def hosts(self) -> str:
        return ",".join(f"{machine.host}:{PORT}" for machine in self.machines)

    def start(self) -> None:
        """Start every server that does not run."""
        for machine in self.machines:
            machine.start()

    def failures(self) -> list[tuple[str, str]]:
        """Return what servers have raised and should not have, with their names."""
        for machine in self.machines:
            machine.collect(machine.process)
        return [(machine.name, text) for machine in self.machines for text in machine.failures]

    def history(self) -> History:
        """Return the history so far, with the log of the service."""
        history = History(self.recorder.history.moments)
        if self.etcd is not None:
            add_log(history, read_shared_log(self.etcd.committed, Counter(), self.etcd.boots))
        else:
            machine = self.machines[0]
            assert isinstance(machine, SingleMachine)
            batches = [(batch.at, batch.payload) for batch in machine.disk.witness.batches]
            add_log(history, read_log(batches))
        return history

    def _tap(self, process: ProcessLoop, host: str) -> Tap | None:
        if host not in self._names or not isinstance(process, UserProcess):
            return None
        return _SteppingTap(self.recorder.tap(process.name, self._names[host]), process)


class _SteppingTap(Tap):
    """A tap that tells the process of each step."""

    def __init__(self, tap: Tap, process: UserProcess) -> None:
        self._tap = tap
        self._process = process

    def sent(self, data: bytes) -> None:
        self._process.step()
        self._tap.sent(data)

    def received(self, data: bytes) -> None:
        self._process.step()
        self._tap.received(data)

    def ended(self, reason: str) -> None:
        self._tap.ended(reason)

"""Does what a plan says to a user's world, and says so in sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from paddock.testing.simulation import plan as p
from paddock.testing.simulation.faults import Faults as WorldFaults
from paddock.testing.simulation.plan import Fault
from paddock.testing.simulation.servers import Machine, SingleMachine
from paddock.testing.simulation.user_plan import OF_PROCESSES

if TYPE_CHECKING:
    from paddock.testing.simulation.network import SimulatedNetwork
    from paddock.testing.simulation.recorder import Recorder
    from paddock.testing.simulation.remote_store import WorldEtcd
    from paddock.testing.simulation.user_process import UserProcess
    from paddock.testing.simulation.world_loop import WorldLoop

_SENTENCES: Final = {
    p.CUT: "the connection of {process} is cut",
    p.CUT_REPLIES: "the connection of {process} is cut: requests arrive, replies are lost",
    p.PART: "{process} cannot reach {server}",
    p.PAUSE_CLIENT: "{process} is paused",
    p.KILL_CLIENT: "{process} is killed",
    p.STOP: "{server} is stopped",
    p.KILL: "{server} is killed",
    p.POWER: "{server} loses its power",
    p.PAUSE: "{server} is paused",
    p.JUMP: "the time of day of {server} jumps",
    p.FULL: "the disk of {server} is full",
    p.FAIL: "the disk of {server} fails",
    p.SLOW: "the disk of {server} is slow",
    p.UNLINK: "{server} cannot reach etcd",
    p.MUTE: "{server} gets no replies from etcd",
    p.LAG: "the link of {server} to etcd is slow",
    p.ELECT: "etcd elects a leader",
    p.QUORUM: "etcd has no quorum",
}
_ENDS: Final = {
    p.PART: "{process} can reach {server} again",
    p.PAUSE_CLIENT: "{process} goes on",
    p.STOP: "{server} is started",
    p.KILL: "{server} is started",
    p.POWER: "{server} is started",
    p.PAUSE: "{server} goes on",
}
# What is aimed at the moment at which a process sends or receives something, from which value of
# the fault on: cuts as a rule, pauses sometimes, since long work is sending nothing.
_AIMED: Final = {p.CUT: 0.3, p.CUT_REPLIES: 0.2, p.PAUSE_CLIENT: 0.7, p.KILL_CLIENT: 0.5}
# How often the target is the process that has acted last.
_LATEST: Final = 0.5
_STEPS_MAX: Final = 5
# What has no end of its own.
_MOMENTARY: Final = (p.CUT, p.CUT_REPLIES, p.KILL_CLIENT, p.JUMP, p.ELECT)


class UserFaults(WorldFaults):
    """The faults of a world whose processes come and go. `processes` are those that may suffer."""

    def __init__(
        self,
        loop: WorldLoop,
        network: SimulatedNetwork,
        recorder: Recorder,
        machines: list[Machine],
        etcd: WorldEtcd | None,
        *,
        processes: Callable[[], list[UserProcess]],
        kill: Callable[[UserProcess, bool], None],
    ) -> None:
        super().__init__(loop, network, recorder, machines, {}, etcd, 0.0)
        self._processes = processes
        self._kill = kill
        # Of the fault that is done just now.
        self._names: dict[str, str] = {}
        self._is_over = False
        # How many faults were done.
        self.done = 0

    def do(self, fault: Fault) -> None:
        running = self._processes()
        if fault.kind in OF_PROCESSES and not running:
            return
        process = running[(fault.target - 1) % len(running)] if running else None
        if process is not None and fault.value * 10 % 1 < _LATEST:
            # Whoever has acted last is in the middle of something: others may wait for it.
            process = max(running, key=lambda one: one.stepped_at)
        machine = self._machines[(fault.target - 1) % len(self._machines)]
        if fault.kind == p.PART:
            machine = self._machines[int(fault.value * len(self._machines))]
        if fault.kind not in _SENTENCES or not self._fits(fault, machine):
            return
        if process is not None and fault.value >= _AIMED.get(fault.kind, 1.0):
            # Not at any moment, but when it has just sent or received something.
            steps = int(fault.value * 100) % _STEPS_MAX + 1
            process.aim(steps, lambda: self._do_now(fault, process, machine))
        else:
            self._do_now(fault, process, machine)

    def _do_now(self, fault: Fault, process: UserProcess | None, machine: Machine) -> None:
        if fault.kind in OF_PROCESSES:
            if process is None or process.is_dead or self._is_over:
                return
            if fault.kind == p.PAUSE_CLIENT and process.is_paused:
                # The end of this pause would be that of the other.
                return
        self.done += 1
        self._names = {"process": process.name if process else "", "server": machine.name}
        self._say(_SENTENCES[fault.kind], fault)
        if fault.kind in OF_PROCESSES:
            assert process is not None
            self._do_to_process(fault, process, machine)
        elif fault.kind in (p.STOP, p.KILL, p.POWER, p.PAUSE, p.JUMP):
            self._do_to_server(fault, machine)
        elif isinstance(machine, SingleMachine):
            self._do_to_disk(fault, machine)
        elif self._etcd is not None:
            with self._etcd.process.enter():
                self._do_to_etcd(fault, machine, self._etcd)

    def mend(self) -> None:
        self._is_over = True
        super().mend()

    def _fits(self, fault: Fault, machine: Machine) -> bool:
        """Return whether the fault can be done, in a world that may have fewer servers now."""
        if fault.kind in (p.FULL, p.FAIL, p.SLOW):
            return isinstance(machine, SingleMachine)
        if fault.kind in (p.UNLINK, p.MUTE, p.LAG, p.ELECT, p.QUORUM):
            return self._etcd is not None
        return True

    def _do_to_process(self, fault: Fault, process: UserProcess, machine: Machine) -> None:
        if fault.kind in (p.CUT, p.CUT_REPLIES):
            for connection in self._network.alive():
                if connection.client is process:
                    connection.cut(lose_replies_only=fault.kind == p.CUT_REPLIES)
        elif fault.kind == p.PAUSE_CLIENT:
            process.pause()
            self._lasts(fault, process.resume)
        elif fault.kind == p.KILL_CLIENT:
            self._kill(process, fault.value < 0.5)
        else:
            one, other = process.host, machine.host
            self._network.part(one, other)
            self._lasts(fault, lambda: self._network.join(one, other))

    def _lasts(self, fault: Fault, undo: Callable[[], object]) -> None:
        names = self._names
        said = _ENDS.get(fault.kind, "no more: " + _SENTENCES[fault.kind]).format(**names)

        def end() -> None:
            del self._lasting[timer]
            undo()
            self._recorder.note(said)

        timer = self._loop.call_later(fault.seconds, end)
        self._lasting[timer] = undo

    def _say(self, sentence: str, fault: Fault) -> None:
        lasting = "" if fault.kind in _MOMENTARY else f" for {fault.seconds:.1f} s"
        self._recorder.note(sentence.format(**self._names) + lasting)

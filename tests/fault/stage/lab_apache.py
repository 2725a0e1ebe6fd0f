"""An Apache ZooKeeper ensemble of three and its clients, each in a network namespace of its own.

It is the control of the laboratory: the judge must pass what it does. Its scenes strike one member
after the other, but never all of them, so that one has the whole log. They do not pause or cut off
the leader: Apache's sync asks the leader, which answers it without a quorum, so a leader that does
not know yet that it was replaced may answer one that sees too little.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from paddock.testing.simulation import history as h
from paddock.testing.simulation.history import History, Logged
from tests.fault.stage.lab import wait_until
from tests.support.apache_log import read_transactions
from tests.support.ensemble import ApacheMember, choose_ports
from tests.support.members import SIZE, Member
from tests.support.namespaces import Network, Place
from tests.support.server import PROBE_DEADLINE_S, Options

_MEMORY: Final = "/dev/shm" if os.path.isdir("/dev/shm") else None
# Killed processes lose nothing; and each listens on the address of its namespace.
_OPTIONS: Final = Options(durable=False, extra=(("clientPortAddress", None),))

EPOCHS: Final = "log: epochs"


class LabApache(ApacheMember):
    """One member."""

    heap_mb = 256

    def is_serving(self) -> bool:
        """Whether it says that it serves; a session would be one that no history has."""
        return self.mode(PROBE_DEADLINE_S) in ("leader", "follower")


class ApacheLab:
    """Everything of a scene, but its clients. `with` starts it."""

    def __init__(self) -> None:
        self.network = Network(*(f"server{number}" for number in range(1, SIZE + 1)), "clients")
        *self.server_places, self.clients = self.network.places
        self.members: list[LabApache] = []
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.network)
            folder = Path(tempfile.mkdtemp(prefix="paddock-test-lab-", dir=_MEMORY))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            ports = [
                dataclasses.replace(one, host=place.address)
                for one, place in zip(choose_ports(), self.server_places, strict=True)
            ]
            for number, place in enumerate(self.server_places, 1):
                member = LabApache(
                    number, ports, _OPTIONS, folder / place.name, has_read_only_mode=False
                )
                member.host, member.within = place.address, place.command
                stack.callback(member.kill)
                self.members.append(member)
            stack.enter_context(self.clients.entered())
            self.heal()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            for one in self.members:
                print(f"--- {one!r} ended so:\n{one.log_tail()}")
        self._stack.close()

    def place_of(self, member: Member) -> Place:
        """Where a member runs."""
        return self.server_places[member.number - 1]

    def leader(self) -> Member:
        """Wait until one member leads, and return it."""
        wait_until(lambda: self._modes()["leader"] == 1, "one member leads")
        return next(member for member in self.members if member.mode() == "leader")

    def followers(self) -> list[Member]:
        """Return the members that follow."""
        return [member for member in self.members if member.mode() == "follower"]

    def heal(self) -> None:
        """Undo everything that was done, and wait until all serve."""
        self.network.mend()
        for member in self.members:
            if not member.alive:
                member.kill()
                member.launch()
            elif member.paused:
                member.resume()
        wait_until(
            lambda: self._modes() == {"leader": 1, "follower": SIZE - 1}, "all members serve"
        )

    def read_log(
        self, history: History, counts: Counter[str], struck: set[Member]
    ) -> Iterator[Logged]:
        """Read the log of a member that was in every quorum."""
        witness = next(member for member in self.members if member not in struck)
        for logged in read_transactions(witness.data):
            counts[EPOCHS] += logged.about == h.EPOCH
            yield logged

    def differences(self) -> list[str]:
        """Return nothing: the readers of a scene look at all members, and Apache has no digest."""
        return []

    def _modes(self) -> Counter[str | None]:
        # A connection that is made too early may never be answered.
        return Counter(member.mode(PROBE_DEADLINE_S) for member in self.members)

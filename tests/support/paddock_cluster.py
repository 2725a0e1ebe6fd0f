"""Three Paddocks that share a log in etcd, all on this machine, with the interface of an ensemble.

    with PaddockCluster() as cluster:
        client = connect(cluster.hosts)
        cluster.leader().kill()
        cluster.wait_quorum()

Its leader is the member on duty. One member serves alone, as long as etcd does; `etcd` has the
members of that, one or three, which can be killed and paused as well.
"""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.support.etcd import Etcd, EtcdCluster
from tests.support.members import SIZE, Ensemble, Member
from tests.support.paddock_server import PaddockServer
from tests.support.server import Options

# Nothing is lost when a process is killed, so etcd need not wait for a disk.
_MEMORY: Final = Path("/dev/shm")
# In milliseconds: less than the defaults, so that a lost leader of etcd is soon missed, and enough
# for a busy machine.
_ETCD_ARGUMENTS: Final = ("--heartbeat-interval", "50", "--election-timeout", "1000")

# The lease in ticks of 200 ms: 8 s. The shortest one may be over while a busy machine does other
# things; a longer one makes tests wait until a server is missed.
_LEASE_TICKS: Final = 40

_OPTIONS: Final = Options()


class PaddockMember(Member, PaddockServer):
    """One server of a cluster."""

    def __init__(
        self, number: int, options: Options, folder: Path, log: str, *, advertises: bool
    ) -> None:
        super().__init__(number, options, folder)
        self._log_url = log
        self._advertises = advertises

    def prepare(self) -> tuple[list[str], dict[str, str]]:
        command, environment = super().prepare()
        command += ["--log", self._log_url]
        if self._advertises:
            command += ["--advertise", self.hosts]
        return command, environment


class PaddockCluster(Ensemble):
    """Three members, each of which serves as long as etcd does.

    With `has_read_only_mode` a member that is cut off from etcd serves those who asked to be
    content with reading. With `advertises`, all members are listed in /zookeeper/config, which is
    empty otherwise, as that of one server.
    """

    name = "cluster"
    majority = 1
    restarts_stuck = False

    def __init__(
        self,
        options: Options = _OPTIONS,
        *,
        has_read_only_mode: bool = False,
        advertises: bool = False,
        etcd_members: int = 1,
        size: int = SIZE,
    ) -> None:
        super().__init__()
        self.etcd_folder = Path(
            tempfile.mkdtemp(prefix="paddock-test-etcd-", dir=_MEMORY if _MEMORY.is_dir() else None)
        )
        self.etcd_cluster: EtcdCluster | None = None
        self.etcd: Sequence[Etcd]
        if etcd_members == 1:
            self.etcd = [Etcd(self.etcd_folder / "one", arguments=_ETCD_ARGUMENTS)]
        else:
            self.etcd_cluster = EtcdCluster(self.etcd_folder, arguments=_ETCD_ARGUMENTS)
            self.etcd = self.etcd_cluster.members
        endpoints = ",".join(one.endpoint for one in self.etcd)
        extra = (("syncLimit", str(_LEASE_TICKS)), *options.extra)
        if has_read_only_mode:
            extra = (*extra, ("readonlymode.enabled", "true"))
        options = dataclasses.replace(options, extra=extra)
        self.members = [
            PaddockMember(
                number,
                options,
                self.folder / f"member{number}",
                f"etcd://{endpoints}/tests",
                advertises=advertises,
            )
            for number in range(1, size + 1)
        ]

    def heal(self) -> Member:
        self.heal_etcd()
        return super().heal()

    def heal_etcd(self) -> None:
        """Resume what is paused of etcd, start what is dead, and wait for all of it."""
        for one in self.etcd:
            if not one.alive:
                one.kill()
                one.launch()
            elif one.paused:
                one.resume()
        for one in self.etcd:
            one.wait_serving()

    def end_quorum(self, last: Member) -> None:
        """Kill etcd, all of it."""
        for one in self.etcd:
            one.kill()

    def begin_quorum(self) -> None:
        self.heal_etcd()
        self.wait_quorum()

    def kill_in_turn(self) -> None:
        """Kill each member and start it again, one after the other."""
        for member in self.members:
            member.kill()
            member.start()

    def renew(self) -> Member:
        for member in self.members:
            member.kill()
        for one in self.etcd:
            one.kill()
            one.wipe()
        return super().renew()

    def remove(self) -> None:
        with contextlib.ExitStack() as stack:
            stack.callback(shutil.rmtree, self.etcd_folder, ignore_errors=True)
            for one in self.etcd:
                stack.callback(one.kill)
            stack.callback(super().remove)

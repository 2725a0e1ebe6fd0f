"""An Apache ZooKeeper ensemble of three, all on this machine: what one server cannot show."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.apache import ApacheServer
from tests.support.members import SIZE, Ensemble, Member
from tests.support.server import Options, free_ports

# In ticks of 200 ms. A busy machine may stop a process for a second, and that must not end a
# quorum; a paused leader is missed only after as long.
_INIT_TICKS: Final = 100
_SYNC_TICKS: Final = 15
# How rarely a member that looks for a leader says so again, when nobody answers. By default it is
# every minute in the end, which is how long a single lost message would take.
_NOTIFICATION_MS_MAX: Final = 1000

# A kill of a process loses nothing that was written, so there is no need to wait for the disk.
ENSEMBLE_OPTIONS: Final = Options(durable=False)


@dataclass(frozen=True, slots=True)
class Ports:
    """Where a member listens."""

    client: int
    quorum: int
    election: int
    host: str = "127.0.0.1"


class ApacheMember(Member, ApacheServer):
    """One server of an ensemble. It serves with one more at least."""

    # Each keeps what long campaigns write.
    heap_mb = 512
    log_level = "WARN"

    def __init__(
        self,
        number: int,
        ports: list[Ports],
        options: Options,
        folder: Path,
        *,
        has_read_only_mode: bool,
    ) -> None:
        super().__init__(number, options, folder)
        self.port = ports[number - 1].client
        self._ports = ports
        self._has_read_only_mode = has_read_only_mode
        self.clear()

    def keys(self) -> dict[str, str]:
        members = {
            f"server.{number}": f"{ports.host}:{ports.quorum}:{ports.election}"
            for number, ports in enumerate(self._ports, 1)
        }
        limits = {"initLimit": str(_INIT_TICKS), "syncLimit": str(_SYNC_TICKS)}
        # Without a quorum no other sessions can be had: a global one is made by the leader.
        local = str(self._has_read_only_mode).lower()
        sessions = {"localSessionsEnabled": local, "localSessionsUpgradingEnabled": local}
        return {**super().keys(), **limits, **sessions, **members}

    def properties(self) -> dict[str, str]:
        return {
            **super().properties(),
            "zookeeper.fastleader.maxNotificationInterval": str(_NOTIFICATION_MS_MAX),
            "readonlymode.enabled": "true" if self._has_read_only_mode else "false",
        }

    def clear(self) -> None:
        super().clear()
        (self.data / "myid").write_text(f"{self.number}\n")

    def thread_dump(self) -> str:
        return ApacheServer.thread_dump(self)


class ApacheEnsemble(Ensemble):
    """Three members, of which two serve.

    With `has_read_only_mode` a member without a quorum serves those who asked to be content with
    reading. Sessions are local to a member then, until they create something ephemeral; and only
    a new session can be had from a member without a quorum.
    """

    name = "ensemble"
    majority = SIZE // 2 + 1
    # An election may never end, as two members of one in some hundred have shown, and a follower
    # may live on without the thread that writes its log (ZOOKEEPER-4409, until 3.9.3).
    restarts_stuck = True

    def __init__(
        self, options: Options = ENSEMBLE_OPTIONS, *, has_read_only_mode: bool = False
    ) -> None:
        super().__init__()
        ports = choose_ports()
        self.members = [
            ApacheMember(
                number,
                ports,
                options,
                self.folder / f"member{number}",
                has_read_only_mode=has_read_only_mode,
            )
            for number in range(1, SIZE + 1)
        ]

    def end_quorum(self, last: Member) -> None:
        for member in self.others(last):
            member.kill()

    def begin_quorum(self) -> None:
        next(member for member in self.members if not member.alive).launch()
        self.wait_quorum()


def choose_ports(size: int = SIZE) -> list[Ports]:
    """Choose free ports for so many members.

    A member whose quorum port is taken looks for a leader for ever, and says so nowhere but in its
    log.
    """
    found = free_ports(3 * size)
    return [Ports(*three) for three in zip(found[::3], found[1::3], found[2::3], strict=True)]

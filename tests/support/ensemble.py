"""An Apache ZooKeeper ensemble of three, all on this machine: what one server cannot show.

    with ApacheEnsemble() as ensemble:
        client = connect(ensemble.hosts)
        ensemble.leader().kill()
        ensemble.wait_quorum()

A member is a server like any other; it can be killed, stopped, paused and started again, and keeps
its port and its data meanwhile. Tests take the fixture `ensemble` (tests/conftest.py), which has
all three serve again after each of them.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.support import wire
from tests.support.apache import ApacheServer
from tests.support.server import (
    POLL_S,
    START_DEADLINE_S,
    Options,
    ServerFailedError,
    free_ports,
)

SIZE: Final = 3
MAJORITY: Final = SIZE // 2 + 1

# In ticks of 200 ms. A busy machine may stop a process for a second, and that must not end a
# quorum; a paused leader is missed only after as long.
_INIT_TICKS: Final = 100
_SYNC_TICKS: Final = 15
# How long it may take until all serve, and after how long those that do not are started again. A
# member joins slowly on a busy machine where others write all the time.
_QUORUM_DEADLINE_S: Final = 4 * START_DEADLINE_S
_STUCK_S: Final = START_DEADLINE_S
# How rarely a member that looks for a leader says so again, when nobody answers. By default it is
# every minute in the end, which is how long a single lost message would take.
_NOTIFICATION_MS_MAX: Final = 1000

# A kill of a process loses nothing that was written, so there is no need to wait for the disk.
_OPTIONS: Final = Options(durable=False)


@dataclass(frozen=True, slots=True)
class Ports:
    """Where a member listens."""

    client: int
    quorum: int
    election: int


class Member(ApacheServer):
    """One server of an ensemble.

    `start` waits until it serves, which it does with one more at least; `launch` does not wait.
    """

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
        folder.mkdir()
        super().__init__(options, folder)
        self.number = number
        self.port = ports[number - 1].client
        self.paused = False
        self._ports = ports
        self._has_read_only_mode = has_read_only_mode
        self.clear()

    def __repr__(self) -> str:
        return f"member {self.number}"

    @property
    def running(self) -> bool:
        """Whether its process runs and is not paused."""
        return self.alive and not self.paused

    def keys(self) -> dict[str, str]:
        members = {
            f"server.{number}": f"{self.host}:{ports.quorum}:{ports.election}"
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

    def pause(self) -> None:
        """Stop its clock: to the others it hangs, and its connections stay open."""
        self._signal(signal.SIGSTOP)
        self.paused = True

    def resume(self) -> None:
        """Let it go on from where it was."""
        self._signal(signal.SIGCONT)
        self.paused = False

    def stop(self) -> int | None:
        # What is paused cannot hear that it should end.
        if self.alive and self.paused:
            self.resume()
        return super().stop()

    def kill(self) -> None:
        super().kill()
        self.paused = False

    def clear(self) -> None:
        """Forget everything but its number; only while it does not run."""
        assert not self.alive, f"{self!r} runs"
        shutil.rmtree(self.data)
        self.data.mkdir()
        (self.data / "myid").write_text(f"{self.number}\n")

    def mode(self) -> str | None:
        """What it says it is, `leader`, `follower` or `read-only`; None if it says nothing."""
        if not self.running:
            return None
        try:
            answer = wire.four_letter_word(self.address, "srvr")
        except OSError:
            return None
        modes = [line.split()[1] for line in answer.splitlines() if line.startswith("Mode: ")]
        return modes[0] if modes else None

    def wait_mode(self, wanted: str) -> None:
        """Wait until it says that this is what it is."""
        limit = time.monotonic() + START_DEADLINE_S
        while (mode := self.mode()) != wanted:
            if time.monotonic() > limit:
                raise ServerFailedError(f"{self!r} is {mode}, not {wanted}:\n{self.log_tail()}")
            self.wait_ended(POLL_S)

    def sessions(self) -> set[int]:
        """The sessions that are attached to it."""
        if not self.running:
            return set()
        try:
            answer = wire.four_letter_word(self.address, "cons")
        except OSError:
            return set()
        return {int(found, 16) for found in re.findall(r"sid=0x([0-9a-f]+)", answer)}

    def is_serving(self) -> bool:
        return self.running and super().is_serving()

    def _signal(self, number: int) -> None:
        assert self.alive, f"{self!r} does not run"
        assert self._process is not None
        self._process.send_signal(number)


class ApacheEnsemble:
    """Three members. `with` starts them, and leaves neither processes nor files behind.

    With `has_read_only_mode` a member without a quorum serves those who asked to be content with
    reading. Sessions are local to a member then, until they create something ephemeral; and only
    a new session can be had from a member without a quorum.
    """

    name = "ensemble"

    def __init__(self, options: Options = _OPTIONS, *, has_read_only_mode: bool = False) -> None:
        ports = choose_ports()
        self.folder = Path(tempfile.mkdtemp(prefix="paddock-test-ensemble-"))
        self.members = [
            Member(
                number,
                ports,
                options,
                self.folder / f"member{number}",
                has_read_only_mode=has_read_only_mode,
            )
            for number in range(1, SIZE + 1)
        ]

    def __enter__(self) -> Self:
        try:
            self.heal()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.remove()

    @property
    def hosts(self) -> str:
        """The connection string of all members."""
        return ",".join(member.hosts for member in self.members)

    @property
    def address(self) -> tuple[str, int]:
        """Where the first member is."""
        return self.members[0].address

    @property
    def addresses(self) -> list[tuple[str, int]]:
        return [member.address for member in self.members]

    def others(self, *members: Member) -> list[Member]:
        """All members but these."""
        return [member for member in self.members if member not in members]

    def at(self, port: int) -> Member:
        """The member whose clients are on this port."""
        return next(member for member in self.members if member.port == port)

    def member_of(self, session_id: int) -> Member:
        """The running member that a session is attached to; waits for the session to be so."""
        limit = time.monotonic() + START_DEADLINE_S
        while time.monotonic() < limit:
            for member in self.members:
                if session_id in member.sessions():
                    return member
            next(member for member in self.members if member.running).wait_ended(POLL_S)
        raise ServerFailedError(f"no member knows of session 0x{session_id:x}")

    def leader(self) -> Member:
        """The leader; waits for one, as `wait_quorum` does."""
        return self._sole_leader() or self.wait_quorum()

    def followers(self) -> list[Member]:
        """Who runs and does not lead; waits for a leader, as `wait_quorum` does."""
        leader = self.leader()
        return [member for member in self.others(leader) if member.running]

    def wait_quorum(self) -> Member:
        """Wait until every running member serves and one of them leads; return that one.

        An election of Apache's may never end, as two members of one in some hundred have shown, and
        a follower may live on without the thread that writes its log (ZOOKEEPER-4409). A member
        that does not serve for a while is restarted.
        """
        running = [member for member in self.members if member.running]
        assert len(running) >= MAJORITY, f"{running} of {SIZE} are no majority"
        limit = time.monotonic() + _QUORUM_DEADLINE_S
        stuck_at = time.monotonic() + _STUCK_S
        while time.monotonic() < limit:
            if time.monotonic() > stuck_at:
                stuck_at += _STUCK_S
                for member in running:
                    if not member.is_serving():
                        member.kill()
                        member.launch()
            for member in running:
                if member.wait_ended(0):
                    raise ServerFailedError(f"{member!r} ended:\n{member.log_tail()}")
            # A member may believe for a moment that all is as it was. A session is created only
            # through the leader, so a member that grants one is up to date.
            leader = self._sole_leader()
            if leader is not None and all(member.is_serving() for member in running):
                return leader
            running[0].wait_ended(POLL_S)
        logs = "\n".join(f"{member!r}:\n{member.log_tail()}" for member in running)
        raise ServerFailedError(f"{running} have no quorum:\n{logs}")

    def heal(self) -> Member:
        """Resume what is paused, start what is dead, wait for the quorum; return the leader."""
        for member in self.members:
            if not member.alive:
                member.kill()
                member.launch()
            elif member.paused:
                member.resume()
        return self.wait_quorum()

    def renew(self) -> Member:
        """Kill all and begin again with an empty tree, whatever state they are in."""
        for member in self.members:
            member.kill()
            member.clear()
        return self.heal()

    def remove(self) -> None:
        """End all that runs, at once, and remove the data."""
        with contextlib.ExitStack() as stack:
            stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
            for member in self.members:
                stack.callback(member.kill)

    def _sole_leader(self) -> Member | None:
        """Who leads; nobody while two say so, as one does that has just been resumed."""
        leaders = [member for member in self.members if member.mode() == "leader"]
        return leaders[0] if len(leaders) == 1 else None


def move(client: wire.Client, member: Member, last_zxid: int = 0) -> wire.Client:
    """Continue a session on another member, as soon as that one is ready for it."""
    limit = time.monotonic() + START_DEADLINE_S
    while True:
        # It refuses clients that have seen more than itself, and all while there is no quorum.
        try:
            return wire.reattach(member.address, client, last_zxid)
        except (OSError, wire.ConnectionClosedError):
            if time.monotonic() > limit:
                raise
            member.wait_ended(POLL_S)


def choose_ports(size: int = SIZE) -> list[Ports]:
    """Choose free ports for so many members.

    A member whose quorum port is taken looks for a leader for ever, and says so nowhere but in its
    log.
    """
    found = free_ports(3 * size)
    return [Ports(*found[at : at + 3]) for at in range(0, len(found), 3)]

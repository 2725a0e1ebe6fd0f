"""Several servers that are one service: what Apache's ensemble and Paddock's cluster share.

    with ApacheEnsemble() as ensemble:
        client = connect(ensemble.hosts)
        ensemble.leader().kill()
        ensemble.wait_quorum()

A member is a server like any other; it can be killed, stopped, paused and started again, and keeps
its port and its data meanwhile. Tests take the fixtures `ensemble`, `cluster`, or `several`, which
is each of them in turn (tests/conftest.py). All members serve again after each test.
"""

from __future__ import annotations

import abc
import contextlib
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.support import wire
from tests.support.release import Release
from tests.support.server import (
    POLL_S,
    START_DEADLINE_S,
    Options,
    Server,
    ServerFailedError,
)

SIZE: Final = 3

# How long it may take until all serve, and after how long those that do not are started again, each
# time twice as long. A member joins slowly on a busy machine where others write all the time.
_QUORUM_DEADLINE_S: Final = 4 * START_DEADLINE_S
_STUCK_S: Final = START_DEADLINE_S / 3


class Member(Server):
    """One server of several.

    `start` waits until it serves, `launch` does not wait.
    """

    def __init__(self, number: int, options: Options, folder: Path) -> None:
        folder.mkdir()
        super().__init__(options, folder)
        self.number = number
        self.paused = False

    def __repr__(self) -> str:
        return f"member {self.number}"

    @property
    def running(self) -> bool:
        """Whether its process runs and is not paused."""
        return self.alive and not self.paused

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

    def thread_dump(self) -> str:
        """What it does at the moment, for a failure that has to be explained."""
        return self.log_tail()

    def mode(self, deadline_s: float = wire.DEADLINE_S) -> str | None:
        """What it says it is, `leader`, `follower` or `read-only`; None if it says nothing."""
        if not self.running:
            return None
        try:
            answer = wire.four_letter_word(self.address, "srvr", deadline_s)
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


class Ensemble(abc.ABC):
    """Three members. `with` starts them, and leaves neither processes nor files behind."""

    name: str
    members: Sequence[Member]
    #: How many have to run so that clients are served.
    majority: int
    #: Whether a member that does not serve for a while is restarted.
    restarts_stuck: bool

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"paddock-test-{self.name}-"))

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

    @property
    def release(self) -> Release | None:
        return self.members[0].release

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
        """Wait until every running member serves and one of them leads; return that one."""
        running = [member for member in self.members if member.running]
        assert len(running) >= self.majority, f"{running} of {len(self.members)} are no majority"
        limit = time.monotonic() + _QUORUM_DEADLINE_S
        patience_s = _STUCK_S
        stuck_at = time.monotonic() + patience_s
        while time.monotonic() < limit:
            if self.restarts_stuck and time.monotonic() > stuck_at:
                patience_s *= 2
                stuck_at += patience_s
                for member in running:
                    if not member.is_serving():
                        member.kill()
                        member.launch()
            for member in running:
                if member.wait_ended(0):
                    raise ServerFailedError(f"{member!r} ended:\n{member.log_tail()}")
            # A member may believe for a moment that all is as it was. A session is created only
            # through the leader, or the log, so a member that grants one is up to date.
            leader = self._sole_leader()
            if leader is not None and all(member.is_serving() for member in running):
                return leader
            running[0].wait_ended(POLL_S)
        logs = "\n".join(f"{member!r}:\n{member.log_tail()}" for member in running)
        raise ServerFailedError(f"{running} have no quorum:\n{logs}")

    @abc.abstractmethod
    def end_quorum(self, last: Member) -> None:
        """Take away the quorum; this member runs on."""

    @abc.abstractmethod
    def begin_quorum(self) -> None:
        """Bring the quorum back."""

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

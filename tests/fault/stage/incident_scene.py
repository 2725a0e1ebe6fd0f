"""The scene of an incident: a server process, a lock, its holder in a process of its own, others.

What a seed draws is in `Plan`. The holder is behind a proxy, which can cut it off. Waiters are in
the line behind it, in its own layout. Neighbours write, and one of them may close its session
in the midst of everything. Their sessions are so long that nothing happens to them.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from random import Random
from threading import Event as Signal
from typing import Final, Self

from paddock.storage.events import FOLDER, Event, read_events
from paddock.testing import FaultProxy, ServerProcess
from tests.fault.stage.incident_holder import IMPATIENT, LAYOUTS, PATIENT
from tests.support import requests as rq
from tests.support import wire
from tests.support.holding import stopped
from tests.support.members import Member
from tests.support.slow_disk import SlowDisk

DEADLINE_S: Final = 90.0
POLL_S: Final = 0.05
_TICK_MS: Final = 100
# Of those to whom nothing is to happen.
_LONG_MS: Final = 60_000
_EPHEMERAL_SEQUENTIAL: Final = 3
_PREFIXES: Final = {
    "Paddock": lambda: f"_c_{uuid.uuid4().hex}-lock-",
    "kazoo": lambda: f"{uuid.uuid4().hex}__lock__",
    "Curator": lambda: f"_c_{uuid.uuid4()}-lock-",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What is drawn besides the kind of an incident."""

    timeout: float
    layout: str
    path: str
    waiters: int
    # Writes of others before the incident, and in it.
    noise: int
    # Whether a neighbour closes its session while the incident happens.
    is_neighbour_closing: bool
    # How long everything is well at first, and how much longer than needed a trouble lasts.
    calm: float
    longer: float

    @classmethod
    def draw(cls, random: Random) -> Plan:
        return cls(
            timeout=random.choice((2.0, 2.5, 3.0)),
            layout=random.choice(LAYOUTS),
            path=random.choice(("/lock", "/app/locks/nightly")),
            waiters=random.randint(0, 3),
            noise=random.randint(0, 20),
            is_neighbour_closing=random.random() < 0.5,
            calm=random.uniform(0.0, 1.5),
            longer=random.uniform(0.0, 1.5),
        )


class Holder:
    """The process that holds the lock."""

    def __init__(self, hosts: str, plan: Plan, temper: str, log: Path) -> None:
        words = [hosts, str(plan.timeout), plan.path, plan.layout, temper]
        self._log = log
        with log.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.fault.stage.incident_holder", *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        _, session, password, self.node = self._wait_said("holding")
        self.session = int(session)
        self.password = bytes.fromhex(password)

    def ask(self) -> str:
        """Wait until a server has answered it; return `answered`, or `gave_up`, or `expired`."""
        self.tell("ask")
        return self._wait_said("answered", "gave_up", "expired")[0]

    def tell(self, word: str, answer: str = "") -> None:
        """Tell it to do something, and wait until it says that it has."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        if answer:
            self._wait_said(answer)

    def pause(self) -> None:
        stopped(self.process.pid)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it as `kill -9` does; twice is fine."""
        self.process.kill()
        self.process.wait()

    def wait_end(self) -> None:
        self.process.wait(DEADLINE_S)

    def leave(self) -> None:
        self.kill()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            # What it was told last, it may never have read.
            with contextlib.suppress(BrokenPipeError):
                stream.close()

    def _wait_said(self, *expected: str) -> list[str]:
        assert self.process.stdout is not None
        # One that says nothing at all is ended, and then there is an end of what it says.
        limit = threading.Timer(DEADLINE_S, self.process.kill)
        limit.start()
        words = self.process.stdout.readline().split()
        limit.cancel()
        assert words[:1] in [[one] for one in expected], (words, expected, self._log.read_text())
        return words


class Scene:
    """A server with a lock that is held; leaving it stops everything, and the data stays."""

    def __init__(self, folder: Path, plan: Plan, server: Member | None = None) -> None:
        # Where the data is that is read afterwards.
        self.data = folder / "data"
        self.plan = plan
        # The one that the holder is on.
        self.server: ServerProcess | Member = server or ServerProcess(
            self.data,
            ("--tick-time-ms", str(_TICK_MS), "--max-session-timeout-ms", str(_LONG_MS)),
        )
        self.proxy = FaultProxy(self.server.address)
        self._stack = contextlib.ExitStack()
        self.waiters: list[int] = []
        self.neighbour = 0
        self._observer: wire.Client | None = None

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self._start(stack)
            self._prepare()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *details: object) -> None:
        self._stack.close()

    @property
    def hosts(self) -> str:
        """What the holder knows."""
        return self.proxy.hosts

    @property
    def others_address(self) -> wire.Address:
        """Where those connect to whom nothing happens."""
        return self.server.address

    def begin(self, temper: str = PATIENT) -> Holder:
        """Let somebody hold the lock and others wait for it, and everything be well for a while."""
        holder = self.enter(temper)
        for _ in range(self.plan.waiters):
            client = self.connect()
            name = _PREFIXES[self.plan.layout]()
            client.call(rq.create(f"{self.plan.path}/{name}", flags=_EPHEMERAL_SEQUENTIAL))
            self.waiters.append(client.session_id)
        self.last(self.plan.calm)
        self.happen()
        return holder

    def enter(self, temper: str) -> Holder:
        holder = Holder(self.hosts, self.plan, temper, self.data.parent / "holder.log")
        # Before the server stops, which a paused one would not notice.
        self._stack.callback(holder.leave)
        return holder

    def finish(self) -> None:
        """Stop the server, before the processes are ended that are there still."""
        self.server.stop()

    def begin_impatient(self) -> Holder:
        return self.begin(IMPATIENT)

    def connect(self) -> wire.Client:
        """Return a client to whom nothing happens."""
        client = wire.connect(self.others_address, timeout_ms=_LONG_MS)
        self._stack.callback(client.disconnect)
        return client

    def happen(self) -> None:
        """Let the others do what they do."""
        self._write()
        if self.plan.is_neighbour_closing and not self.neighbour:
            neighbour = self.connect()
            self.neighbour = neighbour.session_id
            neighbour.close()

    def last(self, seconds: float) -> None:
        """Let something last for so long."""
        Signal().wait(seconds)

    def slow_disk(self, seconds: float) -> SlowDisk:
        slow = SlowDisk(self.server.pid, seconds)
        self._stack.callback(slow.end)
        return slow

    def is_held(self, holder: Holder) -> bool:
        """Return whether the node of the holder is there, by what the server says now."""
        # One connection for all questions; the server may have ended the last one.
        with contextlib.suppress(wire.ConnectionClosedError, OSError):
            if self._observer is not None:
                return self._observer.call(rq.exists(holder.node)).err == 0
        self._observer = self.connect()
        return self._observer.call(rq.exists(holder.node)).err == 0

    def wait_lost(self, holder: Holder) -> None:
        self.wait_until(lambda: not self.is_held(holder), "end of the holder's lock")

    def events(self) -> list[Event]:
        """Return what the server has written down so far."""
        return list(read_events(self.data / FOLDER))

    def wait_event(self, kind: str, session: int = 0) -> None:
        """Wait until the server has written something down."""
        self.wait_until(
            lambda: any((one.kind, one.session) == (kind, session) for one in self.events()),
            f"event {kind}",
        )

    def wait_until(self, is_so: object, what: str) -> None:
        assert callable(is_so)
        limit = time.monotonic() + DEADLINE_S
        while not is_so():
            assert time.monotonic() < limit, f"no {what}"
            Signal().wait(POLL_S)

    def _start(self, stack: contextlib.ExitStack) -> None:
        stack.enter_context(self.server)
        stack.enter_context(self.proxy)

    def _prepare(self) -> None:
        with wire.connect(self.others_address, timeout_ms=_LONG_MS) as client:
            path = ""
            for name in self.plan.path.split("/")[1:]:
                path += f"/{name}"
                client.call(rq.create(path))
            client.call(rq.create("/noise"))
            client.close()

    def _write(self) -> None:
        with wire.connect(self.others_address, timeout_ms=_LONG_MS) as client:
            client.calls(*(rq.set_data("/noise", b"x") for _ in range(self.plan.noise)))
            client.close()

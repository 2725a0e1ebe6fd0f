"""The clients that are measured: kazoo and ours, in turn on the same server.

Each run is a process of its own (`client_load`, and `recipe_load` for recipes), so that no client
pays for another's threads, and its CPU time is its own.
"""

import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bench.servers import BenchError, Server

KAZOO: Final = "kazoo"
# By `paddock.run`, as in the documentation; and on asyncio's own loop, without uvloop.
PADDOCK: Final = "paddock"
PLAIN: Final = "paddock, asyncio.run"
BLOCKING: Final = "paddock.sync"
# In an ordinary session: all others of ours have an exact one, where the service has them.
ORDINARY: Final = "paddock, exact=False"
CLIENTS: Final = (KAZOO, PADDOCK, PLAIN, BLOCKING, ORDINARY)

OPS: Final = ("get", "set", "create")
# How many requests are in flight at once.
WINDOWS: Final = (1, 1000)


@dataclass(frozen=True, slots=True)
class Job:
    """A job that each of several clients does on the same server."""

    server: str
    op: str

    @property
    def row(self) -> str:
        """Its name in tables, without its server."""
        raise NotImplementedError

    @property
    def clients(self) -> tuple[str, ...]:
        """The clients that can do it."""
        raise NotImplementedError

    def command(self, client: str) -> list[str]:
        """Return the module that runs it with a client, and its arguments."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Task(Job):
    """A job of the bare clients: an operation, and the number in flight."""

    window: int

    @property
    def row(self) -> str:
        in_flight = "one at a time" if self.window == 1 else f"{self.window:,} in flight"
        return f"{self.op}, {in_flight}"

    @property
    def clients(self) -> tuple[str, ...]:
        # A blocking call ends before the next one begins; and an exact session differs in writes.
        blocking = (BLOCKING,) if self.window == 1 else ()
        ordinary = (ORDINARY,) if self.server == "paddock" and self.op != "get" else ()
        return (KAZOO, PADDOCK, PLAIN, *blocking, *ordinary)

    def command(self, client: str) -> list[str]:
        return ["bench.client_load", client, self.op, str(self.window)]


@dataclass(frozen=True, slots=True)
class Run:
    """The result of one run of a client."""

    ops_per_s: float
    client_cpu_us: float
    server_cpu_us: float


# For each job and client, one run per round.
Runs = dict[Job, dict[str, list[Run]]]


@dataclass(frozen=True, slots=True)
class Need:
    """A goal of a client: a multiple of another one, or a number of operations per second."""

    client: str
    job: Job
    times: float | None = None
    # The other one.
    than: str = KAZOO
    ops_per_s: float | None = None
    # A better goal, in the unit of the need; None if the server is the limit.
    aim: float | None = None

    def got(self, runs: Runs) -> float | None:
        """Return the result, in the unit of the need; None if it was not measured."""
        value = median(runs, self.job, self.client, lambda run: run.ops_per_s)
        if self.times is None or value is None:
            return value
        other = median(runs, self.job, self.than, lambda run: run.ops_per_s)
        return value / other if other else None

    @property
    def least(self) -> float:
        least = self.ops_per_s if self.times is None else self.times
        assert least is not None, "a need says how much"
        return least


NEEDS: Final = (
    Need(PADDOCK, Task("apache", "get", 1), times=2),
    *(Need(PADDOCK, Task("apache", op, 1000), times=4) for op in OPS),
    Need(PADDOCK, Task("paddock", "get", 1000), ops_per_s=100_000, aim=250_000),
    *(
        Need(BLOCKING, Task(server, op, 1), times=1.2)
        for server in ("apache", "paddock")
        for op in OPS
    ),
    *(Need(PADDOCK, Task("paddock", op, 1), 0.95, ORDINARY, aim=1) for op in ("set", "create")),
    *(Need(PADDOCK, Task("paddock", op, 1000), 0.95, ORDINARY, aim=1) for op in ("set", "create")),
)


def tasks(servers: list[str]) -> list[Task]:
    return [Task(server, op, window) for server in servers for window in WINDOWS for op in OPS]


def median(runs: Runs, job: Job, client: str, figure: Callable[[Run], float]) -> float | None:
    found = runs.get(job, {}).get(client)
    return statistics.median(map(figure, found)) if found else None


def run(server: Server, client: str, job: Job, seconds: float, warmup_s: float) -> Run:
    """Run one client's job for that long."""
    command = job.command(client)
    command += [str(server.port), str(server.pid), str(seconds), str(warmup_s)]
    said = output_of(command, f"{client}: {job.row}", 60 + 5 * (seconds + warmup_s))
    return read_run(said)


def output_of(command: list[str], what: str, deadline_s: float) -> str:
    """Run a module of the benchmark in a process of its own; return its output."""
    try:
        result = subprocess.run(
            [sys.executable, "-m", *command], capture_output=True, text=True, timeout=deadline_s
        )
    except subprocess.TimeoutExpired:
        raise BenchError(f"{what}: it hangs") from None
    if result.returncode:
        said = result.stderr.strip().splitlines() or ["it said nothing"]
        raise BenchError(f"{what}: it failed: {said[-1]}")
    return result.stdout


def read_run(line: str) -> Run:
    """Parse the output of a client's process."""
    try:
        return Run(**json.loads(line))
    except (ValueError, TypeError):
        raise BenchError(f"a client said {line.strip()!r}") from None

"""The clients that are measured: kazoo and ours, in turn on the same server.

Each run is a process of its own (`client_load`, and `recipe_load` for the recipes that are built on
them), so that no client pays for another's threads, and the time its processor took is its own.
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
# As the documentation has it, by `paddock.run`; and on the loop that is there without uvloop.
PADDOCK: Final = "paddock"
PLAIN: Final = "paddock, asyncio.run"
BLOCKING: Final = "paddock.sync"
CLIENTS: Final = (KAZOO, PADDOCK, PLAIN, BLOCKING)

OPS: Final = ("get", "set", "create")
# How many requests are in flight at once.
WINDOWS: Final = (1, 1000)


@dataclass(frozen=True, slots=True)
class Job:
    """What each of several clients has to do, on the same server."""

    server: str
    op: str

    @property
    def row(self) -> str:
        """What tables call it, without its server."""
        raise NotImplementedError

    @property
    def clients(self) -> tuple[str, ...]:
        """Those who can do it."""
        raise NotImplementedError

    def command(self, client: str) -> list[str]:
        """Return the module that lets a client do it, and how it is told what to do."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Task(Job):
    """What the clients themselves have to do: which operation, how many in flight."""

    window: int

    @property
    def row(self) -> str:
        in_flight = "one at a time" if self.window == 1 else f"{self.window:,} in flight"
        return f"{self.op}, {in_flight}"

    @property
    def clients(self) -> tuple[str, ...]:
        # A blocking call is over before the next can be made.
        return CLIENTS if self.window == 1 else (KAZOO, PADDOCK, PLAIN)

    def command(self, client: str) -> list[str]:
        return ["bench.client_load", client, self.op, str(self.window)]


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of a client has shown."""

    ops_per_s: float
    client_cpu_us: float
    server_cpu_us: float


# For each job and client, one run a round.
Runs = dict[Job, dict[str, list[Run]]]


@dataclass(frozen=True, slots=True)
class Need:
    """What a client has to reach: so many times kazoo, or so many operations a second."""

    client: str
    job: Job
    times_kazoo: float | None = None
    ops_per_s: float | None = None
    # What would be good, in the unit of the need; None if the server is the limit.
    aim: float | None = None

    def got(self, runs: Runs) -> float | None:
        """Return what it has reached, in the unit of the need; None if it was not measured."""
        value = median(runs, self.job, self.client, lambda run: run.ops_per_s)
        if self.times_kazoo is None or value is None:
            return value
        kazoo = median(runs, self.job, KAZOO, lambda run: run.ops_per_s)
        return value / kazoo if kazoo else None

    @property
    def least(self) -> float:
        least = self.ops_per_s if self.times_kazoo is None else self.times_kazoo
        assert least is not None, "a need says how much"
        return least


NEEDS: Final = (
    Need(PADDOCK, Task("apache", "get", 1), times_kazoo=2),
    *(Need(PADDOCK, Task("apache", op, 1000), times_kazoo=4) for op in OPS),
    Need(PADDOCK, Task("paddock", "get", 1000), ops_per_s=100_000, aim=250_000),
    *(
        Need(BLOCKING, Task(server, op, 1), times_kazoo=1.2)
        for server in ("apache", "paddock")
        for op in OPS
    ),
)


def tasks(servers: list[str]) -> list[Task]:
    return [Task(server, op, window) for server in servers for window in WINDOWS for op in OPS]


def median(runs: Runs, job: Job, client: str, figure: Callable[[Run], float]) -> float | None:
    found = runs.get(job, {}).get(client)
    return statistics.median(map(figure, found)) if found else None


def run(server: Server, client: str, job: Job, seconds: float, warmup_s: float) -> Run:
    """Let one client do its job for that long."""
    command = job.command(client)
    command += [str(server.port), str(server.pid), str(seconds), str(warmup_s)]
    said = output_of(command, f"{client}: {job.row}", 60 + 5 * (seconds + warmup_s))
    return read_run(said)


def output_of(command: list[str], what: str, deadline_s: float) -> str:
    """Return what a module of the benchmark says, run in a process of its own."""
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
    """Read what a client's process has said."""
    try:
        return Run(**json.loads(line))
    except (ValueError, TypeError):
        raise BenchError(f"a client said {line.strip()!r}") from None

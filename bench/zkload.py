"""zkload, our load generator: built, run, and its one line of output read."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.servers import BenchError, Server

HERE: Final = Path(__file__).parent
PROGRAM: Final = HERE / "zkload"

_LOAD: Final = re.compile(
    r"\w+\s+c=\d+\s+w=\d+\s+(?P<ops_per_s>\d+) ops/s\s+p50\s+(?P<p50_us>\d+) us\s+"
    r"p99\s+(?P<p99_us>\d+) us\s+err (?P<errors>\d+)\((?P<last_error>-?\d+)\)\s+"
    r"srv_cpu\s+\d+%\s+(?P<cpu_us_per_op>[\d.]+|-?nan|inf) us/op"
)
_WATCH: Final = re.compile(r"watch: .*all-notified median (?P<median_ms>[\d.]+) ms")


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of the matrix: an operation, how many connections, how many in flight on each."""

    op: str
    connections: int
    window: int
    # Over how many nodes the operation is spread; 0 is one hot node.
    keys: int = 0

    @property
    def column(self) -> str:
        return f"c{self.connections} w{self.window}"

    @property
    def row(self) -> str:
        return f"{self.op}, {self.keys:,} nodes" if self.keys else self.op


@dataclass(frozen=True, slots=True)
class Load:
    """What one run of a cell has shown."""

    ops_per_s: float
    p50_us: float
    p99_us: float
    cpu_us_per_op: float


def build() -> None:
    """Compile zkload if its source is newer than the program."""
    source = HERE / "zkload.c"
    if PROGRAM.exists() and PROGRAM.stat().st_mtime >= source.stat().st_mtime:
        return
    try:
        subprocess.run(["gcc", "-O2", "-o", PROGRAM, source], check=True)
    except FileNotFoundError:
        raise BenchError("gcc is not installed (Debian: apt-get install gcc)") from None
    except subprocess.CalledProcessError:
        raise BenchError("zkload.c does not compile") from None


def load(server: Server, cell: Cell, seconds: float, warmup_s: float) -> Load:
    """Put the load of one cell on a server for that long."""
    options = ["-c", str(cell.connections), "-w", str(cell.window), "-t", str(seconds)]
    options += ["-u", str(warmup_s), "-k", str(cell.keys), "-D"]
    return read_load(_run(server, [*options, cell.op], seconds + warmup_s))


def read_load(line: str) -> Load:
    """Read zkload's line about a load; raises BenchError if a request failed."""
    match = _LOAD.match(line)
    if match is None:
        raise BenchError(f"zkload said {line.strip()!r}")
    if int(match["errors"]):
        raise BenchError(f"{match['errors']} requests failed with code {match['last_error']}")
    return Load(
        *(float(match[name]) for name in ("ops_per_s", "p50_us", "p99_us", "cpu_us_per_op"))
    )


def watch(server: Server, watchers: int, rounds: int) -> float:
    """Return the median of the milliseconds until all watchers of one node were told."""
    options = ["-c", str(watchers), "-r", str(rounds), "-w", "1"]
    line = _run(server, [*options, "watch"], rounds)
    match = _WATCH.match(line)
    if match is None:
        raise BenchError(f"zkload said {line.strip()!r}")
    return float(match["median_ms"])


def create_nodes(server: Server, count: int) -> None:
    """Fill the tree with that many nodes of 100 bytes."""
    options = ["-c", "10", "-w", "100", "-n", str(count), "create"]
    read_load(_run(server, options, count / 1000))


def _run(server: Server, options: list[str], expected_s: float) -> str:
    command = [str(PROGRAM), "-p", str(server.port), "-P", str(server.pid), *options]
    try:
        # On an exception, Ctrl-C too, `run` ends the process it has started.
        result = subprocess.run(
            command, capture_output=True, text=True, timeout=60 + 3 * expected_s
        )
    except subprocess.TimeoutExpired:
        raise BenchError(f"{server.name} hangs on {options[-1]}") from None
    if result.returncode:
        raise BenchError(f"{server.name}: {result.stderr.strip() or 'zkload failed'}")
    return result.stdout

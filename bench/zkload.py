"""zkload, our load generator: built, run, and its one line of output read."""

import contextlib
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from bench.programs import ZKLOAD
from bench.servers import BenchError, Server

_LOAD: Final = re.compile(
    r"\w+\s+c=\d+\s+w=\d+\s+(?P<ops_per_s>\d+) ops/s\s+p50\s+(?P<p50_us>\d+) us\s+"
    r"p99\s+(?P<p99_us>\d+) us\s+err (?P<errors>\d+)\((?P<last_error>-?\d+)\)\s+"
    r"srv_cpu\s+\d+%\s+(?P<cpu_us_per_op>[\d.]+|-?nan|inf) us/op"
)
_WATCH: Final = re.compile(r"watch: .*all-notified median (?P<median_ms>[\d.]+) ms")
_IDLE: Final = re.compile(
    r"idle: (?P<sessions>\d+) sessions .*before (?P<before>\d+) KiB\s+opened \d+ KiB\s+"
    r"settled (?P<settled>\d+) KiB\s+after \d+ s (?P<after>\d+) KiB"
)
_WAITS: Final = re.compile(
    r"(?P<op>get|set) p50 \d+ us p999 (?P<p999_us>\d+) us longest (?P<longest_us>\d+) us"
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of the matrix: an operation, how many connections, how many in flight on each."""

    op: str
    connections: int
    window: int
    # The number of nodes over which the operation is spread; 0 is one hot node.
    keys: int = 0

    @property
    def column(self) -> str:
        return f"c{self.connections} w{self.window}"

    @property
    def row(self) -> str:
        return f"{self.op}, {self.keys:,} nodes" if self.keys else self.op


@dataclass(frozen=True, slots=True)
class Idle:
    """The memory that idle sessions take in the server."""

    kib_each: float
    # From the end of the first pings until the end.
    growth_kib_each: float


@dataclass(frozen=True, slots=True)
class Waits:
    """How long requests of a bystander took that were sent one at a time."""

    p999_ms: float
    longest_ms: float


@dataclass(frozen=True, slots=True)
class Probe:
    """The waits of a prober, by the operation."""

    get: Waits
    set: Waits

    @property
    def longest_ms(self) -> float:
        return max(self.get.longest_ms, self.set.longest_ms)


@dataclass(frozen=True, slots=True)
class Load:
    """The result of one run of a cell."""

    ops_per_s: float
    p50_us: float
    p99_us: float
    cpu_us_per_op: float
    # Of a client with one request in flight, beside the load; None if there was none.
    bystander: Waits | None = None


def load(
    server: Server, cell: Cell, seconds: float, warmup_s: float, beside_s: float = 0.0
) -> Load:
    """Put the load of one cell on a server for that long, and then longer, beside a bystander."""
    options = ["-c", str(cell.connections), "-w", str(cell.window), "-t", str(seconds)]
    options += ["-u", str(warmup_s), "-k", str(cell.keys), "-b", str(beside_s), "-D"]
    return read_load(_run(server, [*options, cell.op], seconds + warmup_s + beside_s))


def read_load(text: str) -> Load:
    """Read zkload's lines about a load; raises BenchError if a request failed."""
    match = _understood(_LOAD, text)
    if int(match["errors"]):
        raise BenchError(f"{match['errors']} requests failed with code {match['last_error']}")
    return Load(
        float(match["ops_per_s"]),
        float(match["p50_us"]),
        float(match["p99_us"]),
        float(match["cpu_us_per_op"]),
        _read_waits(text).get("get"),
    )


def watch(server: Server, watchers: int, rounds: int) -> float:
    """Return the median of the milliseconds until all watchers of one node had the event."""
    options = ["-c", str(watchers), "-r", str(rounds), "-w", "1"]
    return float(_understood(_WATCH, _run(server, [*options, "watch"], rounds))["median_ms"])


def idle(server: Server, sessions: int, seconds: float) -> Idle:
    """Hold idle sessions for that long."""
    options = ["-c", str(sessions), "-w", "1", "-t", str(seconds)]
    return read_idle(_run(server, [*options, "idle"], seconds + sessions / 500))


def read_idle(line: str) -> Idle:
    match = _understood(_IDLE, line)
    before, settled, after = (int(match[name]) for name in ("before", "settled", "after"))
    sessions = int(match["sessions"])
    return Idle((settled - before) / sessions, (after - settled) / sessions)


def probe(server: Server, seconds: float) -> Probe:
    """Send one request after the other, a get and a set in turn."""
    return read_probe(_run(server, ["-t", str(seconds), "probe"], seconds))


def read_probe(text: str) -> Probe:
    """Read zkload's line about a prober."""
    found = _read_waits(text)
    if found.keys() != {"get", "set"}:
        raise BenchError(f"zkload said {text.strip()!r}")
    return Probe(**found)


def probe_watched(server: Server, watchers: int, seconds: float) -> Probe:
    """The same while all watchers of a node are told again and again."""
    options = ["-c", str(watchers), "-r", "1", "-w", "1", "-b", str(seconds), "watch"]
    return read_probe(_run(server, options, seconds))


def probe_expiry(server: Server, ephemerals: int, seconds: float) -> Probe:
    """The same while sessions with so many nodes expire, and for so long afterwards."""
    options = ["-n", str(ephemerals), "-t", str(seconds), "expire"]
    return read_probe(_run(server, options, seconds + ephemerals / 1000))


@contextlib.contextmanager
def loading(server: Server, cell: Cell) -> Iterator[None]:
    """Put the load of a cell on a server for as long as the scope lasts."""
    # Its nodes are created beforehand.
    load(server, cell, 0.1, 0)
    options = ["-c", str(cell.connections), "-w", str(cell.window), "-k", str(cell.keys)]
    command = [str(ZKLOAD), "-p", str(server.port), *options, "-t", "3600", cell.op]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        yield
        if process.poll() is not None:
            assert process.stderr is not None, "it was asked for"
            raise BenchError(f"{server.name}: {process.stderr.read().decode().strip()}")
    finally:
        process.terminate()
        process.communicate()


def _read_waits(text: str) -> dict[str, Waits]:
    return {
        match["op"]: Waits(int(match["p999_us"]) / 1000, int(match["longest_us"]) / 1000)
        for match in _WAITS.finditer(text)
    }


def _understood(pattern: re.Pattern[str], line: str) -> re.Match[str]:
    match = pattern.match(line)
    if match is None:
        raise BenchError(f"zkload said {line.strip()!r}")
    return match


def create_nodes(server: Server, count: int) -> None:
    """Fill the tree with that many nodes of 100 bytes."""
    options = ["-c", "10", "-w", "100", "-n", str(count), "create"]
    read_load(_run(server, options, count / 1000))


def _run(server: Server, options: list[str], expected_s: float) -> str:
    command = [str(ZKLOAD), "-p", str(server.port), "-P", str(server.pid), *options]
    try:
        # On an exception, also Ctrl-C, `run` kills the process that it has started.
        result = subprocess.run(
            command, capture_output=True, text=True, timeout=120 + 3 * expected_s
        )
    except subprocess.TimeoutExpired:
        raise BenchError(f"{server.name} hangs on {options[-1]}") from None
    if result.returncode:
        raise BenchError(f"{server.name}: {result.stderr.strip() or 'zkload failed'}")
    return result.stdout

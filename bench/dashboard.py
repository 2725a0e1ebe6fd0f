"""What looking at a server costs it: ten browsers on its dashboard, and scraping of its metrics.

It is measured in two ways:

* The processor time that the server takes for them each second, while it has little else to do. A
  server that is busy has so much less for others: 30 ms are 3 %. This hardly depends on what else
  the machine does.
* A load with and without them, in turn, on one server, so that its place in memory does not count:
  the processor time of an operation, and the operations in a second. The server has a processor of
  its own for it, and the load comes first on the others: the dashboard and the browsers would be on
  other machines, so they get what the load leaves them (`SCHED_IDLE`). If that is so little that
  they are told less than once a second, nothing was measured.

The loads: reads as fast as the server answers, while another client changes some hundred nodes a
second that the browsers show; and writes as fast as it can, where far too much happens to be
followed.
"""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from bench import zkload
from bench.browsers import VIEWS
from bench.results import Figure
from bench.servers import BenchError, Server, configure, free_port, running
from bench.stage import Stage
from bench.zkload import Cell, Load

READS: Final = Cell("get", 10, 100)
WRITES: Final = Cell("set", 10, 100)
# Changes a second that can be followed, and those that cannot.
FEW: Final = 200
MANY: Final = 2_000
# Nodes of a service that has been used for a while: their owner is of no interest.
NODES: Final = 20_000
SLICE_S: Final = 6.0
SLICES_A_ROUND: Final = 2
SCRAPE_S: Final = 1.0
SCRAPES: Final = 50
CPU_S: Final = 15.0
DEADLINE_S: Final = 120.0
TITLES: Final = {
    Figure.BROWSERS_CPU: "ten browsers: CPU of the server for them, ms each second",
    Figure.SCRAPE_CPU: "/metrics: CPU of the server for one reading of it, ms",
    Figure.BROWSERS_COST: "ten browsers: CPU of an operation with them, to without",
    Figure.BROWSERS_THROUGHPUT: "ten browsers: operations a second with them, to without",
    Figure.SCRAPE_COST: "/metrics each second: CPU of an operation with it, to without",
    Figure.SCRAPE_THROUGHPUT: "/metrics each second: operations a second with it, to without",
}


def measure(stage: Stage) -> None:
    """Measure browsers, then scraping."""
    server = stage.new_servers("dashboard")["paddock"]
    metrics = free_port()
    provider = "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider"
    configure(server.folder, server.port)
    with (server.folder / "zoo.cfg").open("a") as config:
        config.write(f"metricsProvider.className={provider}\n")
        config.write(f"metricsProvider.httpHost=127.0.0.1\nmetricsProvider.httpPort={metrics}\n")
    with running(server), _apart(server):
        zkload.create_nodes(server, NODES // 10 if stage.chosen.quick else NODES)
        _measure_browsers(stage, server)
        with _changing(server, FEW):
            found = [
                _compare(stage, server, cell, lambda: _browsers(server)) for cell in (READS, WRITES)
            ]
            _note(stage, found, Figure.BROWSERS_COST, Figure.BROWSERS_THROUGHPUT)
        _measure_scrapes(stage, server, metrics)
        found = [
            _compare(stage, server, cell, lambda: _scraping(metrics)) for cell in (READS, WRITES)
        ]
        _note(stage, found, Figure.SCRAPE_COST, Figure.SCRAPE_THROUGHPUT)


@contextlib.contextmanager
def _apart(server: Server) -> Iterator[None]:
    """Pin the server to a processor of its own, and all that is begun here to the others.

    Browsers, their dashboard and the load would be on other machines. On two processors they would
    take from the server what it does not spend on them.
    """
    processors = sorted(os.sched_getaffinity(0))
    if len(processors) > 1:
        for thread in Path(f"/proc/{server.pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), processors[:1])
        os.sched_setaffinity(0, processors[1:])
    try:
        yield
    finally:
        os.sched_setaffinity(0, processors)


def _measure_browsers(stage: Stage, server: Server) -> None:
    """Note the processor time of a server for browsers, beside what it takes without them."""
    seconds = 3.0 if stage.chosen.quick else CPU_S
    found: dict[int, list[float]] = {FEW: [], MANY: []}
    for rate, values in found.items():
        with _changing(server, rate):
            for _ in range(stage.chosen.rounds):
                alone = _cpu_ms_per_s(server, seconds)
                with _browsers(server):
                    values.append(_cpu_ms_per_s(server, seconds) - alone)
        print(f"ten browsers, {rate:,} changes/s: CPU each second {_spread(values, 1)} ms")
    worst = max(found.values(), key=statistics.median)
    stage.note(Figure.BROWSERS_CPU, TITLES[Figure.BROWSERS_CPU], {"paddock": worst})


def _measure_scrapes(stage: Stage, server: Server, port: int) -> None:
    found = []
    for _ in range(stage.chosen.rounds):
        before = _cpu_ms(server)
        for _ in range(SCRAPES):
            _scrape(port)
        found.append((_cpu_ms(server) - before) / SCRAPES)
    stage.note(Figure.SCRAPE_CPU, TITLES[Figure.SCRAPE_CPU], {"paddock": found})


def _cpu_ms_per_s(server: Server, seconds: float) -> float:
    began, before = time.monotonic(), _cpu_ms(server)
    time.sleep(seconds)
    return (_cpu_ms(server) - before) / (time.monotonic() - began)


def _cpu_ms(server: Server) -> float:
    """Return the processor time of a server, with all of its threads, so far."""
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


class _Ratios:
    """What a load is with those who look, to what it is without them."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self.cost: list[float] = []
        self.throughput: list[float] = []

    def add(self, looked_at: list[Load], alone: list[Load]) -> None:
        self.cost.append(_mean_cost(looked_at) / _mean_cost(alone))
        self.throughput.append(_mean_ops(looked_at) / _mean_ops(alone))


def _compare(
    stage: Stage, server: Server, cell: Cell, looking: Callable[[], AbstractContextManager[None]]
) -> _Ratios:
    """Put a load on a server with somebody who looks and without, in turn."""
    ratios = _Ratios(cell)
    seconds = 1.0 if stage.chosen.quick else SLICE_S
    zkload.load(server, cell, seconds, 0)
    for _ in range(stage.chosen.rounds):
        alone, looked_at = [], []
        # Each round is symmetric in time, so that a machine that grows slower counts for both.
        for _ in range(SLICES_A_ROUND):
            alone.append(_load(server, cell, seconds))
            with looking():
                looked_at += [_load(server, cell, seconds), _load(server, cell, seconds)]
            alone.append(_load(server, cell, seconds))
        ratios.add(looked_at, alone)
        print(f"{cell.row} {cell.column}: {ratios.cost[-1]:.3f}, {ratios.throughput[-1]:.3f}")
    return ratios


def _load(server: Server, cell: Cell, seconds: float) -> Load:
    run = zkload.load(server, cell, seconds, 0.2)
    if not run.ops_per_s:
        raise BenchError(f"{cell.row} {cell.column}: no answer in time")
    return run


def _mean_cost(runs: list[Load]) -> float:
    return statistics.fmean(run.cpu_us_per_op for run in runs)


def _mean_ops(runs: list[Load]) -> float:
    return statistics.fmean(run.ops_per_s for run in runs)


def _note(stage: Stage, found: list[_Ratios], cost: Figure, throughput: Figure) -> None:
    """Store the worse of the loads."""
    for one in found:
        for what, values in (("CPU", one.cost), ("operations/s", one.throughput)):
            title = TITLES[cost].partition(":")[0]
            print(f"{title}, {one.cell.op}: {what} {_spread(values, 3)}", flush=True)
    dear = max(found, key=lambda one: statistics.median(one.cost))
    slow = min(found, key=lambda one: statistics.median(one.throughput))
    stage.note(cost, TITLES[cost], {"paddock": dear.cost})
    stage.note(throughput, TITLES[throughput], {"paddock": slow.throughput})


def _spread(values: list[float], digits: int) -> str:
    median, least, most = (f"{f(values):.{digits}f}" for f in (statistics.median, min, max))
    return f"{median} ({least} to {most})"


@contextlib.contextmanager
def _changing(server: Server, rate: int) -> Iterator[None]:
    """Change nodes that browsers show, for as long as the scope lasts."""
    command = [sys.executable, "-m", "bench.changes", str(server.port), str(rate)]
    with _process(command) as process:
        _expect(process, "changing")
        yield


@contextlib.contextmanager
def _browsers(server: Server) -> Iterator[None]:
    """Have a dashboard of a server, and ten browsers that look at it."""
    dashboard = [
        *(sys.executable, "-m", "paddock", "dashboard", "--server", f"127.0.0.1:{server.port}"),
        *("--port", "0", "--no-open", "--data", str(server.folder / "data")),
    ]
    with (
        _process(dashboard) as printing,
        _process([sys.executable, "-m", "bench.browsers"], printing) as process,
    ):
        for one in (printing, process):
            _yield_to_load(one.pid)
        _expect(process, "open")
        began = time.monotonic()
        yield
        looked_s = time.monotonic() - began
        process.terminate()
        assert process.stdout is not None, "it was asked for"
        counts = json.loads(process.stdout.readline())
        print(f"ten browsers: {counts}", flush=True)
        if counts.get("ended streams"):
            raise BenchError(f"browsers were sent away: {counts}")
        if counts.get("event overview", 0) < looked_s * len(VIEWS):
            raise BenchError(f"in {looked_s:.1f} s the browsers were told too little: {counts}")


def _yield_to_load(pid: int) -> None:
    """Let a process that has just begun run when nobody else wants to. Its threads inherit it."""
    os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))


@contextlib.contextmanager
def _process(
    command: list[str], reads: subprocess.Popen[str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL if reads is None else reads.stdout,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(DEADLINE_S)
        assert process.stdout is not None, "it was asked for"
        process.stdout.close()


def _expect(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None, "it was asked for"
    if process.stdout.readline().strip() != word:
        raise BenchError(f"{process.args!r} has ended")


@contextlib.contextmanager
def _scraping(port: int) -> Iterator[None]:
    """Read the metrics again and again, as Prometheus does."""
    ends = threading.Event()

    def scrape() -> None:
        while not ends.wait(SCRAPE_S):
            _scrape(port)

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


def _scrape(port: int) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        answer.read()

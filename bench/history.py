"""History and change feeds: what those who write pay for them, and how fast feeds are.

Apache ZooKeeper has neither. What history costs is the ratio of two Paddocks, of which one keeps
none. The processor time of a write is compared, which is less noisy than the number of writes in a
second. Every start of a server has a speed of its own, so there are many, in turn, and without
random addresses (`setarch -R`). Then the lengths of their arguments decide, so these are equal.
"""

import json
import shutil
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from bench import clients, services, zkload
from bench.results import Figure
from bench.servers import BenchError, Server, running
from bench.stage import Stage
from bench.zkload import Cell

WRITES: Final = (Cell("set", 10, 100), Cell("create", 10, 100), Cell("set", 10, 1))
CLUSTER_WRITES: Final = Cell("set", 10, 100)
BACKLOG: Final = 50_000
FEEDS: Final = 1_000
CHANGES: Final = 1_000_000
LIVE_S: Final = 5.0
TASK_DEADLINE_S: Final = 600.0
SAMPLE_S: Final = 0.05
PROBE_S: Final = 3.0
# What `--history` is set to.
KEPT: Final = "24h"
NONE: Final = "off"
# Pairs of servers for each round: one says little.
PAIRS_A_ROUND: Final = 3
FEED_TITLES: Final = {
    Figure.FEED_BACKLOG: "a feed that reads what the server has in memory, changes/s",
    Figure.FEED_LIVE: "a feed while others write as fast as they can, changes/s",
    Figure.FEED_BEHIND: "how long it goes on after the last write, s",
    Figure.FEEDS_TOLD: f"{FEEDS:,} feeds of one node told, ms",
    Figure.FEEDS_MEMORY: f"memory that {FEEDS:,} feeds add, MiB",
}


def measure(stage: Stage) -> None:
    """Measure the price of history, then feeds, then one that begins a million changes ago."""
    _single(stage)
    _cluster(stage)
    _feeds(stage)
    _resume(stage)


def _single(stage: Stage) -> None:
    ratios: dict[Cell, list[float]] = {cell: [] for cell in WRITES}
    for number in range(stage.chosen.rounds * PAIRS_A_ROUND):
        both = {
            kept: _keeping(stage.new_servers(f"history-{number}-{kept}")["paddock"], kept)
            for kept in (KEPT, NONE)
        }
        with running(*both.values()):
            for server in both.values():
                zkload.load(server, WRITES[0], 1.0, 0)
            for cell in WRITES:
                ratios[cell].append(_ratio(stage, number, cell, both))
    worst = max(ratios, key=lambda cell: statistics.median(ratios[cell]))
    what = "CPU of a write with history, to without"
    for cell, found in ratios.items():
        print(f"{what}: {cell.row} {cell.column}: {_spread(found)}", flush=True)
    title = f"{what}, the worst of {len(WRITES)} cells"
    stage.note(Figure.HISTORY_COST, title, {"paddock": ratios[worst]})


def _cluster(stage: Stage) -> None:
    """The same with three servers on etcd, of which each keeps history, or none does."""
    ratios = []
    for number in range(stage.chosen.rounds * PAIRS_A_ROUND):
        cpu_us = {}
        for kept in (KEPT, NONE) if number % 2 == 0 else (NONE, KEPT):
            folder = stage.folder / f"history-cluster-{number}-{kept}"
            service = services.paddock(folder)
            for one in service.members:
                _keeping(one, kept)
            with services.running(service):
                one = service.members[0]
                zkload.load(one, CLUSTER_WRITES, 2.0, 0)
                cpu_us[kept] = _cpu_us(one, CLUSTER_WRITES, 2 * stage.chosen.seconds)
            # The next one gets the same memory for its files, and no other.
            shutil.rmtree(folder)
        ratios.append(cpu_us[KEPT] / cpu_us[NONE])
    title = "three servers: CPU of a write with history, to without"
    print(f"{title}: {_spread(ratios)}", flush=True)
    stage.note(Figure.HISTORY_CLUSTER_COST, title, {"paddock": ratios})


def _keeping(server: Server, kept: str) -> Server:
    server.command = ["setarch", "-R", *server.command, "--history", kept]
    return server


def _ratio(stage: Stage, number: int, cell: Cell, both: dict[str, Server]) -> float:
    cpu_us = {
        kept: _cpu_us(server, cell, stage.chosen.seconds)
        for kept, server in stage.alternating(both, number)
    }
    return cpu_us[KEPT] / cpu_us[NONE]


def _cpu_us(server: Server, cell: Cell, seconds: float) -> float:
    run = zkload.load(server, cell, seconds, 0.1)
    if not run.ops_per_s:
        raise BenchError(f"{cell.row} {cell.column}: no answer in time")
    return run.cpu_us_per_op


def _spread(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"


def _feeds(stage: Stage) -> None:
    seconds = 1.0 if stage.chosen.quick else LIVE_S
    figures: dict[Figure, list[float]] = {figure: [] for figure in FEED_TITLES}
    for number in range(stage.chosen.rounds):
        server = stage.new_servers(f"feeds-{number}")["paddock"]
        with running(server):
            # First, as long as no other changes are in memory.
            before = server.rss_mib
            many, most = _watched(server, "many", FEEDS)
            read = _task(server, "backlog", BACKLOG)
            live = _task(server, "live", seconds)
        print(f"feeds: {read}, {live}, {many}", flush=True)
        figures[Figure.FEED_BACKLOG].append(read["changes_per_s"])
        figures[Figure.FEED_LIVE].append(live["changes_per_s"])
        figures[Figure.FEED_BEHIND].append(live["behind_s"])
        figures[Figure.FEEDS_TOLD].append(many["told_ms"])
        figures[Figure.FEEDS_MEMORY].append(most - before)
    for figure, values in figures.items():
        stage.note(figure, FEED_TITLES[figure], {"paddock": values})


def _resume(stage: Stage) -> None:
    """Read a million changes from history, while another client asks on and on."""
    count = CHANGES // 10 if stage.chosen.quick else CHANGES
    server = stage.new_servers("resume")["paddock"]
    with running(server):
        since = _task(server, "write", count)["since"]
        alone_ms = zkload.probe(server, PROBE_S).longest_ms
        before = server.rss_mib
        with ThreadPoolExecutor(1) as threads:
            probing = threads.submit(zkload.probe, server, PROBE_S)
            found, most = _watched(server, "resume", since)
            wait_ms = probing.result().longest_ms
    if found["changes"] < count:
        stage.results.failures.append(f"resume: only {found['changes']:,.0f} of {count:,} changes")
    print(f"resume: {found}; longest wait {alone_ms:.1f} ms, {wait_ms:.1f} ms", flush=True)
    what = f"a feed over {count:,} changes of history"
    stage.note(Figure.FEED_RESUMED, f"{what}, s", {"paddock": [found["seconds"]]})
    stage.note(
        Figure.FEED_RESUMED_WAIT, "longest wait of others meanwhile, ms", {"paddock": [wait_ms]}
    )
    stage.note(Figure.FEED_RESUMED_MEMORY, "memory that it adds, MiB", {"paddock": [most - before]})


def _task(server: Server, task: str, number: float) -> dict[str, float]:
    command = ["bench.feed_load", str(server.port), task, str(number)]
    found: dict[str, float] = json.loads(clients.output_of(command, task, TASK_DEADLINE_S))
    return found


def _watched(server: Server, task: str, number: float) -> tuple[dict[str, float], float]:
    """Carry out a task; return its figures, and the most memory that the server took meanwhile."""
    most = 0.0
    with ThreadPoolExecutor(1) as threads:
        working = threads.submit(_task, server, task, number)
        while not working.done():
            most = max(most, _family_mib(server.pid))
            time.sleep(SAMPLE_S)
    return working.result(), most


def _family_mib(pid: int) -> float:
    """Return the resident memory of a process and of those that it has started."""
    total = 0
    for one in (pid, *_children(pid)):
        try:
            pages = int(Path(f"/proc/{one}/statm").read_text().split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        total += pages * 4096
    return total / (1 << 20)


def _children(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [int(child) for child in (task / "children").read_text().split()]
    return found

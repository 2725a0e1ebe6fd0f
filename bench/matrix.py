"""The servers at work: their start, every cell of the matrix, and watches.

Beside Paddock and Apache ZooKeeper there is a third one in each cell: the least that the work takes
(`limit.c`). Paddock's share of that says what is left to gain. When a cell is measured, its load
goes on for a moment, and a bystander beside it sees how long one request waits.

Every round has new servers. The address at which a program is loaded affects its speed as long as
it runs: ten starts of one build differed by a fifth.
"""

from typing import Final

from bench import programs, zkload
from bench.results import Figure
from bench.servers import Server, running
from bench.stage import Stage
from bench.zkload import Cell

OPS: Final = ("get", "exists", "kids", "mix", "set", "create", "eph")
CONNECTIONS: Final = (1, 10, 50)
WINDOWS: Final = (1, 100)
SPREAD_OPS: Final = ("get", "exists", "kids", "mix", "set")
SPREAD_KEYS: Final = 100_000
WATCHERS: Final = 1000
# For each of seven operations: more than ten seconds for each server.
WARMUP_S: Final = 1.5
# How long a bystander asks in each round of a cell. Not while the cell is measured: it would take
# a part of the processors.
BESIDE_S: Final = 0.75
BESIDE_S_QUICK: Final = 0.2


def cells(ops: list[str]) -> list[Cell]:
    """Return the cells, the one hot node first, then keys spread over many nodes."""
    return [
        Cell(op, connections, window, keys)
        for keys, chosen in ((0, OPS), (SPREAD_KEYS, SPREAD_OPS))
        for op in chosen
        if op in ops
        for connections in CONNECTIONS
        for window in WINDOWS
    ]


def measure(stage: Stage) -> None:
    """Measure the start of both, then all cells on both side by side, and watches."""
    _cold_start(stage)
    told_ms: dict[str, list[float]] = {}
    beside_s = BESIDE_S_QUICK if stage.chosen.quick else BESIDE_S
    for number in range(stage.chosen.rounds):
        print(f"round {number + 1} of {stage.chosen.rounds}", flush=True)
        both = stage.new_servers(f"matrix-{number}")
        limit = programs.limit(stage.folder / f"matrix-{number}" / "limit")
        all_three = {**both, "limit": limit}
        with running(*all_three.values()):
            warm(stage, both)
            for server in all_three.values():
                # Create the nodes for spread keys in advance.
                for op in ("get", "kids"):
                    zkload.load(server, Cell(op, 10, 100, SPREAD_KEYS), 0.1, 0)
            for cell in cells(stage.chosen.ops):
                stage.measure_round(number, cell, all_three, stage.results.loads, beside_s)
                stage.show(cell, stage.results.loads)
            for name, server in stage.alternating(both, number):
                events = 5 if stage.chosen.quick else 20
                told_ms.setdefault(name, []).append(zkload.watch(server, WATCHERS, events))
    stage.note(Figure.WATCHES, f"{WATCHERS:,} watchers told, ms", told_ms)


def warm(stage: Stage, both: dict[str, Server]) -> None:
    """Warm up a server with a JIT compiler."""
    for server in both.values():
        print(f"warming {server.name}", flush=True)
        for op in OPS:
            seconds = 0.3 if stage.chosen.quick else WARMUP_S
            zkload.load(server, Cell(op, 10, 100), seconds, 0)


def _cold_start(stage: Stage) -> None:
    took_s: dict[str, list[float]] = {}
    idle_mib: dict[str, list[float]] = {}
    for number in range(stage.chosen.rounds):
        fresh = stage.new_servers(f"start-{number}")
        for name, server in stage.alternating(fresh, number):
            with running(server) as [seconds]:
                took_s.setdefault(name, []).append(seconds)
                idle_mib.setdefault(name, []).append(server.rss_mib)
    stage.note(Figure.COLD_START, "cold start to the first read, s", took_s)
    stage.note(Figure.IDLE_MEMORY, "memory when idle, MiB", idle_mib)

"""Services of three servers, side by side: Paddock on etcd, and an Apache ensemble.

Both are warmed, and their runs alternate. Everything shares one machine, so a service pays for all
its processes: that is more than it would on machines of their own.
"""

import contextlib
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Final

from bench import outage, services, zkload
from bench.results import Figure
from bench.servers import BenchError, Server, running
from bench.services import Service
from bench.stage import Stage
from bench.zkload import Cell, Load
from paddock.log.etcd.trimming import LOG_BYTES_MIN

SETS: Final = {100: Figure.CLUSTER_SETS, 1: Figure.CLUSTER_SETS_ALONE}
SPREAD_SETS: Final = {100: Figure.CLUSTER_SPREAD_SETS, 1: Figure.CLUSTER_SPREAD_SETS_ALONE}
CONNECTIONS: Final = 10
WARMUP_S: Final = 5.0
# How long a new server may take to be there.
SNAPSHOT_DEADLINE_S: Final = 900.0
SAMPLE_S: Final = 10.0
# What a node of a hundred bytes takes in the log, at least.
NODE_BYTES: Final = 150


def measure(stage: Stage) -> None:
    """Measure both services."""
    both: dict[str, Callable[[Path], Service]] = {"paddock": services.paddock}
    if "apache" in stage.kinds:
        both["apache"] = services.apache
    figures: dict[Figure, dict[str, list[float]]] = {}
    for number in range(stage.chosen.rounds):
        print(f"round {number + 1} of {stage.chosen.rounds}", flush=True)
        made = {
            name: make(stage.folder / f"cluster-{number}-{name}") for name, make in both.items()
        }
        with contextlib.ExitStack() as stack:
            for service in made.values():
                stack.enter_context(services.running(service))
                _warm(stage, service)
            names = list(made) if number % 2 == 0 else list(made)[::-1]
            for name in names:
                for figure, value in _speeds(stage, made[name]).items():
                    figures.setdefault(figure, {}).setdefault(name, []).append(value)
        for name in names:
            for figure, value in _outages(stage, number, name, both[name]).items():
                figures.setdefault(figure, {}).setdefault(name, []).append(value)
        alone = figures[Figure.CLUSTER_GET_CPU].setdefault("apache", [])
        alone.append(_cpu_of_a_single_server(stage, number))
    for figure, found in figures.items():
        stage.note(figure, TITLES[figure], found)


TITLES: Final = {
    Figure.CLUSTER_SETS: "three servers: set c10 w100 through one, ops/s",
    Figure.CLUSTER_SETS_ALONE: "three servers: set c10 w1 through one, ops/s",
    Figure.CLUSTER_SPREAD_SETS: "three servers: set c10 w100 spread over all, ops/s",
    Figure.CLUSTER_SPREAD_SETS_ALONE: "three servers: set c10 w1 spread over all, ops/s",
    Figure.CLUSTER_GETS: "three servers: get c10 w100 on one, ops/s",
    Figure.CLUSTER_GET_CPU: "CPU of a get, µs: of three servers, and a Paddock of its own",
    Figure.CLUSTER_MEMORY: "three servers: memory of everything, MiB",
    Figure.CLUSTER_SERVER_KILLED: "kill -9 of a server: what clients of others wait longer, ms",
    Figure.CLUSTER_LEADER_KILLED: "kill -9 of etcd's leader, of Apache's leader: no service, ms",
}


def _warm(stage: Stage, service: Service) -> None:
    seconds = 1.0 if stage.chosen.quick else WARMUP_S
    print(f"warming {service.name}, three servers", flush=True)
    for op in ("set", "get"):
        _load_all(service, Cell(op, CONNECTIONS, 100), seconds, 0)


def _speeds(stage: Stage, service: Service) -> dict[Figure, float]:
    chosen = stage.chosen
    found: dict[Figure, float] = {}
    one = service.members[0]
    for window in (100, 1):
        cell = Cell("set", CONNECTIONS, window)
        found[SETS[window]] = zkload.load(one, cell, chosen.seconds, chosen.warmup_s).ops_per_s
        found[SPREAD_SETS[window]] = _load_all(service, cell, chosen.seconds, chosen.warmup_s)
    gets = zkload.load(one, Cell("get", CONNECTIONS, 100), chosen.seconds, chosen.warmup_s)
    found[Figure.CLUSTER_GETS] = gets.ops_per_s
    if service.below:
        found[Figure.CLUSTER_GET_CPU] = gets.cpu_us_per_op
    found[Figure.CLUSTER_MEMORY] = service.rss_mib
    for figure, value in found.items():
        print(f"{service.name}: {TITLES[figure]}: {value:,.2f}", flush=True)
    return found


def _load_all(service: Service, cell: Cell, seconds: float, warmup_s: float) -> float:
    """Spread the connections of a cell over all servers; return the operations a second."""
    count = len(service.members)
    parts = [
        replace(cell, connections=(cell.connections + number) // count) for number in range(count)
    ]

    def load(member: Server, part: Cell) -> Load:
        return zkload.load(member, part, seconds, warmup_s)

    with ThreadPoolExecutor(count) as threads:
        return sum(one.ops_per_s for one in threads.map(load, service.members, parts))


def _outages(
    stage: Stage, number: int, name: str, make: Callable[[Path], Service]
) -> dict[Figure, float]:
    """Kill what matters most to a new service, and see for how long it does not serve."""
    found: dict[Figure, float] = {}
    service = make(stage.folder / f"outage-{number}-{name}")
    with services.running(service):
        _warm(stage, service)
        if service.below:
            # A server other than the one that the client is on.
            before, wait = outage.longest_wait_ms(
                [service.members[0].port], lambda: services.kill(service.members[1])
            )
            found[Figure.CLUSTER_SERVER_KILLED] = max(0.0, wait - before)
            leader = service.etcd_leader()
            _, wait = outage.longest_wait_ms(
                [service.members[0].port], lambda: services.kill(service.below[leader])
            )
        else:
            leader = service.leader()
            others = [one.port for one in service.members if one is not service.members[leader]]
            _, wait = outage.longest_wait_ms(others, lambda: services.kill(service.members[leader]))
        found[Figure.CLUSTER_LEADER_KILLED] = wait
    for figure, value in found.items():
        print(f"{service.name}: {TITLES[figure]}: {value:,.0f}", flush=True)
    return found


def _cpu_of_a_single_server(stage: Stage, number: int) -> float:
    """Measure a server that was started for this round, as the others were."""
    single = stage.new_servers(f"cluster-single-{number}")["paddock"]
    cell = Cell("get", CONNECTIONS, 100)
    with running(single):
        for op in ("set", "get"):
            zkload.load(single, Cell(op, CONNECTIONS, 100), 1.0, 0)
        found = zkload.load(single, cell, stage.chosen.seconds, stage.chosen.warmup_s)
    print(f"a Paddock of its own: CPU of a get, µs: {found.cpu_us_per_op:.2f}", flush=True)
    return found.cpu_us_per_op


def measure_log(stage: Stage) -> None:
    """Fill a service, and start a server without a cache; then write for a while."""
    count = stage.chosen.nodes
    service = services.paddock(stage.folder / "catch-up")
    hosts = ",".join(f"127.0.0.1:{one.port}" for one in service.below)
    with services.running(service):
        zkload.create_nodes(service.members[0], count)
        if count * NODE_BYTES > LOG_BYTES_MIN:
            _await_snapshot(hosts, service)
        took_s = []
        for number in range(stage.chosen.rounds):
            new = services.new_paddock(stage.folder / "catch-up" / f"new-{number}", hosts)
            with running(new) as [seconds]:
                took_s.append(seconds)
        title = f"a new server of a service with {count:,} nodes, to the first read, s"
        stage.note(Figure.CLUSTER_CATCH_UP, title, {"paddock": took_s})
        largest = _write_on(stage, service)
        title = f"etcd's database, at most, in {stage.chosen.write_seconds:.0f} s of writes, MiB"
        stage.note(Figure.CLUSTER_DATABASE, title, {"paddock": [largest]})


def _await_snapshot(hosts: str, service: Service) -> None:
    """Wait until a snapshot is in etcd, as `paddock cluster status` says."""
    deadline = time.monotonic() + SNAPSHOT_DEADLINE_S
    while time.monotonic() < deadline:
        if services.snapshot_index(hosts):
            return
        time.sleep(1.0)
    raise BenchError(f"{service.name} writes no snapshot to etcd")


def _write_on(stage: Stage, service: Service) -> float:
    """Write through all servers; return the largest size of etcd's database, in MiB."""
    cell = Cell("set", CONNECTIONS, 100, 100_000)
    sizes = []
    with contextlib.ExitStack() as stack:
        for member in service.members:
            stack.enter_context(zkload.loading(member, cell))
        end = time.monotonic() + stage.chosen.write_seconds
        while time.monotonic() < end:
            time.sleep(min(SAMPLE_S, max(end - time.monotonic(), 0.1)))
            sizes.append(service.database_mib())
    print(
        f"etcd's database in MiB: first {sizes[0]:.0f}, median {statistics.median(sizes):.0f}, "
        f"last {sizes[-1]:.0f}, largest {max(sizes):.0f}",
        flush=True,
    )
    return max(sizes)

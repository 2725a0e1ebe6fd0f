"""The results of the benchmark, before they become tables."""

import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from enum import StrEnum

from bench.clients import Run, Runs
from bench.etcd import EtcdRun
from bench.recipes import Growths
from bench.zkload import Cell, Load, Probe, Waits

# For each cell and server, one load per round.
Loads = dict[Cell, dict[str, list[Load]]]
# What a bystander asks beside other things than a load.
PROBED_OPS = ("get", "set")


class Figure(StrEnum):
    """Other measurements of both servers, besides the cells.

    Less is better, except for operations a second.
    """

    COLD_START = "cold start"
    IDLE_MEMORY = "memory when idle"
    WATCHES = "watches"
    MEMORY = "memory"
    RESTART = "restart"
    KILLED_RESTART = "restart after kill -9"
    LOAD = "load"
    IDLE_SESSION = "idle session"
    IDLE_GROWTH = "growth of idle sessions"
    KEPT_REPLIES = "replies kept"
    CLUSTER_SETS = "sets of three servers"
    CLUSTER_SETS_ALONE = "sets of three servers, w1"
    CLUSTER_SPREAD_SETS = "sets over three servers"
    CLUSTER_SPREAD_SETS_ALONE = "sets over three servers, w1"
    CLUSTER_GETS = "gets of three servers"
    CLUSTER_GET_CPU = "CPU of a get of three servers"
    CLUSTER_MEMORY = "memory of three servers"
    CLUSTER_SERVER_KILLED = "a server killed"
    CLUSTER_LEADER_KILLED = "the leader killed"
    CLUSTER_CATCH_UP = "catch-up of a new server"
    CLUSTER_DATABASE = "etcd's database"
    HISTORY_COST = "history"
    HISTORY_CLUSTER_COST = "history of three servers"
    FEED_BACKLOG = "a feed from memory"
    FEED_LIVE = "a feed of what is written"
    FEED_BEHIND = "a feed behind what is written"
    FEEDS_TOLD = "feeds told"
    FEEDS_MEMORY = "memory of feeds"
    FEED_RESUMED = "a feed from history"
    FEED_RESUMED_WAIT = "longest wait during a feed from history"
    FEED_RESUMED_MEMORY = "memory of a feed from history"
    BROWSERS_CPU = "CPU for ten browsers"
    BROWSERS_COST = "ten browsers"
    BROWSERS_THROUGHPUT = "throughput with ten browsers"
    SCRAPE_CPU = "CPU of a scrape"
    SCRAPE_COST = "scraping"
    SCRAPE_THROUGHPUT = "throughput with scraping"


class Meanwhile(StrEnum):
    """What goes on while a bystander measures how long its requests wait."""

    NOTHING = "nothing"
    WRITES = "writes"
    SNAPSHOTS = "snapshots"
    PURGE = "a purge"
    EXPIRY = "an expiry"
    WATCHERS = "watchers"


@dataclass(slots=True)
class Pair:
    """A figure of both servers, as the median over the rounds; None if it is missing.

    The limit is that of `limit.c`, which does the least that the same work takes.
    """

    paddock: float | None
    apache: float | None
    limit: float | None = None

    @property
    def ratio(self) -> float | None:
        if not self.paddock or not self.apache:
            return None
        return self.paddock / self.apache

    @property
    def share(self) -> float | None:
        """Paddock's share of the limit."""
        if not self.paddock or not self.limit:
            return None
        return self.paddock / self.limit


@dataclass(frozen=True, slots=True)
class Other:
    """A figure, and its name in the tables."""

    title: str
    pair: Pair


@dataclass(frozen=True, slots=True)
class Tail:
    """The waits of a bystander on each server while something goes on, and its name in tables."""

    title: str
    probes: dict[str, list[Probe]]

    def longest_ms(self, op: str) -> Pair:
        """Return the longest waits for an operation, of all rounds."""
        return self._pair(op, _longest_ms)

    def p999_ms(self, op: str) -> Pair:
        """Return the waits that 99.9 % do not exceed, in the median round."""
        return self._pair(op, _p999_ms)

    def _pair(self, op: str, figure: Callable[[list[Waits]], float]) -> Pair:
        found = {name: [getattr(one, op) for one in done] for name, done in self.probes.items()}
        return _pair({name: figure(waits) for name, waits in found.items() if waits})


@dataclass(slots=True)
class Results:
    """All results."""

    about: dict[str, str]
    loads: Loads = field(default_factory=dict)
    others: dict[Figure, Other] = field(default_factory=dict)
    # The waits of a bystander.
    tails: dict[Meanwhile, Tail] = field(default_factory=dict)
    # The cost of an operation by the number of nodes, and of connections.
    by_nodes: Loads = field(default_factory=dict)
    by_connections: Loads = field(default_factory=dict)
    # The runs of each client for each task.
    clients: Runs = field(default_factory=dict)
    # The runs of each client for each recipe.
    recipes: Runs = field(default_factory=dict)
    # The cost of a lock hand-over by the number of waiters.
    growths: Growths = field(default_factory=dict)
    # Another service with another protocol, for information.
    etcd: list[EtcdRun] = field(default_factory=list)
    # Failed measurements, with the reason.
    failures: list[str] = field(default_factory=list)

    def pair(self, cell: Cell, figure: Callable[[Load], float]) -> Pair:
        return pair_of(self.loads, cell, figure)

    def longest_wait_ms(self, cell: Cell) -> Pair:
        """Return the longest waits of a bystander beside a cell, of all rounds."""
        return self._waits(cell, _longest_ms)

    def p999_wait_ms(self, cell: Cell) -> Pair:
        """Return the waits of a bystander that 99.9 % do not exceed, in the median round."""
        return self._waits(cell, _p999_ms)

    def _waits(self, cell: Cell, figure: Callable[[list[Waits]], float]) -> Pair:
        found = {
            name: [run.bystander for run in runs if run.bystander is not None]
            for name, runs in self.loads.get(cell, {}).items()
        }
        return _pair({name: figure(waits) for name, waits in found.items() if waits})

    def as_json(self) -> dict[str, object]:
        """Return all results as plain data, with each round of each cell."""
        return {
            "about": self.about,
            "loads": _loads_as_json(self.loads),
            "others": {
                name: {
                    "title": other.title,
                    "paddock": other.pair.paddock,
                    "apache": other.pair.apache,
                    "ratio": other.pair.ratio,
                }
                for name, other in self.others.items()
            },
            "tails": {
                name: {
                    "title": tail.title,
                    **{
                        server: [asdict(one) for one in done]
                        for server, done in tail.probes.items()
                    },
                }
                for name, tail in self.tails.items()
            },
            "by_nodes": _loads_as_json(self.by_nodes),
            "by_connections": _loads_as_json(self.by_connections),
            "clients": _runs_as_json(self.clients),
            "recipes": _runs_as_json(self.recipes),
            "lock_growth": [
                {**asdict(line), **asdict(growth)} for line, growth in self.growths.items()
            ],
            "etcd": [asdict(run) for run in self.etcd],
            "failures": self.failures,
        }


def ops_per_s(run: Load | Run) -> float:
    return run.ops_per_s


def p50_us(run: Load) -> float:
    return run.p50_us


def p99_us(run: Load) -> float:
    return run.p99_us


def cpu_us_per_op(run: Load) -> float:
    return run.cpu_us_per_op


def pair_of(loads: Loads, cell: Cell, figure: Callable[[Load], float]) -> Pair:
    runs = loads.get(cell, {})
    return _pair(
        {name: statistics.median(map(figure, found)) for name, found in runs.items() if found}
    )


def _longest_ms(waits: list[Waits]) -> float:
    return max(one.longest_ms for one in waits)


def _p999_ms(waits: list[Waits]) -> float:
    return statistics.median(one.p999_ms for one in waits)


def _pair(figures: dict[str, float]) -> Pair:
    return Pair(*(figures.get(name) for name in ("paddock", "apache", "limit")))


def _loads_as_json(loads: Loads) -> list[dict[str, object]]:
    return [
        {
            **asdict(cell),
            "ratio": pair_of(loads, cell, ops_per_s).ratio,
            "share": pair_of(loads, cell, ops_per_s).share,
            "p99_ratio": pair_of(loads, cell, p99_us).ratio,
            **{name: [asdict(run) for run in runs] for name, runs in by_server.items()},
        }
        for cell, by_server in loads.items()
    ]


def _runs_as_json(runs: Runs) -> list[dict[str, object]]:
    return [
        {**asdict(job), **{name: [asdict(run) for run in found] for name, found in done.items()}}
        for job, done in runs.items()
    ]

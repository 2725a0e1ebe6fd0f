"""The goals, least and best, and the results of a run.

Ratios are to Apache ZooKeeper in the same run, or to kazoo; shares are of the limit. If a goal
covers several cells, the worst of them decides, and is named.
"""

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from bench import clients, recipes
from bench.clients import Need, Runs
from bench.matrix import CONNECTIONS, SPREAD_KEYS
from bench.results import (
    PROBED_OPS,
    Figure,
    Loads,
    Meanwhile,
    Results,
    cpu_us_per_op,
    ops_per_s,
    p99_us,
    pair_of,
)
from bench.zkload import Cell


@dataclass(frozen=True, slots=True)
class Got:
    """A result, and its cell if it is the worst of several."""

    value: float
    where: str = ""


@dataclass(frozen=True, slots=True)
class Goal:
    """One goal."""

    what: str
    must: float
    aim: float | None
    unit: str
    got: Callable[[Results], Got | None]
    # More is better, unless it is a limit.
    is_limit: bool = False
    # The cells of the matrix that each have to reach it.
    cells: tuple[Cell, ...] = ()

    def verdict(self, got: Got) -> str:
        if self.aim is not None and self._reaches(got.value, self.aim):
            return "reaches the aim"
        return "holds" if self._reaches(got.value, self.must) else "falls short"

    def margin(self, got: Got) -> float:
        """Return the ratio of the result to the least: 1 is just enough, in any unit."""
        least = 1e-3
        if self.is_limit:
            return self.must / max(got.value, least)
        return got.value / self.must

    def _reaches(self, value: float, wanted: float) -> bool:
        return value <= wanted if self.is_limit else value >= wanted


def _cells(ops: Iterable[str], window: int, keys: int = 0) -> list[Cell]:
    return [Cell(op, connections, window, keys) for op in ops for connections in CONNECTIONS]


def _ratios(results: Results, cells: Iterable[Cell]) -> list[Got]:
    pairs = ((results.pair(cell, ops_per_s).ratio, cell) for cell in cells)
    return [Got(ratio, f"{cell.row} {cell.column}") for ratio, cell in pairs if ratio is not None]


def _by_value(got: Got) -> float:
    return got.value


def _each(what: str, must: float, aim: float | None, cells: list[Cell]) -> Goal:
    """Return a goal that each of several cells has to reach."""

    def got(results: Results) -> Got | None:
        return min(_ratios(results, cells), key=_by_value, default=None)

    return Goal(what, must, aim, "×", got, cells=tuple(cells))


def _share(what: str, must: float, aim: float, cell: Cell) -> Goal:
    """Return the goal of a share of the limit."""

    def got(results: Results) -> Got | None:
        share = results.pair(cell, ops_per_s).share
        return None if share is None else Got(share)

    return Goal(f"{what}, share of the limit", must, aim, "", got)


def _median(cells: list[Cell]) -> Callable[[Results], Got | None]:
    def got(results: Results) -> Got | None:
        found = _ratios(results, cells)
        return Got(statistics.median(map(_by_value, found))) if found else None

    return got


def _limit(
    what: str, must: float, aim: float | None, unit: str, got: Callable[[Results], Got | None]
) -> Goal:
    return Goal(what, must, aim, unit, got, is_limit=True)


def _tails(results: Results) -> list[Got]:
    pairs = ((results.pair(cell, p99_us).ratio, cell) for cell in results.loads)
    return [Got(ratio, f"{cell.row} {cell.column}") for ratio, cell in pairs if ratio is not None]


def _median_tail(results: Results) -> Got | None:
    found = _tails(results)
    return Got(statistics.median(map(_by_value, found))) if found else None


def _worst_tail(results: Results) -> Got | None:
    return max(_tails(results), key=_by_value, default=None)


def _median_wait(results: Results) -> Got | None:
    found = [results.longest_wait_ms(cell).ratio for cell in results.loads]
    ratios = [ratio for ratio in found if ratio is not None]
    return Got(statistics.median(ratios)) if ratios else None


def _worst_wait(results: Results) -> Got | None:
    """Return how many milliseconds a bystander waits longer than on Apache ZooKeeper, at most."""
    found = []
    for cell in results.loads:
        pair = results.longest_wait_ms(cell)
        if pair.paddock is not None and pair.apache is not None:
            found.append(Got(max(pair.paddock - pair.apache, 0.0), f"{cell.row} {cell.column}"))
    return max(found, key=_by_value, default=None)


def _wait_while(what: str, meanwhile: Meanwhile) -> Goal:
    """Return the goal that no request waits longer than on Apache ZooKeeper while it goes on."""

    def got(results: Results) -> Got | None:
        tail = results.tails.get(meanwhile)
        if tail is None:
            return None
        found = []
        for op in PROBED_OPS:
            pair = tail.longest_ms(op)
            if pair.paddock is not None and pair.apache is not None:
                found.append(Got(pair.paddock / max(pair.apache, _UNNOTICED_MS), op))
        return max(found, key=_by_value, default=None)

    return _limit(f"longest wait {what}", 1, 0.5, "×", got)


def _added_by_snapshots(results: Results) -> Got | None:
    both = (Meanwhile.WRITES, Meanwhile.SNAPSHOTS)
    if not results.tails.keys() >= {*both}:
        return None
    without, during = (
        max(results.tails[one].longest_ms(op).paddock or 0.0 for op in PROBED_OPS) for one in both
    )
    return Got(max(during - without, 0.0))


def _ratio_of(name: Figure, *, is_speed: bool = False) -> Callable[[Results], Got | None]:
    """Return Paddock's ratio to Apache ZooKeeper; for a speed, how many times it is faster."""

    def got(results: Results) -> Got | None:
        other = results.others.get(name)
        if other is None or other.pair.ratio is None:
            return None
        return Got(1 / other.pair.ratio if is_speed else other.pair.ratio)

    return got


def _of_paddock(name: Figure) -> Callable[[Results], Got | None]:
    def got(results: Results) -> Got | None:
        other = results.others.get(name)
        return None if other is None or other.pair.paddock is None else Got(other.pair.paddock)

    return got


def _grown(which: str, by: str) -> Callable[[Results], Got | None]:
    """Return the ratio of the costs at the largest and the smallest size, of the worst op."""

    def got(results: Results) -> Got | None:
        loads: Loads = getattr(results, which)
        found = []
        for op in dict.fromkeys(cell.op for cell in loads):
            cells = sorted((cell for cell in loads if cell.op == op), key=attrgetter(by))
            ends = cells[0], cells[-1]
            small, large = (pair_of(loads, cell, cpu_us_per_op).paddock for cell in ends)
            if small and large and len(cells) > 1:
                first, last = (f"{getattr(cell, by):,}" for cell in ends)
                found.append(Got(large / small, f"{op}, {first} to {last}"))
        return max(found, key=_by_value, default=None)

    return got


def _of_need(need: Need, runs: Callable[[Results], Runs]) -> Goal:
    def got(results: Results) -> Got | None:
        value = need.got(runs(results))
        return None if value is None else Got(value)

    unit = "/s" if need.times is None else f"× {need.than}"
    on = {"paddock": "Paddock", "apache": "Apache ZooKeeper"}[need.job.server]
    return Goal(f"{need.client}: {need.job.row}, on {on}", need.least, need.aim, unit, got)


def _times(name: Figure) -> Callable[[Results], Got | None]:
    """Return how many times more operations a second Paddock does."""
    return _ratio_of(name)


_READS: Final = ("get", "exists")
_SPREAD: Final = f"over {SPREAD_KEYS:,} nodes"
_SINGLE_WRITES: Final = _cells(["set", "create"], 1)
# A cost that grows only by cache misses about doubles over a factor of a thousand.
_FLAT: Final = 2.0
# The scheduler of a busy machine alone makes waits of some milliseconds.
_UNNOTICED_MS: Final = 10.0

GOALS: Final = (
    _each("get, exists, w100", 15, 25, _cells(_READS, 100)),
    _each("getChildren of 100, w100", 12, 20, _cells(["kids"], 100)),
    _each("mix 90/10, w100", 8, 15, _cells(["mix"], 100)),
    _each(f"get, exists, w100, {_SPREAD}", 7.5, 25, _cells(_READS, 100, SPREAD_KEYS)),
    _each(f"getChildren of 100, w100, {_SPREAD}", 6, 20, _cells(["kids"], 100, SPREAD_KEYS)),
    _each(f"mix 90/10, w100, {_SPREAD}", 4, 15, _cells(["mix"], 100, SPREAD_KEYS)),
    _each("get, w1, c1", 2.2, 3, [Cell("get", 1, 1)]),
    _each("get, w1, c10", 1.7, 2.5, [Cell("get", 10, 1)]),
    _each("get, w1, c50", 1.3, 2, [Cell("get", 50, 1)]),
    _share("get c10 w100", 0.5, 0.7, Cell("get", 10, 100)),
    *(_share(f"get c{count} w1", 0.9, 0.95, Cell("get", count, 1)) for count in CONNECTIONS),
    _each("set, durable, w100", 5, 10, _cells(["set"], 100)),
    _each("create, durable, w100", 2, 4, _cells(["create"], 100)),
    _each("ephemeral create and delete, w100", 2.5, 8, _cells(["eph"], 100)),
    _each("mix c10 w100", 16, 20, [Cell("mix", 10, 100)]),
    _each("set c10 w100", 8, 10, [Cell("set", 10, 100)]),
    _each("create c10 w100", 3.5, 5, [Cell("create", 10, 100)]),
    _each("ephemeral create and delete c10 w100", 4, 5, [Cell("eph", 10, 100)]),
    _each("set c10 w1", 1.5, 2, [Cell("set", 10, 1)]),
    Goal("set and create, durable, w1, median cell", 1.2, 2, "×", _median(_SINGLE_WRITES)),
    _each("set and create, durable, w1, worst cell", 0.9, None, _SINGLE_WRITES),
    _limit("p99 of the median cell", 1, None, "×", _median_tail),
    _limit("p99 of the worst cell", 2, None, "×", _worst_tail),
    _limit("longest wait of a bystander, median cell", 1, 0.5, "×", _median_wait),
    _limit("longest wait of a bystander, beyond Apache's", 50, 10, " ms", _worst_wait),
    Goal("1,000 watchers told", 1, 1.5, "×", _ratio_of(Figure.WATCHES, is_speed=True)),
    _limit("cold start, of the time", 0.5, 0.25, "×", _ratio_of(Figure.COLD_START)),
    _limit("restart with many nodes, of the time", 0.7, 0.33, "×", _ratio_of(Figure.RESTART)),
    _limit(
        "restart after kill -9 with many nodes, of the time",
        0.5,
        0.33,
        "×",
        _ratio_of(Figure.KILLED_RESTART),
    ),
    _limit("load of many nodes from a snapshot", 2, 1, " s", _of_paddock(Figure.LOAD)),
    _limit("memory with many nodes", 0.55, 0.4, "×", _ratio_of(Figure.MEMORY)),
    _limit("an idle session", 20, 8, " KiB", _of_paddock(Figure.IDLE_SESSION)),
    # One MiB in total is within the noise of the allocator.
    _limit("growth of an idle session", 0.1, None, " KiB", _of_paddock(Figure.IDLE_GROWTH)),
    _limit("replies kept, in full windows", 350, None, " MiB", _of_paddock(Figure.KEPT_REPLIES)),
    _limit("pause that a snapshot adds", 50, None, " ms", _added_by_snapshots),
    _wait_while("while snapshots are written", Meanwhile.SNAPSHOTS),
    _wait_while("while old files are purged", Meanwhile.PURGE),
    _wait_while("while large sessions expire", Meanwhile.EXPIRY),
    _wait_while("while 1,000 watchers are told", Meanwhile.WATCHERS),
    _limit("CPU of an operation, the more nodes", _FLAT, 1, "×", _grown("by_nodes", "keys")),
    _limit(
        "CPU of an operation, the more connections",
        _FLAT,
        1,
        "×",
        _grown("by_connections", "connections"),
    ),
    Goal("three servers: durable set c10 w100", 4, 6, "×", _times(Figure.CLUSTER_SETS)),
    Goal("three servers: durable set c10 w1", 1.3, 2, "×", _times(Figure.CLUSTER_SETS_ALONE)),
    Goal("three servers: get c10 w100 on one", 15, 25, "×", _times(Figure.CLUSTER_GETS)),
    _limit(
        "three servers: CPU of a get, to a single server's",
        1.1,
        1,
        "×",
        _ratio_of(Figure.CLUSTER_GET_CPU),
    ),
    _limit(
        "a server killed: longer waits on others",
        50,
        10,
        " ms",
        _of_paddock(Figure.CLUSTER_SERVER_KILLED),
    ),
    _limit(
        "etcd's leader killed: no service, to Apache's leader's",
        1,
        0.5,
        "×",
        _ratio_of(Figure.CLUSTER_LEADER_KILLED),
    ),
    _limit("catch-up of a new server", 20, 8, " s", _of_paddock(Figure.CLUSTER_CATCH_UP)),
    _limit("etcd's database", 8192, 1024, " MiB", _of_paddock(Figure.CLUSTER_DATABASE)),
    _limit("a write with history, of the CPU", 1.03, 1, "×", _of_paddock(Figure.HISTORY_COST)),
    _limit(
        "three servers: a write with history, of the CPU",
        1.03,
        1,
        "×",
        _of_paddock(Figure.HISTORY_CLUSTER_COST),
    ),
    _limit("ten browsers look: CPU each second", 30, 10, " ms", _of_paddock(Figure.BROWSERS_CPU)),
    _limit(
        "ten browsers look: an operation, of the CPU",
        1.03,
        1,
        "×",
        _of_paddock(Figure.BROWSERS_COST),
    ),
    Goal("ten browsers look: operations/s", 0.97, 1, "×", _of_paddock(Figure.BROWSERS_THROUGHPUT)),
    _limit("/metrics: CPU of reading it", 10, 5, " ms", _of_paddock(Figure.SCRAPE_CPU)),
    _limit(
        "/metrics each second: an operation, of the CPU",
        1.01,
        1,
        "×",
        _of_paddock(Figure.SCRAPE_COST),
    ),
    Goal("/metrics each second: operations/s", 0.99, 1, "×", _of_paddock(Figure.SCRAPE_THROUGHPUT)),
    Goal("a feed from memory", 100_000, None, "/s", _of_paddock(Figure.FEED_BACKLOG)),
    *(_of_need(need, lambda results: results.clients) for need in clients.NEEDS),
    *(_of_need(need, lambda results: results.recipes) for need in recipes.NEEDS),
)


def reached(results: Results) -> list[tuple[Goal, Got]]:
    """Return the goals that were measured, with their results."""
    found = ((goal, goal.got(results)) for goal in GOALS)
    return [(goal, got) for goal, got in found if got is not None]


def must_of(cell: Cell) -> float | None:
    """Return the least that a cell of the matrix must reach; None if it has no goal."""
    return _MUSTS.get(cell)


_MUSTS: Final = {cell: goal.must for goal in GOALS for cell in goal.cells}

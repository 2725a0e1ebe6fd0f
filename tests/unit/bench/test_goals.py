"""What the benchmark holds against what must be reached, and its tables and picture of it."""

from pathlib import Path

import pytest

from bench import etcd, goals, growth, plot
from bench.etcd import EtcdRun
from bench.goals import Goal, Got
from bench.matrix import SPREAD_KEYS, cells
from bench.report import as_markdown
from bench.results import Figure, Meanwhile, Other, Pair, Results, Tail
from bench.run import options
from bench.zkload import Cell, Load, Probe, Waits


def _ratio(ratio: float, p99_ratio: float = 1.0) -> dict[str, list[Load]]:
    """Return the loads of a cell with that ratio."""
    return {
        "paddock": [Load(1000 * ratio, 1, 100 * p99_ratio, 1)],
        "apache": [Load(1000, 1, 100, 1)],
    }


def _goal(what: str) -> Goal:
    [found] = [goal for goal in goals.GOALS if goal.what == what]
    return found


def _got(what: str, results: Results) -> Got | None:
    return _goal(what).got(results)


def _figure(name: Figure, paddock: float, apache: float | None) -> Results:
    return Results(about={}, others={name: Other("it", Pair(paddock, apache))})


def _tail(paddock: tuple[float, float], apache: tuple[float, float] | None) -> Tail:
    """Return the longest waits of a get and a set."""
    both = {"paddock": paddock, "apache": apache}
    return Tail(
        "it",
        {
            name: [] if ms is None else [Probe(Waits(0, ms[0]), Waits(0, ms[1]))]
            for name, ms in both.items()
        },
    )


def _snapshots(without_ms: float, during_ms: float) -> Results:
    tails = {
        Meanwhile.WRITES: _tail((1, without_ms), (400, 400)),
        Meanwhile.SNAPSHOTS: _tail((during_ms, 1), (400, 400)),
    }
    return Results(about={}, tails=tails)


def test_a_wait_is_held_against_that_for_the_same_operation_unless_nobody_notices() -> None:
    what = "longest wait while large sessions expire"

    def got(*waits: tuple[float, float] | None) -> Got | None:
        [paddock, apache] = waits
        assert paddock is not None
        return _got(what, Results(about={}, tails={Meanwhile.EXPIRY: _tail(paddock, apache)}))

    assert got((30, 30), (15, 60)) == Got(2, "get")
    assert got((30, 30), (60, 15)) == Got(2, "set")
    assert got((5, 4), (1, 1)) == Got(0.5, "get")
    assert got((30, 30), None) is None
    assert _got(what, _snapshots(1, 1)) is None


def test_the_bystander_of_no_cell_may_wait_much_longer_than_on_apache() -> None:
    def runs(paddock_ms: float, apache_ms: float) -> dict[str, list[Load]]:
        both = {"paddock": paddock_ms, "apache": apache_ms}
        return {name: [Load(1, 1, 1, 1, Waits(0, ms))] for name, ms in both.items()}

    loads = {
        Cell("get", 1, 1): runs(1, 10),
        Cell("set", 1, 1): runs(65, 5),
        Cell("create", 1, 1): runs(250, 500),
        Cell("eph", 1, 1): _ratio(3),
    }
    results = Results(about={}, loads=loads)
    assert _got("longest wait of a bystander, median cell", results) == Got(0.5)
    got = _got("longest wait of a bystander, beyond Apache's", results)
    assert got == Got(60, "set c1 w1")
    assert _goal("longest wait of a bystander, beyond Apache's").verdict(got) == "falls short"
    del loads[Cell("set", 1, 1)]
    assert _got("longest wait of a bystander, beyond Apache's", results) == Got(0, "get c1 w1")


def test_the_worst_of_the_cells_decides_and_is_named() -> None:
    loads = {Cell("get", 1, 100): _ratio(30), Cell("exists", 50, 100): _ratio(14)}
    got = _got("get, exists, w100", Results(about={}, loads=loads))
    assert got == Got(14, "exists c50 w100")
    assert _goal("get, exists, w100").verdict(got) == "falls short"


def test_a_share_of_the_limit_is_a_goal_of_its_own() -> None:
    loads = {Cell("get", 10, 100): {**_ratio(40), "limit": [Load(100_000, 1, 1, 1)]}}
    results = Results(about={}, loads=loads)
    got = _got("get c10 w100, share of the limit", results)
    assert got == Got(0.4)
    assert _goal("get c10 w100, share of the limit").verdict(got) == "falls short"
    assert _got("get c10 w1, share of the limit", results) is None
    assert "| get | 40.0k, 1.0k, 100.0k |" in as_markdown(results)


def test_hot_and_spread_cells_have_goals_of_their_own() -> None:
    loads = {Cell("get", 1, 100, SPREAD_KEYS): _ratio(8)}
    results = Results(about={}, loads=loads)
    assert _got("get, exists, w100", results) is None
    got = _got("get, exists, w100, over 100,000 nodes", results)
    assert got == Got(8, "get, 100,000 nodes c1 w100")


def test_single_writes_have_a_median_and_a_worst_cell() -> None:
    ratios = {("set", 1): 1.0, ("set", 10): 2.0, ("create", 1): 3.0, ("create", 50): 0.8}
    loads = {Cell(op, count, 1): _ratio(ratio) for (op, count), ratio in ratios.items()}
    results = Results(about={}, loads=loads)
    assert _got("set and create, durable, w1, median cell", results) == Got(1.5)
    worst = _got("set and create, durable, w1, worst cell", results)
    assert worst == Got(0.8, "create c50 w1")


def test_tails_are_those_of_all_cells() -> None:
    loads = {
        Cell("get", 1, 1): _ratio(9, p99_ratio=0.5),
        Cell("set", 1, 1): _ratio(9, p99_ratio=0.75),
        Cell("eph", 1, 1): _ratio(9, p99_ratio=2.5),
    }
    results = Results(about={}, loads=loads)
    assert _got("p99 of the median cell", results) == Got(0.75)
    assert _got("p99 of the worst cell", results) == Got(2.5, "eph c1 w1")


@pytest.mark.parametrize(
    ("what", "results", "verdict"),
    [
        ("cold start, of the time", _figure(Figure.COLD_START, 0.6, 1), "falls short"),
        ("cold start, of the time", _figure(Figure.COLD_START, 0.4, 1), "holds"),
        ("cold start, of the time", _figure(Figure.COLD_START, 0.2, 1), "reaches the aim"),
        ("1,000 watchers told", _figure(Figure.WATCHES, 20, 18), "falls short"),
        ("1,000 watchers told", _figure(Figure.WATCHES, 10, 18), "reaches the aim"),
        ("an idle session", _figure(Figure.IDLE_SESSION, 21, None), "falls short"),
        ("growth of an idle session", _figure(Figure.IDLE_GROWTH, 0, 0), "holds"),
        ("pause that a snapshot adds", _snapshots(60, 110), "holds"),
        ("pause that a snapshot adds", _snapshots(110, 60), "holds"),
        ("pause that a snapshot adds", _snapshots(59, 110), "falls short"),
        ("longest wait while snapshots are written", _snapshots(1, 200), "reaches the aim"),
        ("longest wait while snapshots are written", _snapshots(1, 400), "holds"),
        ("longest wait while snapshots are written", _snapshots(1, 401), "falls short"),
    ],
)
def test_a_limit_is_kept_from_below_and_a_speed_from_above(
    what: str, results: Results, verdict: str
) -> None:
    got = _got(what, results)
    assert got is not None
    assert _goal(what).verdict(got) == verdict


def test_growth_is_the_cost_at_the_largest_size_over_that_at_the_smallest() -> None:
    def costs(op: str, keys: int, cpu_us: float) -> tuple[Cell, dict[str, list[Load]]]:
        return Cell(op, 10, 100, keys), {"paddock": [Load(1, 1, 1, cpu_us)]}

    loads = dict([costs("get", 1000, 2), costs("get", 10**6, 3), costs("set", 1000, 4)])
    loads.update([costs("set", 10**5, 99), costs("set", 10**6, 5)])
    got = _got("CPU of an operation, the more nodes", Results(about={}, by_nodes=loads))
    assert got == Got(1.5, "get, 1,000 to 1,000,000")
    alone = Results(about={}, by_nodes=dict([costs("get", 1000, 2)]))
    assert _got("CPU of an operation, the more nodes", alone) is None


def test_a_margin_of_one_is_just_enough_whatever_the_unit() -> None:
    speed, limit = _goal("mix 90/10, w100"), _goal("an idle session")
    assert speed.margin(Got(speed.must)) == limit.margin(Got(limit.must)) == 1
    assert speed.margin(Got(2 * speed.must)) == limit.margin(Got(limit.must / 2)) == 2
    assert _goal("growth of an idle session").margin(Got(-0.5)) > 1


def test_every_cell_with_a_goal_is_measured() -> None:
    measured = cells(options([]).ops)
    needed = {cell for goal in goals.GOALS for cell in goal.cells}
    assert needed < {*measured}
    assert goals.must_of(Cell("get", 10, 1)) == 1.7
    assert goals.must_of(Cell("kids", 50, 100, SPREAD_KEYS)) == 6
    assert goals.must_of(Cell("eph", 1, 1)) is None


def test_a_run_of_a_part_names_what_it_has_not_measured() -> None:
    page = as_markdown(_figure(Figure.COLD_START, 0.2, 1))
    assert "| cold start, of the time | ≤ 0.50× | ≤ 0.25× | 0.20× |  | reaches the aim |" in page
    assert "Not measured in this run: get, exists, w100; " in page
    assert "cold start" not in page.partition("Not measured in this run:")[2].partition("\n")[0]


def test_growth_stops_where_there_are_no_more_nodes_or_files() -> None:
    assert {cell.keys for cell in growth.by_nodes(10_000)} == {1_000, 10_000}
    assert {cell.connections for cell in growth.by_connections(5_000)} == {10, 100, 1_000}
    assert {cell.window for cell in growth.by_connections(5_000)} == {1}


def test_growth_has_a_table_with_a_column_for_each_size() -> None:
    def runs(cpu_us: float) -> dict[str, list[Load]]:
        return {"paddock": [Load(2000, 1, 1, cpu_us)], "apache": []}

    loads = {Cell("get", 10, 1): runs(12), Cell("get", 100, 1): runs(13)}
    page = as_markdown(Results(about={}, by_connections=loads))
    assert "|  | 10 connections | 100 connections |" in page
    assert "| get, w1: Paddock | 12 (2.0k) | 13 (2.0k) |" in page
    assert "| get, w1: Apache ZooKeeper | – (–) | – (–) |" in page


def test_etcd_stands_beside_what_ours_did_with_as_many_connections() -> None:
    runs = [EtcdRun("put", 10, rate, 900, 2000) for rate in (500, 1500, 1000)]
    loads = {Cell("set", 10, 1): _ratio(4)}
    page = as_markdown(Results(about={}, loads=loads, etcd=[etcd.median(runs)]))
    assert "| put, 10 connections | 1.0k | 900 | 2,000 | 4.0k | 1.0k |" in page


def test_etcd_is_asked_by_http() -> None:
    head, _, body = etcd.request("range").partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v3/kv/range HTTP/1.1\r\n")
    assert b"Content-Length: %d" % len(body) in head


def test_nothing_is_drawn_of_nothing(tmp_path: Path) -> None:
    assert not plot.draw(Results(about={}), tmp_path / "it.png")
    assert not (tmp_path / "it.png").exists()


def test_a_picture_is_drawn_of_cells_and_goals(tmp_path: Path) -> None:
    results = _figure(Figure.COLD_START, 0.2, 1)
    results.loads = {Cell("get", 1, 1): _ratio(3), Cell("get", 10, 100): _ratio(20)}
    assert plot.draw(results, tmp_path / "it.png")
    assert (tmp_path / "it.png").read_bytes().startswith(b"\x89PNG")

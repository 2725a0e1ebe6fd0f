"""The benchmark's reading of its load generators, and the tables it makes of it."""

import itertools
import os
from pathlib import Path

import pytest

from bench import recipes
from bench.client_load import Meter
from bench.clients import (
    BLOCKING,
    CLIENTS,
    KAZOO,
    NEEDS,
    ORDINARY,
    PADDOCK,
    Need,
    Run,
    Task,
    read_run,
    tasks,
)
from bench.matrix import SPREAD_KEYS, cells
from bench.recipes import Growth, Line, RecipeTask
from bench.report import as_markdown
from bench.results import Meanwhile, Pair, Results, Tail
from bench.run import PARTS, options
from bench.servers import BenchError, file_system_of
from bench.zkload import Cell, Idle, Load, Probe, Waits, read_idle, read_load, read_probe

LINE = (
    "get     c=10  w=100      24311 ops/s  p50    42992 us  p99    59769 us  err 0(0)  "
    "srv_cpu   95%   39.08 us/op  rss 159 MiB  cli_cpu  14%\n"
)


def test_a_line_of_zkload_is_read() -> None:
    assert read_load(LINE) == Load(24311, 42992, 59769, 39.08)


def test_a_run_with_failed_requests_does_not_count() -> None:
    with pytest.raises(BenchError, match="7 requests failed with code -101"):
        read_load(LINE.replace("err 0(0)", "err 7(-101)"))


def test_a_line_that_is_not_understood_is_shown() -> None:
    with pytest.raises(BenchError, match="'nonsense'"):
        read_load("nonsense\n")


def test_a_line_about_idle_sessions_is_read() -> None:
    line = (
        "idle: 100 sessions opened in 0.10 s  server rss before 40000 KiB  opened 40500 KiB  "
        "settled 40600 KiB  after 60 s 40610 KiB  cpu 2.0%\n"
    )
    assert read_idle(line) == Idle(kib_each=6.0, growth_kib_each=0.1)
    with pytest.raises(BenchError, match="zkload said"):
        read_idle(LINE)


GETS = "  get p50 40 us p999 90 us longest 2500 us"
SETS = "  set p50 400 us p999 900 us longest 1500 us"


def test_the_longest_wait_of_a_prober_is_that_of_gets_and_sets() -> None:
    found = read_probe(f"probe: 9 requests{GETS}{SETS}\n")
    assert found == Probe(get=Waits(0.09, 2.5), set=Waits(0.9, 1.5))
    assert found.longest_ms == 2.5
    assert Probe(found.set, found.get).longest_ms == 2.5
    for line in (f"probe: 9 requests{GETS}\n", LINE):
        with pytest.raises(BenchError, match="zkload said"):
            read_probe(line)


def test_the_bystander_of_a_load_has_a_line_of_its_own() -> None:
    found = read_load(f"{LINE}bystander: 700 requests{GETS}\n")
    assert found == Load(24311, 42992, 59769, 39.08, Waits(0.09, 2.5))
    with pytest.raises(BenchError, match="7 requests failed"):
        read_load(f"{LINE.replace('err 0(0)', 'err 7(-101)')}bystander: 700 requests{GETS}\n")


def test_the_matrix_has_every_cell_and_the_spread_ones() -> None:
    found = cells(options([]).ops)
    assert len(found) == len(set(found)) == 7 * 3 * 2 + 5 * 3 * 2
    assert Cell("eph", 50, 1) in found
    assert Cell("mix", 10, 100, SPREAD_KEYS) in found


def test_a_ratio_is_made_of_medians() -> None:
    cell = Cell("get", 1, 1)
    loads = {
        "paddock": [Load(ops, 1, 1, 1) for ops in (90, 30, 20)],
        "apache": [Load(ops, 1, 1, 1) for ops in (10, 11, 5)],
    }
    results = Results(about={}, loads={cell: loads})
    assert results.pair(cell, lambda run: run.ops_per_s) == Pair(30, 10)
    assert "| get | 3.00× |" in as_markdown(results)


def test_without_the_peer_there_is_no_ratio() -> None:
    results = Results(about={}, loads={Cell("get", 1, 1): {"paddock": [Load(1, 1, 1, 1)]}})
    assert "| get | – |" in as_markdown(results)


def test_the_longest_of_all_rounds_counts_and_p999_is_that_of_the_median_one() -> None:
    def runs(*waits: tuple[float, float]) -> list[Load]:
        return [Load(1, 1, 1, 1, Waits(*one)) for one in waits]

    loads = {
        Cell("get", 1, 1): {
            "paddock": runs((1, 2), (3, 30), (2, 4)),
            "apache": runs((5, 6)),
            "limit": runs((0.5, 0.75)),
        },
        Cell("set", 1, 1): {"paddock": [Load(1, 1, 1, 1)]},
    }
    results = Results(about={}, loads=loads)
    longest, _, p999 = (
        as_markdown(results)
        .partition("## Longest wait of a bystander")[2]
        .partition("## p99.9 of a bystander")
    )
    assert "| get | 30, 6.00, 0.75 |" in longest
    assert "| get | 2.00, 5.00, 0.50 |" in p999
    assert "| set |" not in longest
    found = results.as_json()["loads"]
    assert isinstance(found, list)
    assert found[0]["apache"][0]["bystander"] == {"p999_ms": 5, "longest_ms": 6}


def test_without_a_bystander_there_is_no_table_of_its_waits() -> None:
    loads = {Cell("get", 1, 1): {"paddock": [Load(1, 1, 1, 1)]}}
    assert "bystander" not in as_markdown(Results(about={}, loads=loads)).partition("## Thr")[2]


def test_tails_have_a_table_of_gets_and_sets() -> None:
    def probe(get_ms: float, set_ms: float) -> Probe:
        return Probe(Waits(get_ms / 10, get_ms), Waits(set_ms / 10, set_ms))

    probes = {"paddock": [probe(10, 20), probe(30, 10)], "apache": [probe(60, 80)]}
    tails = {Meanwhile.PURGE: Tail("old files are purged", probes)}
    results = Results(about={}, tails=tails)
    page = as_markdown(results)
    assert "| old files are purged | get | 30 | 60 | 0.50× | 2.00 | 6.00 |" in page
    assert "| old files are purged | set | 20 | 80 | 0.25× | 1.50 | 8.00 |" in page
    found = results.as_json()["tails"]
    assert isinstance(found, dict)
    assert found["a purge"]["apache"] == [
        {"get": {"p999_ms": 6, "longest_ms": 60}, "set": {"p999_ms": 8, "longest_ms": 80}}
    ]


def test_the_file_system_of_a_folder_is_the_innermost_mount() -> None:
    assert file_system_of(Path("/proc/self")) == "proc"


def test_a_line_of_a_client_is_read() -> None:
    line = '{"ops_per_s": 50000.0, "client_cpu_us": 8.5, "server_cpu_us": 0.5}\n'
    assert read_run(line) == Run(50000.0, 8.5, 0.5)


@pytest.mark.parametrize("line", ["", "nonsense", "[1]", '{"ops_per_s": 1}'])
def test_what_a_client_should_not_say_is_shown(line: str) -> None:
    with pytest.raises(BenchError, match="a client said"):
        read_run(line)


def test_every_client_has_every_operation_and_the_blocking_one_no_window() -> None:
    asked = tasks(["paddock", "apache"])
    assert len(asked) == len(set(asked)) == 2 * 3 * 2
    assert all((BLOCKING in task.clients) == (task.window == 1) for task in asked)
    assert all({KAZOO, PADDOCK} < {*task.clients} for task in asked)
    assert all({*task.clients} <= {*CLIENTS} for task in asked)
    assert all(need.client in need.job.clients for need in NEEDS)
    assert all(need.than in need.job.clients for need in NEEDS if need.times is not None)
    assert {need.job for need in NEEDS} <= {*asked}


def test_a_need_may_be_held_against_an_ordinary_session() -> None:
    task = Task("paddock", "set", 1000)
    runs = {PADDOCK: [Run(97, 1, 1)], ORDINARY: [Run(100, 1, 1)], KAZOO: [Run(1, 1, 1)]}
    assert Need(PADDOCK, task, 0.95, ORDINARY).got({task: runs}) == 0.97


def test_a_need_is_held_against_kazoo_by_medians() -> None:
    task = Task("apache", "get", 1000)
    runs = {
        KAZOO: [Run(ops, 1, 1) for ops in (10, 100, 11)],
        PADDOCK: [Run(ops, 1, 1) for ops in (44, 1, 55)],
    }
    results = Results(about={}, clients={task: runs})
    page = as_markdown(results)
    assert "| get, 1,000 in flight, on Apache ZooKeeper | 11 | 44 | – |  |" in page
    assert (
        "| paddock: get, 1,000 in flight, on Apache ZooKeeper"
        " | ≥ 4.00× kazoo | – | 4.00× kazoo |  | holds |"
    ) in page
    runs[PADDOCK][0] = Run(43, 1, 1)
    assert "| 3.91× kazoo |  | falls short |" in as_markdown(results)


def test_a_need_that_was_not_measured_is_neither_held_nor_missed() -> None:
    task = Task("paddock", "get", 1000)
    need = Need(PADDOCK, task, times=4)
    assert need.got({task: {PADDOCK: [Run(9, 1, 1)], KAZOO: []}}) is None
    assert need.got({}) is None


def test_what_is_done_while_warming_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each look at the clock is a second after the last: warm at 2, over at 6 or later.
    clock = itertools.count()
    monkeypatch.setattr("bench.client_load.time.perf_counter", lambda: float(next(clock)))
    meter = Meter(window=10, server_pid=os.getpid(), seconds=3, warmup_s=2)
    windows = 0
    while meter.wants_more():
        windows += 1
    assert windows == 4
    # The look at the end of the warm-up was at 3, the one at the end at 7.
    assert meter.result().ops_per_s == 3 * 10 / 4


def test_what_is_done_aside_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("bench.client_load.time.perf_counter", lambda: now)
    meter = Meter(window=10, server_pid=os.getpid(), seconds=2, warmup_s=0)
    windows = 0
    while meter.wants_more():
        windows += 1
        with meter.aside():
            now += 100
        now += 1
    assert windows == 2
    assert meter.result().ops_per_s == 10


def test_only_the_tables_of_one_part_are_made() -> None:
    assert options([]).only == list(PARTS)
    assert options(["--only", "recipes", "etcd"]).only == ["recipes", "etcd"]


def test_every_recipe_is_measured_beside_kazoos_and_only_its_plain_queue_is_for_the_record() -> (
    None
):
    asked = recipes.tasks(["paddock", "apache"])
    assert len(asked) == len(set(asked)) == len({(task.server, task.row) for task in asked})
    assert {task.op for task in asked} == {"lock", "elect", *recipes.QUEUE_OPS}
    assert all({KAZOO, PADDOCK, BLOCKING} < {*task.clients} for task in asked)
    for task in asked:
        assert (recipes.KAZOO_QUEUE in task.clients) == (task.op in recipes.QUEUE_OPS)
    needed = {(need.job, need.times) for need in recipes.NEEDS}
    assert (RecipeTask("apache", "lock", 1), 3) in needed
    assert (RecipeTask("apache", "lock", 10), 3) in needed
    assert (RecipeTask("apache", "take", 10), 2) in needed
    assert (RecipeTask("apache", "elect", 10), 1) in needed
    assert {need.job for need in recipes.NEEDS} < {*asked}


def test_recipes_have_tables_of_their_own() -> None:
    task = RecipeTask("apache", "lock", 10)
    runs = {KAZOO: [Run(100, 1, 1)], PADDOCK: [Run(299, 1, 1)]}
    results = Results(about={}, recipes={task: runs})
    page = as_markdown(results)
    row = "lock cycle, 10 contenders, on Apache ZooKeeper"
    assert f"| {row} | 100 | 299 | – | – |  |" in page
    must = "≥ 3.00× kazoo | ≥ 5.00× kazoo"
    assert f"| paddock: {row} | {must} | 2.99× kazoo |  | falls short |" in page
    assert "## Clients" not in page
    found = results.as_json()["recipes"]
    assert isinstance(found, list)
    assert found[0]["count"] == 10
    assert found[0][KAZOO] == [{"ops_per_s": 100, "client_cpu_us": 1, "server_cpu_us": 1}]


def test_messages_that_grow_with_those_who_wait_are_called_so() -> None:
    growths = {
        Line("apache", PADDOCK, 10): Growth(3, 3, 2, 800),
        Line("apache", PADDOCK, 500): Growth(3, 3, 2, 900),
        Line("apache", KAZOO, 10): Growth(12, 12, 10, 800),
        Line("apache", KAZOO, 500): Growth(502, 502, 500, 900),
        Line("paddock", PADDOCK, 10): Growth(3, 3, 2, 800),
    }
    page = as_markdown(Results(about={}, growths=growths))
    assert (
        "| paddock, 500 waiters, on Apache ZooKeeper | 3.00 | 3.00 | 2.00 | 8.00 | 900 | constant |"
    ) in page
    assert (
        "| kazoo, 500 waiters, on Apache ZooKeeper | 502 | 502 | 500 | 1,504 | 900 | grows |"
        in page
    )
    assert "| paddock, 10 waiters, on Paddock | 3.00 | 3.00 | 2.00 | 8.00 | 800 | – |" in page

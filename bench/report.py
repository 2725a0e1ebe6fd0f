"""The tables of the benchmark: goals, then ratios, then the raw numbers."""

from collections.abc import Callable, Iterable, Sequence

from bench import clients, etcd, goals, recipes
from bench.clients import KAZOO, Job, Run, Runs
from bench.results import (
    PROBED_OPS,
    Loads,
    Pair,
    Results,
    cpu_us_per_op,
    ops_per_s,
    p50_us,
    p99_us,
    pair_of,
)
from bench.zkload import Cell, Load

NONE = "–"
_ABOUT_ETCD = (
    "Another protocol, asked over HTTP by its JSON gateway with one request in flight on each"
    " connection; beside it get and set of as many connections in this run."
)
_ABOUT_BYSTANDER = (
    "A client with one get in flight, one a millisecond, while the load of the cell goes on; the"
    " longest of all rounds. What it waits beside the limit, the load and the machine take."
)
_GROWTH = "## Growth: the server's CPU for one operation in µs (operations a second)"
_SERVERS = {"paddock": "Paddock", "apache": "Apache ZooKeeper"}


def as_markdown(results: Results) -> str:
    """Return the tables as a page."""
    parts = [
        "# Paddock and its peers side by side",
        _table(["", ""], [[key, value] for key, value in results.about.items()]),
        *_goals(results),
        *_matrices(results),
    ]
    if results.others:
        rows = [
            [
                other.title,
                *(_number(one) for one in (other.pair.paddock, other.pair.apache)),
                _number(other.pair.ratio, "×"),
            ]
            for other in results.others.values()
        ]
        header = ["less is better; of ops/s, more", "Paddock", "Apache ZooKeeper", "ratio"]
        parts += ["## The rest", _table(header, rows)]
    parts += _tails(results)
    if results.by_nodes:
        parts += [
            f"{_GROWTH}, the more nodes",
            _growth(results.by_nodes, lambda cell: f"{cell.keys:,} nodes"),
        ]
    if results.by_connections:
        parts += [
            f"{_GROWTH}, the more connections",
            _growth(results.by_connections, lambda cell: f"{cell.connections:,} connections"),
        ]
    parts += _comparison("Clients", results.clients, clients.CLIENTS)
    parts += _comparison("Recipes", results.recipes, recipes.CLIENTS)
    if results.growths:
        parts += [
            "## Recipes: the messages of one hand-over of a lock, the more wait for it",
            _lock_growth(results),
        ]
    parts += _etcd(results)
    if results.failures:
        parts += ["## What failed", "\n".join(f"- {line}" for line in results.failures)]
    return "\n\n".join(parts) + "\n"


def _goals(results: Results) -> Iterable[str]:
    reached = goals.reached(results)
    if not reached:
        return []
    rows = [
        [
            goal.what,
            _bound(goal, goal.must),
            NONE if goal.aim is None else _bound(goal, goal.aim),
            _number(got.value, goal.unit),
            got.where,
            goal.verdict(got),
        ]
        for goal, got in reached
    ]
    measured = {goal for goal, _ in reached}
    missing = [goal.what for goal in goals.GOALS if goal not in measured]
    header = ["", "must", "aim", "got", "where it is worst", ""]
    parts = ["## What it must reach, and what it has", _table(header, rows)]
    if missing:
        parts.append(f"Not measured in this run: {'; '.join(missing)}.")
    return parts


def _bound(goal: goals.Goal, value: float) -> str:
    return f"{'≤' if goal.is_limit else '≥'} {_number(value, goal.unit)}"


def _matrices(results: Results) -> Iterable[str]:
    if not results.loads:
        return []
    return [
        "## Throughput: Paddock / Apache ZooKeeper (more is better)",
        _matrix(results, ops_per_s, lambda pair: _number(pair.ratio, "×")),
        "## Throughput: Paddock's share of the limit (more is better)",
        _matrix(results, ops_per_s, lambda pair: _number(pair.share)),
        "## Operations a second: Paddock, Apache ZooKeeper, the limit",
        _matrix(results, ops_per_s, _all_compact),
        "## p50 in µs: Paddock, Apache ZooKeeper (their ratio, less is better)",
        _matrix(results, p50_us, _both_and_ratio),
        "## p99 in µs: Paddock, Apache ZooKeeper (their ratio, less is better)",
        _matrix(results, p99_us, _both_and_ratio),
        "## The server's CPU for one operation in µs: Paddock, Apache ZooKeeper, the limit",
        _matrix(results, cpu_us_per_op, _all_numbers),
        *_waits(results),
    ]


def _waits(results: Results) -> Iterable[str]:
    """Return the tables of the waits of a bystander beside each cell."""
    cells = [cell for cell in results.loads if results.longest_wait_ms(cell) != Pair(None, None)]
    if not cells:
        return []
    who = "Paddock, Apache ZooKeeper, the limit"
    return [
        f"## Longest wait of a bystander, ms: {who}",
        _ABOUT_BYSTANDER,
        _grid((one.row, one.column, _all_numbers(results.longest_wait_ms(one))) for one in cells),
        f"## p99.9 of a bystander, ms: {who}",
        _grid((one.row, one.column, _all_numbers(results.p999_wait_ms(one))) for one in cells),
    ]


def _tails(results: Results) -> Iterable[str]:
    """Return the table of the waits of a bystander while something else goes on."""
    if not results.tails:
        return []
    rows = []
    for tail in results.tails.values():
        for op in PROBED_OPS:
            longest, p999 = tail.longest_ms(op), tail.p999_ms(op)
            figures = (_number(one) for one in (longest.paddock, longest.apache))
            rows.append([tail.title, op, *figures, _number(longest.ratio, "×")])
            rows[-1] += [_number(one) for one in (p999.paddock, p999.apache)]
    header = ["meanwhile", "", "longest: Paddock", "Apache ZooKeeper", "ratio"]
    header += ["p99.9: Paddock", "Apache ZooKeeper"]
    return [
        "## Longest wait of a bystander, ms, while something else goes on",
        _table(header, rows),
    ]


def _matrix(results: Results, figure: Callable[[Load], float], show: Callable[[Pair], str]) -> str:
    return _grid(
        (cell.row, cell.column, show(results.pair(cell, figure))) for cell in results.loads
    )


def _growth(loads: Loads, column: Callable[[Cell], str]) -> str:
    figures = []
    for cell in loads:
        cost, speed = pair_of(loads, cell, cpu_us_per_op), pair_of(loads, cell, ops_per_s)
        for name, cpu_us, rate in (
            ("Paddock", cost.paddock, speed.paddock),
            ("Apache ZooKeeper", cost.apache, speed.apache),
        ):
            shown = f"{_number(cpu_us)} ({_compact(rate)})"
            figures.append((f"{cell.op}, w{cell.window}: {name}", column(cell), shown))
    return _grid(figures)


def _grid(figures: Iterable[tuple[str, str, str]]) -> str:
    """Return a table of rows, columns and cells."""
    columns: dict[str, None] = {}
    rows: dict[str, dict[str, str]] = {}
    for row, column, shown in figures:
        columns[column] = None
        rows.setdefault(row, {})[column] = shown
    return _table(
        ["", *columns],
        [[row, *(found.get(column, "") for column in columns)] for row, found in rows.items()],
    )


def _lock_growth(results: Results) -> str:
    rows = []
    for line, growth in results.growths.items():
        is_constant = recipes.is_constant(results.growths, line.server, line.client)
        rows.append(
            [
                f"{line.client}, {line.waiters} waiters, on {_SERVERS[line.server]}",
                *(_number(one) for one in (growth.requests, growth.replies, growth.events)),
                *(_number(one) for one in (growth.messages, growth.bytes)),
                NONE if is_constant is None else "constant" if is_constant else "grows",
            ]
        )
    header = ["", "requests", "replies", "events", "messages", "bytes without events", ""]
    return _table(header, rows)


def _etcd(results: Results) -> Iterable[str]:
    if not results.etcd:
        return []
    rows = []
    for run in results.etcd:
        ours = results.pair(Cell(etcd.OPS[run.op], run.connections, 1), ops_per_s)
        row = [f"{run.op}, {run.connections} connections"]
        row += [_compact(run.ops_per_s), _number(run.p50_us), _number(run.p99_us)]
        rows.append([*row, _compact(ours.paddock), _compact(ours.apache)])
    header = ["", "etcd/s", "p50 in µs", "p99 in µs", "Paddock/s", "Apache ZooKeeper/s"]
    return [
        "## For information: etcd",
        _ABOUT_ETCD,
        _table(header, rows),
    ]


def _comparison(title: str, runs: Runs, columns: Sequence[str]) -> Iterable[str]:
    """Return the tables that compare kazoo, which comes first, with our clients."""
    if not runs:
        return []
    return [
        f"## {title}: operations a second",
        _by_client(runs, columns, ops_per_s, _compact),
        f"## {title}: times kazoo (more is better)",
        _table(["", *columns[1:]], [_times_kazoo(runs, job, columns[1:]) for job in runs]),
        f"## {title}: the client's CPU for one operation in µs",
        _by_client(runs, columns, lambda run: run.client_cpu_us, _number),
        f"## {title}: the server's CPU for one operation in µs",
        _by_client(runs, columns, lambda run: run.server_cpu_us, _number),
    ]


def _by_client(
    runs: Runs,
    columns: Sequence[str],
    figure: Callable[[Run], float],
    show: Callable[[float | None], str],
) -> str:
    rows = [
        [
            _on_server(job),
            *(
                show(clients.median(runs, job, name, figure)) if name in job.clients else ""
                for name in columns
            ),
        ]
        for job in runs
    ]
    return _table(["", *columns], rows)


def _times_kazoo(runs: Runs, job: Job, columns: Sequence[str]) -> list[str]:
    kazoo = clients.median(runs, job, KAZOO, ops_per_s)
    row = [_on_server(job)]
    for name in columns:
        value = clients.median(runs, job, name, ops_per_s)
        if name in job.clients:
            row.append(_number(value / kazoo if value and kazoo else None, "×"))
        else:
            row.append("")
    return row


def _on_server(job: Job) -> str:
    return f"{job.row}, on {_SERVERS[job.server]}"


def _number(value: float | None, unit: str = "") -> str:
    if value is None:
        return NONE
    return f"{value:.2f}{unit}" if value < 10 else f"{value:,.0f}{unit}"


def _compact(value: float | None) -> str:
    if value is None:
        return NONE
    return f"{value / 1000:.1f}k" if value >= 1000 else f"{value:.0f}"


def _both_compact(pair: Pair) -> str:
    return f"{_compact(pair.paddock)}, {_compact(pair.apache)}"


def _both_and_ratio(pair: Pair) -> str:
    return f"{_both_compact(pair)} ({_number(pair.ratio, '×')})"


def _all_compact(pair: Pair) -> str:
    return ", ".join(map(_compact, (pair.paddock, pair.apache, pair.limit)))


def _all_numbers(pair: Pair) -> str:
    return ", ".join(map(_number, (pair.paddock, pair.apache, pair.limit)))


def _table(header: list[str], rows: Iterable[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)

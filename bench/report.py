"""The tables of the benchmark: ratios first, then what they are made of."""

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field

from bench import clients, recipes
from bench.clients import KAZOO, Job, Need, Run, Runs
from bench.recipes import Growths
from bench.zkload import Cell, Load

NONE = "–"
_SERVERS = {"paddock": "Paddock", "apache": "Apache ZooKeeper"}


@dataclass(slots=True)
class Pair:
    """A figure of both servers, as the median over the rounds; None where there is none."""

    paddock: float | None
    apache: float | None

    @property
    def ratio(self) -> float | None:
        if not self.paddock or not self.apache:
            return None
        return self.paddock / self.apache


@dataclass(slots=True)
class Results:
    """All that was measured."""

    about: dict[str, str]
    # For each cell and server, one load a round.
    loads: dict[Cell, dict[str, list[Load]]] = field(default_factory=dict)
    # Figures of which less is better: milliseconds, MiB, seconds.
    others: dict[str, Pair] = field(default_factory=dict)
    # What each client did for each task.
    clients: Runs = field(default_factory=dict)
    # What each did with each recipe.
    recipes: Runs = field(default_factory=dict)
    # What the hand-over of a lock costs, the more wait for it.
    growths: Growths = field(default_factory=dict)
    # What could not be measured, and why.
    failures: list[str] = field(default_factory=list)

    def pair(self, cell: Cell, figure: Callable[[Load], float]) -> Pair:
        runs = self.loads.get(cell, {})
        return Pair(
            *(
                statistics.median(map(figure, runs[name])) if runs.get(name) else None
                for name in ("paddock", "apache")
            )
        )

    def as_json(self) -> dict[str, object]:
        """Return everything as plain data, each round of each cell included."""
        return {
            "about": self.about,
            "loads": [
                {
                    "op": cell.op,
                    "connections": cell.connections,
                    "window": cell.window,
                    "keys": cell.keys,
                    "ratio": self.pair(cell, ops_per_s).ratio,
                    **{
                        name: [
                            {
                                "ops_per_s": run.ops_per_s,
                                "p50_us": run.p50_us,
                                "p99_us": run.p99_us,
                                "cpu_us_per_op": run.cpu_us_per_op,
                            }
                            for run in runs
                        ]
                        for name, runs in by_server.items()
                    },
                }
                for cell, by_server in self.loads.items()
            ],
            "others": {
                name: {"paddock": pair.paddock, "apache": pair.apache, "ratio": pair.ratio}
                for name, pair in self.others.items()
            },
            "clients": _as_json(self.clients),
            "recipes": _as_json(self.recipes),
            "lock_growth": [
                {**asdict(line), **asdict(growth)} for line, growth in self.growths.items()
            ],
            "failures": self.failures,
        }

    def as_markdown(self) -> str:
        """Return the tables as a page."""
        parts = ["# Paddock and its peers side by side", _table(["", ""], _facts(self))]
        if self.loads:
            parts += [
                "## Throughput: Paddock / Apache ZooKeeper (more is better)",
                self._matrix(ops_per_s, lambda pair: _number(pair.ratio, "×")),
                "## Operations a second: Paddock, Apache ZooKeeper",
                self._matrix(ops_per_s, _both_compact),
                "## p50 in µs: Paddock, Apache ZooKeeper",
                self._matrix(lambda run: run.p50_us, _both_compact),
                "## p99 in µs: Paddock, Apache ZooKeeper",
                self._matrix(lambda run: run.p99_us, _both_compact),
                "## The server's CPU for one operation in µs: Paddock, Apache ZooKeeper",
                self._matrix(lambda run: run.cpu_us_per_op, _both_numbers),
            ]
        if self.others:
            rows = [
                [name, _number(pair.paddock), _number(pair.apache), _number(pair.ratio, "×")]
                for name, pair in self.others.items()
            ]
            header = ["less is better", "Paddock", "Apache ZooKeeper", "ratio"]
            parts += ["## The rest", _table(header, rows)]
        parts += _comparison("Clients", self.clients, clients.CLIENTS, clients.NEEDS)
        parts += _comparison("Recipes", self.recipes, recipes.CLIENTS, recipes.NEEDS)
        if self.growths:
            parts += [
                "## Recipes: the messages of one hand-over of a lock, the more wait for it",
                self._growth(),
            ]
        if self.failures:
            parts += ["## What failed", "\n".join(f"- {line}" for line in self.failures)]
        return "\n\n".join(parts) + "\n"

    def _matrix(self, figure: Callable[[Load], float], show: Callable[[Pair], str]) -> str:
        columns = list(dict.fromkeys(cell.column for cell in self.loads))
        rows: dict[str, dict[str, str]] = {}
        for cell in self.loads:
            rows.setdefault(cell.row, {})[cell.column] = show(self.pair(cell, figure))
        return _table(
            ["op", *columns],
            [[row, *(cells.get(column, "") for column in columns)] for row, cells in rows.items()],
        )

    def _growth(self) -> str:
        rows = []
        for line, growth in self.growths.items():
            is_constant = recipes.is_constant(self.growths, line.server, line.client)
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


def ops_per_s(run: Load | Run) -> float:
    return run.ops_per_s


def _as_json(runs: Runs) -> list[dict[str, object]]:
    return [
        {**asdict(job), **{name: [asdict(run) for run in found] for name, found in done.items()}}
        for job, done in runs.items()
    ]


def _comparison(
    title: str, runs: Runs, columns: Sequence[str], needs: Sequence[Need]
) -> Iterable[str]:
    """Give the tables of what was done by kazoo, which comes first, and by ours."""
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
        f"## {title}: what they need to reach, and what they have",
        _table(
            ["", "needed", "got", ""], [_need(need, runs) for need in needs if need.job in runs]
        ),
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


def _need(need: Need, runs: Runs) -> list[str]:
    unit = "/s" if need.times_kazoo is None else "× kazoo"
    got = need.got(runs)
    verdict = NONE if got is None else "holds" if got >= need.least else "falls short"
    row = [f"{need.client}: {_on_server(need.job)}"]
    return [*row, _number(need.least, unit), _number(got, unit), verdict]


def _on_server(job: Job) -> str:
    return f"{job.row}, on {_SERVERS[job.server]}"


def _facts(results: Results) -> Iterable[list[str]]:
    return [[key, value] for key, value in results.about.items()]


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


def _both_numbers(pair: Pair) -> str:
    return f"{_number(pair.paddock)}, {_number(pair.apache)}"


def _table(header: list[str], rows: Iterable[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)

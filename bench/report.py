"""The tables of the benchmark: ratios first, then what they are made of."""

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from bench.zkload import Cell, Load

NONE = "–"


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
                    "ratio": self.pair(cell, _ops_per_s).ratio,
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
            "failures": self.failures,
        }

    def as_markdown(self) -> str:
        """Return the tables as a page."""
        parts = ["# Paddock and Apache ZooKeeper side by side", _table(["", ""], _facts(self))]
        if self.loads:
            parts += [
                "## Throughput: Paddock / Apache ZooKeeper (more is better)",
                self._matrix(_ops_per_s, lambda pair: _number(pair.ratio, "×")),
                "## Operations a second: Paddock, Apache ZooKeeper",
                self._matrix(_ops_per_s, _both_compact),
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


def _ops_per_s(run: Load) -> float:
    return run.ops_per_s


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

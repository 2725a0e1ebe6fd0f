"""The stage of every part of the benchmark: the servers side by side, and the results."""

import argparse
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

from bench import servers, zkload
from bench.results import Figure, Loads, Other, Pair, Results, ops_per_s, pair_of
from bench.servers import BenchError, Server
from bench.zkload import Cell


class Stage:
    """One benchmark: its options, its data folder, and its results so far."""

    def __init__(self, chosen: argparse.Namespace, folder: Path, results: Results) -> None:
        self.chosen = chosen
        self.folder = folder
        self.results = results
        self.kinds: dict[str, Callable[[Path], Server]] = {"paddock": servers.paddock}
        lacking = servers.missing_apache()
        if lacking is None:
            self.kinds["apache"] = servers.apache
        else:
            print(f"bench: {lacking}: Paddock is measured alone", file=sys.stderr)

    def new_servers(self, purpose: str) -> dict[str, Server]:
        """Return servers without data, not yet started."""
        return {name: make(self.folder / purpose / name) for name, make in self.kinds.items()}

    def alternating(self, both: dict[str, Server], number: int) -> list[tuple[str, Server]]:
        """Return the servers in an order that alternates with the rounds."""
        return list(both.items()) if number % 2 == 0 else list(both.items())[::-1]

    def measure(self, cell: Cell, both: dict[str, Server], loads: Loads) -> None:
        """Put the load of a cell on both servers, in turn, in every round."""
        for number in range(self.chosen.rounds):
            self.measure_round(number, cell, both, loads)
        self.show(cell, loads)

    def measure_round(
        self,
        number: int,
        cell: Cell,
        both: dict[str, Server],
        loads: Loads,
        beside_s: float = 0.0,
    ) -> None:
        """Put the load of a cell on both servers, one after the other, once.

        Then, for so long, beside a bystander.
        """
        chosen = self.chosen
        runs = loads.setdefault(cell, {name: [] for name in both})
        for name, server in self.alternating(both, number):
            try:
                run = zkload.load(server, cell, chosen.seconds, chosen.warmup_s, beside_s)
                if not run.ops_per_s:
                    raise BenchError("no answer in time")
            except BenchError as error:
                self.failed(server, BenchError(f"{cell.row} {cell.column}: {error}"))
            else:
                runs[name].append(run)

    def show(self, cell: Cell, loads: Loads) -> None:
        """Print the results of a cell so far."""
        pair = pair_of(loads, cell, ops_per_s)
        ratio = "" if pair.ratio is None else f"{pair.ratio:.2f}×"
        if pair.share is not None:
            ratio += f"  {pair.share:.2f} of the limit"
        figures = "  ".join(
            f"{name} {value:>9,.0f} ops/s" for name, value in _of_both(pair) if value is not None
        )
        print(f"{cell.row:24} {cell.column:10}  {figures}  {ratio}", flush=True)

    def note(self, name: Figure, title: str, figures: dict[str, list[float]]) -> None:
        """Store a figure of both servers; less is better, but of ops/s more."""
        pair = Pair(
            *(
                statistics.median(figures[server]) if figures.get(server) else None
                for server in ("paddock", "apache")
            )
        )
        self.results.others[name] = Other(title, pair)
        shown = [f"{server} {value:.2f}" for server, value in _of_both(pair) if value is not None]
        print(f"{title}: {', '.join(shown)}", flush=True)

    def failed(self, server: Server, error: BenchError) -> None:
        """Record a failure; continue if the server still runs."""
        if server.process is None or server.process.poll() is not None:
            raise error
        print(f"bench: {error}", file=sys.stderr, flush=True)
        self.results.failures.append(f"on {server.name}: {error}")


def _of_both(pair: Pair) -> list[tuple[str, float | None]]:
    return [("Paddock", pair.paddock), ("Apache", pair.apache), ("limit", pair.limit)]

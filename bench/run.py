"""Measure Paddock and its peers side by side: `make bench`, or `python -m bench.run --help`.

First the server, beside Apache ZooKeeper; then the client and the recipes, beside kazoo and its
recipes, on both servers. Figures count only as ratios: both sides run on the same machine at the
same time, their runs alternate, and each cell is the median of the rounds. Both are warmed first.
Every cell of the matrix counts, not the best one.
"""

import argparse
import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final

from bench import clients, recipes, servers, zkload
from bench.clients import Job, Runs, Task
from bench.report import Pair, Results, ops_per_s
from bench.servers import BenchError, Server, running
from bench.zkload import Cell

ROOT: Final = Path(__file__).resolve().parent.parent
OPS: Final = ("get", "exists", "kids", "mix", "set", "create", "eph")
CONNECTIONS: Final = (1, 10, 50)
WINDOWS: Final = (1, 100)
PARTS: Final = ("servers", "clients", "recipes")
SPREAD_OPS: Final = ("get", "set", "mix")
SPREAD_KEYS: Final = 100_000
WATCHERS: Final = 1000
IN_MEMORY: Final = {"tmpfs", "ramfs"}


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--quick", action="store_true", help="half a second a cell: about twenty minutes in all")
    add("--seconds", type=float, help="how long a cell is measured in each round [2.5]")
    add("--rounds", type=int, default=3, help="how often each cell is measured [3]")
    add(
        "--only",
        choices=PARTS,
        help="only the tables of the servers, of the clients, or of the recipes",
    )
    add("--ops", nargs="+", choices=OPS, default=list(OPS), help="only these operations")
    add("--nodes", type=int, help="how many nodes for memory and restart [1000000]")
    add("--folder", type=Path, default=ROOT, help="a folder on a real disk for the data")
    add("--results", type=Path, default=ROOT / "bench" / "results", help="where the tables go")
    found = parser.parse_args(arguments)
    found.seconds = found.seconds or (0.5 if found.quick else 2.5)
    found.warmup_s = 0.2 if found.quick else 0.5
    if found.nodes is None:
        found.nodes = 100_000 if found.quick else 1_000_000
    return found


def matrix(ops: list[str]) -> list[Cell]:
    """Return the cells, the one hot node first, then keys spread over many nodes."""
    hot = [Cell(op, c, w) for op in ops for c in CONNECTIONS for w in WINDOWS]
    spread = [
        Cell(op, 10, window, SPREAD_KEYS) for op in SPREAD_OPS if op in ops for window in WINDOWS
    ]
    return hot + spread


class Bench:
    """One benchmark: what is measured, with which options, and what came out so far."""

    def __init__(self, chosen: argparse.Namespace, folder: Path) -> None:
        self._chosen = chosen
        self._folder = folder
        self._kinds: dict[str, Callable[[Path], Server]] = {"paddock": servers.paddock}
        self.results = Results(about=_about(chosen, folder))
        lacking = servers.missing_apache()
        if lacking is None:
            self._kinds["apache"] = servers.apache
        else:
            print(f"bench: {lacking}: Paddock is measured alone", file=sys.stderr)

    def run(self) -> None:
        """Measure everything, or the part that was chosen."""
        if self._chosen.only in (None, "servers"):
            self._servers()
        if self._chosen.only in (None, "clients"):
            self._clients()
        if self._chosen.only in (None, "recipes"):
            self._recipes()

    def _servers(self) -> None:
        self._cold_start()
        both = self._new_servers("matrix")
        with running(*both.values()):
            self._warm(both)
            for cell in matrix(self._chosen.ops):
                self._measure(cell, both)
            self._watches(both)
        if self._chosen.nodes:
            self._memory()

    def _new_servers(self, purpose: str) -> dict[str, Server]:
        return {name: make(self._folder / purpose / name) for name, make in self._kinds.items()}

    def _alternating(self, both: dict[str, Server], number: int) -> list[tuple[str, Server]]:
        return list(both.items()) if number % 2 == 0 else list(both.items())[::-1]

    def _cold_start(self) -> None:
        took_s: dict[str, list[float]] = {name: [] for name in self._kinds}
        idle_mib: dict[str, list[float]] = {name: [] for name in self._kinds}
        for number in range(self._chosen.rounds):
            fresh = self._new_servers(f"start-{number}")
            for name, server in self._alternating(fresh, number):
                with running(server) as [seconds]:
                    took_s[name].append(seconds)
                    idle_mib[name].append(server.rss_mib)
        self._note("cold start to the first read, s", took_s)
        self._note("memory when idle, MiB", idle_mib)

    def _warm(self, both: dict[str, Server]) -> None:
        seconds = 1.0 if self._chosen.quick else 5.0
        for server in both.values():
            print(f"warming {server.name}", flush=True)
            zkload.load(server, Cell("mix", 10, 100), seconds, 0)
            zkload.load(server, Cell("eph", 10, 100), seconds, 0)
            # The nodes over which the keys are spread.
            zkload.load(server, Cell("get", 10, 100, SPREAD_KEYS), 0.1, 0)

    def _measure(self, cell: Cell, both: dict[str, Server]) -> None:
        loads = self.results.loads.setdefault(cell, {name: [] for name in both})
        for number in range(self._chosen.rounds):
            for name, server in self._alternating(both, number):
                try:
                    run = zkload.load(server, cell, self._chosen.seconds, self._chosen.warmup_s)
                except BenchError as error:
                    if server.process is None or server.process.poll() is not None:
                        raise
                    self.results.failures.append(f"{cell.row} {cell.column}: {error}")
                else:
                    loads[name].append(run)
        pair = self.results.pair(cell, lambda run: run.ops_per_s)
        ratio = "" if pair.ratio is None else f"{pair.ratio:.2f}×"
        figures = "  ".join(
            f"{name} {value:>9,.0f} ops/s"
            for name, value in (("Paddock", pair.paddock), ("Apache", pair.apache))
            if value is not None
        )
        print(f"{cell.row:20} {cell.column:8}  {figures}  {ratio}", flush=True)

    def _watches(self, both: dict[str, Server]) -> None:
        took_ms: dict[str, list[float]] = {name: [] for name in both}
        for number in range(self._chosen.rounds):
            for name, server in self._alternating(both, number):
                took_ms[name].append(
                    zkload.watch(server, WATCHERS, 5 if self._chosen.quick else 20)
                )
        self._note(f"{WATCHERS} watchers told, ms", took_ms)

    def _memory(self) -> None:
        count = self._chosen.nodes
        full_mib: dict[str, list[float]] = {}
        again_s: dict[str, list[float]] = {}
        # One after the other: two servers with a million nodes each might not fit.
        for name, server in self._new_servers("memory").items():
            with running(server):
                zkload.create_nodes(server, count)
                full_mib[name] = [server.rss_mib]
            with running(server) as again_s[name]:
                pass
        self._note(f"memory with {count:,} nodes of 100 bytes, MiB", full_mib)
        self._note(f"restart with {count:,} nodes, s", again_s)

    def _clients(self) -> None:
        both = self._new_servers("clients")
        with running(*both.values()):
            for name, server in both.items():
                print(f"warming {server.name}", flush=True)
                for op in clients.OPS:
                    seconds = 1.0 if self._chosen.quick else 4.0
                    clients.run(server, clients.ASYNCIO, Task(name, op, 1000), seconds, 0)
            for task in clients.tasks(list(both)):
                self._compare(task, both[task.server], self.results.clients)

    def _recipes(self) -> None:
        both = self._new_servers("recipes")
        with running(*both.values()):
            for name, server in both.items():
                print(f"warming {server.name}", flush=True)
                for task in recipes.tasks([name]):
                    seconds = 0.5 if self._chosen.quick else 2.0
                    clients.run(server, clients.ASYNCIO, task, seconds, 0)
            for task in recipes.tasks(list(both)):
                self._compare(task, both[task.server], self.results.recipes)
            for line in recipes.lines(list(both)):
                self._grow(line, both[line.server])

    def _compare(self, job: Job, server: Server, results: Runs) -> None:
        """Let every client do the job, in turn, and each of them be the first once."""
        runs = results.setdefault(job, {name: [] for name in job.clients})
        for number in range(self._chosen.rounds):
            first = number % len(job.clients)
            for name in job.clients[first:] + job.clients[:first]:
                try:
                    run = clients.run(
                        server, name, job, self._chosen.seconds, self._chosen.warmup_s
                    )
                except BenchError as error:
                    self._failed(server, error)
                else:
                    runs[name].append(run)
        figures = "  ".join(
            f"{name} {clients.median(results, job, name, ops_per_s) or 0:,.0f}"
            for name in job.clients
        )
        print(f"{job.row:42} on {server.name:17} {figures} ops/s", flush=True)

    def _grow(self, line: recipes.Line, server: Server) -> None:
        try:
            growth = recipes.grow(server, line)
        except BenchError as error:
            self._failed(server, error)
        else:
            self.results.growths[line] = growth
            what = f"{line.client}, {line.waiters} waiters, on {server.name}"
            print(f"{what:42} {growth.messages:.1f} messages a hand-over", flush=True)

    def _failed(self, server: Server, error: BenchError) -> None:
        """Go on with the next one, if the server is there for it."""
        if server.process is None or server.process.poll() is not None:
            raise error
        self.results.failures.append(f"on {server.name}: {error}")

    def _note(self, what: str, figures: dict[str, list[float]]) -> None:
        paddock, apache = (
            statistics.median(figures[name]) if figures.get(name) else None
            for name in ("paddock", "apache")
        )
        self.results.others[what] = Pair(paddock, apache)
        shown = [
            f"{name} {value:.2f}"
            for name, value in (("Paddock", paddock), ("Apache", apache))
            if value is not None
        ]
        print(f"{what}: {', '.join(shown)}", flush=True)


def _about(chosen: argparse.Namespace, folder: Path) -> dict[str, str]:
    compiled = subprocess.run(
        [sys.executable, ROOT / "tools" / "compiled.py"], capture_output=True, text=True
    )
    version = subprocess.run(
        [sys.executable, "-m", "paddock", "--version"], capture_output=True, text=True
    )
    return {
        "date": datetime.now().astimezone().isoformat(timespec="minutes"),
        "Paddock": f"{version.stdout.strip()}, {'pure' if compiled.returncode else 'compiled'}",
        "Python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "disk": f"{servers.file_system_of(folder)}, fsync on",
        "each cell": f"median of {chosen.rounds} rounds of {chosen.seconds} s",
    }


def _save(results: Results, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    base = folder / datetime.now().astimezone().strftime("%Y-%m-%d-%H%M%S")
    page = base.with_suffix(".md")
    page.write_text(results.as_markdown(), encoding="utf-8")
    text = json.dumps(results.as_json(), indent=1, ensure_ascii=False)
    base.with_suffix(".json").write_text(text + "\n", encoding="utf-8")
    return page


def main() -> int:
    """Measure, print the tables, save them; the status is 1 if something could not be measured."""
    # SIGTERM unwinds like Ctrl-C, so that every server is stopped.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    chosen = options()
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix=".bench-", dir=chosen.folder))
    bench = None
    try:
        if servers.file_system_of(folder) in IN_MEMORY:
            raise BenchError(f"{chosen.folder} is in memory: name a real disk with --folder")
        if chosen.only in (None, "servers"):
            zkload.build()
        bench = Bench(chosen, folder)
        bench.run()
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        if bench is None:
            return 1
        bench.results.failures.append(str(error))
    except KeyboardInterrupt:
        print("bench: stopped", file=sys.stderr)
        return 130
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"\n{bench.results.as_markdown()}")
    page = _save(bench.results, chosen.results)
    print(f"Saved as {page} after {time.monotonic() - began:.0f} s")
    return 1 if bench.results.failures else 0


if __name__ == "__main__":
    sys.exit(main())

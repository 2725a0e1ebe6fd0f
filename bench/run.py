"""Measure Paddock and its peers side by side: `make bench`, or `python -m bench.run --help`.

First the servers, beside Apache ZooKeeper; then the client and the recipes, beside kazoo and its
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
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final

from bench import (
    beside,
    cluster,
    contest,
    dashboard,
    growth,
    history,
    matrix,
    plot,
    programs,
    servers,
    sessions,
    size,
    tails,
)
from bench.report import as_markdown
from bench.results import Results
from bench.servers import BenchError
from bench.stage import Stage

ROOT: Final = Path(__file__).resolve().parent.parent
# In this order: the most important part comes first.
PARTS: Final[dict[str, Callable[[Stage], None]]] = {
    "servers": matrix.measure,
    "clients": contest.measure_clients,
    "recipes": contest.measure_recipes,
    "size": size.measure,
    "sessions": sessions.measure,
    "tails": tails.measure,
    "growth": growth.measure,
    "etcd": beside.measure,
    "cluster": cluster.measure,
    "cluster-log": cluster.measure_log,
    "history": history.measure,
    "dashboard": dashboard.measure,
}
IN_MEMORY: Final = {"tmpfs", "ramfs"}


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--quick", action="store_true", help="a look: moments a cell, a tenth of the nodes")
    add("--seconds", type=float, help="how long a cell is measured in each round [1.25]")
    add("--rounds", type=int, default=3, help="how often each cell is measured [3]")
    add(
        "--only",
        nargs="+",
        choices=PARTS,
        default=list(PARTS),
        metavar="PART",
        help=f"only these parts: {', '.join(PARTS)}",
    )
    ops = ", ".join(matrix.OPS)
    add(
        "--ops",
        nargs="+",
        choices=matrix.OPS,
        default=list(matrix.OPS),
        metavar="OP",
        help=f"of the servers, only these operations: {ops}",
    )
    add("--nodes", type=int, help="how many nodes at most, for size, tails and growth [1000000]")
    add("--idle-seconds", type=float, help="how long sessions do nothing [60]; a real look is 600")
    add("--write-seconds", type=float, help="how long a cluster is written to [60]; try 3600")
    add("--folder", type=Path, default=ROOT, help="a folder on a real disk for the data")
    add("--results", type=Path, default=ROOT / "bench" / "results", help="where the tables go")
    found = parser.parse_args(arguments)
    found.seconds = found.seconds or (0.3 if found.quick else 1.25)
    found.warmup_s = 0.1 if found.quick else 0.5
    found.nodes = found.nodes or (100_000 if found.quick else 1_000_000)
    found.write_seconds = found.write_seconds or (20.0 if found.quick else 60.0)
    found.idle_seconds = found.idle_seconds or (20.0 if found.quick else 60.0)
    return found


def _about(chosen: argparse.Namespace, folder: Path) -> dict[str, str]:
    version = subprocess.run(
        [sys.executable, "-m", "paddock", "--version"], capture_output=True, text=True
    )
    return {
        "date": datetime.now().astimezone().isoformat(timespec="minutes"),
        "Paddock": version.stdout.strip(),
        "Python": platform.python_version(),
        "machine": f"{platform.system()} {_processor()}, {os.cpu_count()} cores",
        "disk": f"{servers.file_system_of(folder)}, fsync on",
        "each cell": f"median of {chosen.rounds} rounds of {chosen.seconds} s",
    }


def _processor() -> str:
    """Return the architecture, and the processor's name where Linux tells it."""
    about = Path("/proc/cpuinfo")
    for line in about.read_text(encoding="utf-8").splitlines() if about.exists() else ():
        if line.startswith("model name"):
            return f"{platform.machine()} ({line.partition(':')[2].strip()})"
    return platform.machine()


def _save(results: Results, base: Path) -> Path:
    """Write the tables, the raw numbers, and the picture."""
    base.parent.mkdir(parents=True, exist_ok=True)
    page = base.with_suffix(".md")
    page.write_text(as_markdown(results), encoding="utf-8")
    text = json.dumps(results.as_json(), indent=1, ensure_ascii=False)
    base.with_suffix(".json").write_text(text + "\n", encoding="utf-8")
    plot.draw(results, base.with_suffix(".png"))
    return page


def _run(chosen: argparse.Namespace, results: Results, folder: Path, base: Path) -> None:
    if servers.file_system_of(folder) in IN_MEMORY:
        raise BenchError(f"{chosen.folder} is in memory: name a real disk with --folder")
    programs.build()
    stage = Stage(chosen, folder, results)
    for name, measure in PARTS.items():
        if name not in chosen.only:
            continue
        began = time.monotonic()
        try:
            measure(stage)
        except BenchError as error:
            print(f"bench: {error}", file=sys.stderr)
            results.failures.append(f"{name}: {error}")
        took = time.monotonic() - began
        results.about[f"took, {name}"] = f"{took:.0f} s"
        print(f"{name}: {took:.0f} s", flush=True)
        # The results so far are saved, even if the next part fails.
        _save(results, base)


def main() -> int:
    """Measure, print the tables, save them; the status is 1 if something could not be measured."""
    # SIGTERM unwinds like Ctrl-C, so that every server is stopped.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    chosen = options()
    began = time.monotonic()
    base = chosen.results / datetime.now().astimezone().strftime("%Y-%m-%d-%H%M%S")
    folder = Path(tempfile.mkdtemp(prefix=".bench-", dir=chosen.folder))
    results = Results(about=_about(chosen, folder))
    try:
        _run(chosen, results, folder, base)
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench: stopped", file=sys.stderr)
        return 130
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    page = _save(results, base)
    print(f"\n{page.read_text(encoding='utf-8')}")
    print(f"Saved as {page} after {time.monotonic() - began:.0f} s")
    return 1 if results.failures else 0


if __name__ == "__main__":
    sys.exit(main())

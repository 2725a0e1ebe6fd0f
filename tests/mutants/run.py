"""Runs the campaign on the source with a mutation in it, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tests.mutants.mutation import ROOT, Mutation, plant

FOUND: Final = ROOT / "tests" / "mutants" / "found.json"
SEEDS_MAX: Final = 1_000
# A thousand worlds take ten minutes, on a machine that has nothing else to do.
_SECONDS_MAX: Final = 6 * 3600

# A planted bug may let a world grow without end: that is found as well.
_MEMORY_BYTES_MAX: Final = 2 << 30

_CAMPAIGN: Final = f"""
import resource, sys, threading
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, ({_MEMORY_BYTES_MAX}, {_MEMORY_BYTES_MAX}))
import paddock
assert Path(paddock.__file__).is_relative_to(sys.argv[1]), paddock.__file__
from paddock.testing.simulation.campaign import main
# The stack of the main thread grows as it is used: without memory, that is the end of the process,
# and no MemoryError.
threading.stack_size(64 << 20)
campaign = threading.Thread(target=main, args=(sys.argv[2:],))
campaign.start()
threading.stack_size(0)
campaign.join()
"""


@dataclass(frozen=True, slots=True)
class Found:
    """How a mutation was found: by the first seed that failed, and by which check."""

    seed: int
    check: str


def find(mutation: Mutation | None, seeds: range) -> Found | None:
    """Run the campaign until a seed fails; return None if none does."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        folder = Path(name)
        plant(mutation, folder)
        state = folder / "state.json"
        run = subprocess.run(
            [
                *(sys.executable, "-c", _CAMPAIGN, str(folder)),
                *("--seeds", f"{seeds.start}:{seeds.stop}", "--stop", "--no-shrinking"),
                *("--processes", "1"),
                *("--state", str(state), "--failures", str(folder / "failures")),
            ],
            env={**os.environ, "PYTHONPATH": str(folder)},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_SECONDS_MAX,
        )
        if not state.exists():
            raise RuntimeError(f"the campaign did not run: {run.stderr[-2000:]}")
        failed: dict[str, list[str]] = json.loads(state.read_text())["failed"]
        for seed, problems in failed.items():
            return Found(int(seed), problems[0])
        return None


def find_all(
    mutations: Iterable[Mutation], seeds: range, processes: int
) -> Iterator[tuple[Mutation, Found | None]]:
    """Run the campaign for each mutation, several at a time; yield them in their order."""
    with ThreadPoolExecutor(processes) as pool:
        running = [(one, pool.submit(find, one, seeds)) for one in mutations]
        try:
            for one, found in running:
                yield one, found.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def read_found() -> dict[str, Found]:
    """Return what was found before, by the name of the mutation."""
    kept = json.loads(FOUND.read_text()) if FOUND.exists() else {}
    return {name: Found(**one) for name, one in kept.items()}


def write_found(found: dict[str, Found]) -> None:
    kept = {name: asdict(one) for name, one in found.items()}
    FOUND.write_text(json.dumps(kept, indent=1) + "\n")

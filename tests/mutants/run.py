"""Runs the campaign on the source with a mutation in it, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.mutation import Mutation, plant

# Nothing that a seed does takes nearly as long.
_SECONDS_MAX = 6 * 3600

_CAMPAIGN = """
import sys
from pathlib import Path
import paddock
assert Path(paddock.__file__).is_relative_to(sys.argv[1]), paddock.__file__
from paddock.testing.simulation.campaign import main
sys.exit(main(sys.argv[2:]))
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
            env={**os.environ, "PYTHONPATH": str(folder), "PYTHONHASHSEED": "0"},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_SECONDS_MAX,
        )
        if not state.exists():
            raise RuntimeError(f"the campaign did not run: {run.stderr[-2000:]}")
        failed = json.loads(state.read_text())["failed"]
        if not failed:
            return None
        (seed, problems), = failed.items()
        return Found(int(seed), problems[0])


def find_all(
    mutations: list[Mutation], seeds: range, known: dict[str, Found] | None = None
) -> Iterator[tuple[Mutation, Found | None]]:
    """Run all mutations; with what is known of them, only the seeds that found them before."""
    for one in mutations:
        yield one, find(one, seeds)

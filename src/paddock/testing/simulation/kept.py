"""Histories that are kept as files, and judged again.

    Kept(history, clock_rate_max=1.1).write(Path("build/lab/cut_off.history.gz"))
    verdict = Kept.read(Path("build/lab/cut_off.history.gz")).judge()

The first line of a file says, as JSON, what the judge has to know beside the moments; each of the
others is a moment. A file whose name ends with `.gz` is compressed. As a command it judges files,
and returns 1 if one of them breaks a rule, and 2 if one cannot be read:

    python -m paddock.testing.simulation.kept build/lab/cut_off.history.gz
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from paddock.testing.simulation.history import History
from paddock.testing.simulation.judge import Verdict, judge
from paddock.testing.simulation.promises import judge_promises

_COMPRESSED: Final = ".gz"


@dataclass(frozen=True, slots=True)
class Kept:
    """A history, and what the judge has to know beside it; see `judge`."""

    history: History = field(repr=False)
    clock_rate_max: float = 1.0
    lease_seconds: float = 0.0
    events_have_zxids: bool = True

    def judge(self, counts: Counter[str] | None = None) -> Verdict:
        """Judge it, with the promises of recipes; count what was seen of these."""
        verdict = judge(
            self.history,
            clock_rate_max=self.clock_rate_max,
            lease_seconds=self.lease_seconds,
            events_have_zxids=self.events_have_zxids,
        )
        verdict.violations += judge_promises(
            verdict.timeline, Counter() if counts is None else counts
        )
        return verdict

    def write(self, path: Path) -> None:
        """Write it to a file, whose folder is made if need be."""
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = {
            "clock_rate_max": self.clock_rate_max,
            "lease_seconds": self.lease_seconds,
            "events_have_zxids": self.events_have_zxids,
        }
        with _open(path, "wt") as file:
            file.write(json.dumps(beside) + "\n")
            self.history.dump(file)

    @classmethod
    def read(cls, path: Path) -> Kept:
        """Read what `write` has written. Raises OSError, and ValueError if it is something else."""
        with _open(path, "rt") as file:
            try:
                beside = json.loads(file.readline())
                return cls(
                    History.load(file),
                    float(beside["clock_rate_max"]),
                    float(beside["lease_seconds"]),
                    bool(beside["events_have_zxids"]),
                )
            except (ValueError, TypeError, KeyError, EOFError, zlib.error) as error:
                raise ValueError(f"{path}: no kept history: {error}") from error


def _open(path: Path, mode: str) -> IO[str]:
    if path.suffix == _COMPRESSED:
        return gzip.open(path, mode, encoding="utf-8")  # type: ignore[return-value]
    return path.open(mode, encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="kept", description="Judge histories that were kept.")
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    options = parser.parse_args(arguments)
    status = 0
    for path in options.files:
        try:
            verdict = Kept.read(path).judge()
        except (OSError, ValueError) as error:
            sys.stderr.write(f"{error}\n")
            status = 2
            continue
        calls, log = len(verdict.calls.calls), len(verdict.calls.log)
        sys.stdout.write(f"{path}: {calls} calls, {log} zxids: {verdict.report()}\n")
        if not verdict.is_good:
            status = max(status, 1)
    return status


if __name__ == "__main__":
    sys.exit(main())

"""Recorded instruction counts, and the comparison with new ones.

A baseline is valid for one combination of machine, interpreter and build: counts of different
combinations cannot be compared. All baselines are in one file, `bench/baselines.json`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final, Self

from bench.servers import BenchError

NONE: Final = "–"


@dataclass(frozen=True)
class Measured:
    """The instructions of one operation of each path, and where they were counted."""

    # Counts of another combination cannot be compared.
    combination: dict[str, str]
    # Versions that may change the counts.
    versions: dict[str, str]
    instructions: dict[str, float]

    @property
    def name(self) -> str:
        """The combination as readable text."""
        return ", ".join(value for value in self.combination.values() if value)

    def as_json(self) -> dict[str, Any]:
        instructions = {path: round(count, 1) for path, count in self.instructions.items()}
        return {
            "combination": self.combination,
            "versions": self.versions,
            "instructions": instructions,
        }


class Verdict(Enum):
    """The verdict on a path, shown beside its change."""

    SAME = ""
    WORSE = "MORE"
    BETTER = "less"
    NEW = "no baseline"


@dataclass(frozen=True)
class Finding:
    """One path: its count before and now."""

    path: str
    before: float | None
    now: float
    verdict: Verdict

    @property
    def change(self) -> str:
        """The change in percent."""
        return NONE if self.before is None else f"{self.now / self.before - 1:+.2%}"


class Baselines:
    """All recorded baselines."""

    def __init__(self, recorded: list[Measured]) -> None:
        self.recorded = recorded

    @classmethod
    def load(cls, file: Path) -> Self:
        """Read the file; a missing file has no baselines. Raises BenchError."""
        if not file.exists():
            return cls([])
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
            return cls([Measured(**one) for one in found["baselines"]])
        except (ValueError, KeyError, TypeError) as error:
            raise BenchError(f"{file} cannot be read: {error!r}") from None

    def save(self, file: Path) -> None:
        found = {"baselines": [one.as_json() for one in self.recorded]}
        file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def of(self, measured: Measured) -> Measured | None:
        """Return the baseline for the combination of these counts, if there is one."""
        same = (one for one in self.recorded if one.combination == measured.combination)
        return next(same, None)

    def record(self, measured: Measured) -> None:
        """Make these counts the baseline of their combination; keep the others."""
        others = [one for one in self.recorded if one.combination != measured.combination]
        self.recorded = sorted([*others, measured], key=lambda one: one.name)


def compare(before: Measured | None, now: Measured, tolerance: float) -> list[Finding]:
    """Return a finding for every path."""
    findings = []
    for path, count in now.instructions.items():
        old = None if before is None else before.instructions.get(path)
        if old is None:
            verdict = Verdict.NEW
        elif count > old * (1 + tolerance):
            verdict = Verdict.WORSE
        elif count < old * (1 - tolerance):
            verdict = Verdict.BETTER
        else:
            verdict = Verdict.SAME
        findings.append(Finding(path, old, count, verdict))
    return findings


def table(findings: list[Finding]) -> str:
    """Return a table for a terminal."""
    rows = [["path", "baseline", "now", "change", ""]]
    for one in findings:
        before = NONE if one.before is None else f"{one.before:,.0f}"
        rows.append([one.path, before, f"{one.now:,.0f}", one.change, one.verdict.value])
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join(
        "  ".join(
            [row[0].ljust(widths[0])]
            + [row[column].rjust(widths[column]) for column in (1, 2, 3)]
            + [row[4]]
        ).rstrip()
        for row in rows
    )


def other_versions(before: Measured, now: Measured) -> list[str]:
    """Return the versions that have changed."""
    return [
        f"{name} {before.versions.get(name, NONE)} → {version}"
        for name, version in now.versions.items()
        if before.versions.get(name) != version
    ]

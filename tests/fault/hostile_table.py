"""Runs every case of the hostile family and makes the table of what they cost.

    python -m tests.fault.hostile_table --scale 5
    python -m tests.fault.hostile_table --scale 5 --write
    python -m tests.fault.hostile_table --only identities

It ends with status 1 if a case takes more memory than it may, or, from scale 5 on, keeps others
waiting for longer than 250 ms: meant for a machine that has nothing else to do.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from paddock.state import tree
from tests.fault.bystander import TIMEOUT_MS
from tests.fault.hostile import Case, Cost, Range, check
from tests.fault.hostile_crowds import CROWD_ATTACKS
from tests.fault.hostile_identities import IDENTITY_ATTACKS
from tests.fault.hostile_operations import cases
from tests.fault.hostile_trees import TREE_ATTACKS

#: The scale from which on waits are judged, and what they may be.
STRICT_SCALE = 5
STRICT_WAIT_S = 0.25

PAGE = Path(__file__).parents[2] / "docs/explanation/hostile.md"
BEGIN = "<!-- written by tests/fault/hostile_table.py: begin -->"
END = "<!-- end -->"

_HEADINGS = (
    "case",
    "operation",
    "what grows",
    "sent before",
    "sent",
    "kept",
    "peak",
    "allowed",
    "longest wait: read",
    "write",
    "next start",
)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="hostile_table", description="Measure attacks.")
    parser.add_argument("--scale", type=int, default=1, help="how large they are")
    parser.add_argument("--write", action="store_true", help="write the table into its page")
    parser.add_argument("--only", default="", help="cases with this in their names")
    options = parser.parse_args(arguments)
    if options.scale < 1:
        parser.error("--scale: 1 or more")
    if options.write and options.only:
        parser.error("--write: the table has all cases, so not together with --only")
    chosen = [one for one in all_cases() if options.only in one.name]
    if not chosen:
        parser.error(f"--only: no case has {options.only!r} in its name")
    costs: list[Cost] = []
    wrong: list[str] = []
    wait_s_max = STRICT_WAIT_S if options.scale >= STRICT_SCALE else TIMEOUT_MS / 1000
    with tempfile.TemporaryDirectory(prefix="paddock-hostile-") as folder:
        with Range(Path(folder), options.scale, shares=False) as range_:
            for case in chosen:
                try:
                    cost = range_.run(case)
                except Exception as problem:
                    wrong.append(f"{case.name}: {problem!r}")
                    print(f"{case.name}: FAILED {problem!r}", flush=True)
                    continue
                print(f"{case.name}: {cost}", flush=True)
                costs.append(cost)
                wrong.extend(
                    f"{case.name}: {one}" for one in check(cost, options.scale, wait_s_max)
                )
    text = section(costs, options.scale)
    print(f"\n{text}")
    if options.write and len(costs) == len(chosen):
        PAGE.write_text(with_section(PAGE.read_text(), text))
    for one in wrong:
        print(one, file=sys.stderr)
    return 1 if wrong else 0


def all_cases() -> list[Case]:
    return [*IDENTITY_ATTACKS, *TREE_ATTACKS, *CROWD_ATTACKS, *cases()]


def section(costs: Sequence[Cost], scale: int) -> str:
    """Return what the page says of a run, with its table."""
    build = "compiled" if not tree.__file__.endswith(".py") else "plain Python"
    day = datetime.now(UTC).date().isoformat()
    lines = [
        f"Measured on {day} at scale {scale}: two cores, {build}.",
        "",
        f"| {' | '.join(_HEADINGS)} |",
        f"|{'---|' * 3}{'---:|' * (len(_HEADINGS) - 3)}",
        *(f"| {' | '.join(cells(cost, scale))} |" for cost in costs),
    ]
    return "\n".join(lines) + "\n"


def cells(cost: Cost, scale: int) -> tuple[str, ...]:
    again = "" if cost.restart_s is None else f"{cost.restart_s:.1f} s, {_mb(cost.restart_mb or 0)}"
    return (
        cost.case.name,
        cost.case.operation,
        cost.case.grows,
        _size(cost.prepared_bytes),
        _size(cost.sent_bytes),
        _mb(cost.kept_mb),
        _mb(cost.peak_mb),
        _mb(cost.case.memory_mb_max(scale)),
        f"{cost.waits.read * 1000:.0f} ms",
        f"{cost.waits.write * 1000:.0f} ms",
        again,
    )


def written(page: str) -> str:
    """Return what stands between the two lines of the page that hold the table."""
    _, begin, rest = page.partition(BEGIN)
    between, end, _ = rest.partition(END)
    assert begin, f"the page has no line {BEGIN}"
    assert end, f"the page has no line {END}"
    return between


def with_section(page: str, text: str) -> str:
    """Return the page with another table."""
    return page.replace(f"{BEGIN}{written(page)}{END}", f"{BEGIN}\n\n{text}\n{END}")


def _size(size: int) -> str:
    return f"{size / 1000:,.0f} kB" if size < 10_000_000 else f"{size / 1_000_000:,.0f} MB"


def _mb(size: float) -> str:
    return f"{max(0.0, size):.0f} MB"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

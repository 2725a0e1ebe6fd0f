"""Runs every case of the hostile family, small and large, and makes the table of what they cost.

    python -m tests.fault.stage.hostile_table --scale 5
    python -m tests.fault.stage.hostile_table --scale 5 --write
    python -m tests.fault.stage.hostile_table --only identities

Each case is run at scale 1 and at the one that is asked for, so that the table shows a cost as a
function of size. It ends with status 1 if a case takes more memory than it may, if many requests
are worked off in one step, or, from scale 5 on, if others wait for longer than 250 ms, a step that
is not atomic takes more than 50 ms of a processor, or one that is grows by more than the size:
meant for a machine that has nothing else to do. A case during which the host of a virtual machine
took its processors away is run again, as long as there is patience.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from paddock.state import tree
from tests.fault.stage.bystander import TIMEOUT_MS
from tests.fault.stage.hostile import Case, Cost, Range, check
from tests.fault.stage.hostile_crowds import CROWD_ATTACKS
from tests.fault.stage.hostile_identities import IDENTITY_ATTACKS
from tests.fault.stage.hostile_operations import cases
from tests.fault.stage.hostile_trees import TREE_ATTACKS
from tests.support.host import STOLEN_MAX, ProcessorTime

#: The scale from which on waits are judged, and what they may be.
STRICT_SCALE = 5
STRICT_WAIT_S = 0.25

#: For how long a case is run again because the host took too much of the time.
PATIENCE_S = 60.0

PAGE = Path(__file__).parents[3] / "docs/explanation/hostile.md"
BEGIN = "<!-- written by tests/fault/stage/hostile_table.py: begin -->"
END = "<!-- end -->"

#: What a step may take at any size without being said to grow: what the server gives to its work in
#: one pass of the loop anyway, 10 ms and a little. And how much is too much, if it grows faster
#: than the size.
SMALL_STEP_S = 0.015
LARGE_STEP_S = 0.05

_HEADINGS = (
    "case",
    "operation",
    "what grows",
    "sent before",
    "sent",
    "kept",
    "peak of allowed",
    "longest step",
    "computed",
    "with size",
    "longest wait: read",
    "write",
    "next start",
)
_TEXTS = 3


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="hostile_table", description="Measure attacks.")
    parser.add_argument("--scale", type=int, default=1, help="how large they are, besides scale 1")
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
    scales = sorted({1, options.scale})
    wrong: list[str] = []
    measured = [_run(chosen, scale, wrong) for scale in scales]
    # What has failed at one of the scales has no row.
    rows = [
        [costs[case.name] for costs in measured]
        for case in chosen
        if all(case.name in costs for costs in measured)
    ]
    if options.scale >= STRICT_SCALE:
        wrong.extend(sentence for row in rows for sentence in check_steps(row, scales))
    text = section(rows, scales)
    print(f"\n{text}")
    if options.write and len(rows) == len(chosen):
        PAGE.write_text(with_section(PAGE.read_text(), text))
    for one in wrong:
        print(one, file=sys.stderr)
    return 1 if wrong else 0


def _run(chosen: Sequence[Case], scale: int, wrong: list[str]) -> dict[str, Cost]:
    """Run cases at one scale; return their costs by name, and add to what is wrong."""
    costs: dict[str, Cost] = {}
    wait_s_max = STRICT_WAIT_S if scale >= STRICT_SCALE else TIMEOUT_MS / 1000
    with tempfile.TemporaryDirectory(prefix="paddock-hostile-") as folder:
        with Range(Path(folder), scale, shares=False) as range_:
            for case in chosen:
                name = f"{case.name} at scale {scale}"
                try:
                    cost = _measure(range_, case)
                except Exception as problem:
                    wrong.append(f"{name}: {problem!r}")
                    print(f"{name}: FAILED {problem!r}", flush=True)
                    continue
                print(f"{name}: {cost}", flush=True)
                costs[case.name] = cost
                if cost.is_disturbed() and scale >= STRICT_SCALE:
                    wrong.append(f"{name}: not measured, the host took {cost.stolen:.0%} of it")
                wrong.extend(f"{name}: {one}" for one in check(cost, scale, wait_s_max))
    return costs


def _measure(range_: Range, case: Case) -> Cost:
    """Run a case until it was not disturbed; return its cost."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        cost = range_.run(case)
        if not cost.is_disturbed() or time.monotonic() > deadline:
            return cost
        print(f"{case.name}: again, the host took {cost.stolen:.0%} of the time", flush=True)
        _wait_calm(deadline)


def _wait_calm(deadline: float) -> None:
    """Wait until the host leaves us the processors for a second."""
    while time.monotonic() < deadline:
        before = ProcessorTime.now()
        time.sleep(1)
        if before.stolen_since() <= STOLEN_MAX:
            return


def all_cases() -> list[Case]:
    return [*IDENTITY_ATTACKS, *TREE_ATTACKS, *CROWD_ATTACKS, *cases()]


def growth(row: Sequence[Cost], scales: Sequence[int]) -> str:
    """Return how the longest step grows with the size, by the processor time that it takes.

    Two points are no line: a power of the size below 1/2 is taken for none, and up to 3/2 for one.
    """
    first, last = row[0].steps.longest_cpu, row[-1].steps.longest_cpu
    ratio = scales[-1] / scales[0]
    if last <= max(first * ratio**0.5, SMALL_STEP_S):
        return "constant"
    return "linear" if last <= first * ratio**1.5 else "worse"


def check_steps(row: Sequence[Cost], scales: Sequence[int]) -> list[str]:
    """Return what is wrong with the longest step of a case, and with how it grows."""
    first, last, case = row[0].steps, row[-1].steps, row[-1].case
    wrong = []
    if not case.is_atomic and last.longest_cpu * 1000 > case.step_ms_max:
        wrong.append(f"{case.name}: {last}, at most {case.step_ms_max:.0f} ms expected")
    if last.longest_cpu > LARGE_STEP_S and growth(row, scales) == "worse":
        wrong.append(f"{case.name}: grows faster than the size, from {first} to {last}")
    return wrong


def section(rows: Sequence[Sequence[Cost]], scales: Sequence[int]) -> str:
    """Return what the page says of a run, with its table."""
    build = "compiled" if not tree.__file__.endswith(".py") else "plain Python"
    day = datetime.now(UTC).date().isoformat()
    sizes = " → ".join(map(str, scales))
    lines = [
        f"Measured on {day} at scale {sizes}: two cores, {build}.",
        "",
        f"| {' | '.join(_HEADINGS)} |",
        f"|{'---|' * _TEXTS}{'---:|' * (len(_HEADINGS) - _TEXTS)}",
        *(f"| {' | '.join(cells(row, scales))} |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def cells(row: Sequence[Cost], scales: Sequence[int]) -> tuple[str, ...]:
    """Return a row of the table: what a case costs at each scale, or else at the last."""
    last, case = row[-1], row[-1].case
    again = "" if last.restart_s is None else f"{last.restart_s:.1f} s, {_mb(last.restart_mb or 0)}"
    return (
        case.name,
        case.operation,
        case.grows,
        _sizes([last.prepared_bytes]),
        _sizes([cost.sent_bytes for cost in row]),
        _pair([max(0.0, cost.kept_mb) for cost in row], "MB"),
        f"{max(0.0, last.peak_mb):.0f} of {_mb(case.memory_mb_max(scales[-1]))}",
        _pair([cost.steps.longest * 1000 for cost in row], "ms"),
        _pair([cost.steps.longest_cpu * 1000 for cost in row], "ms"),
        _said_growth(row, scales) if len(row) > 1 else "",
        f"{last.waits.read * 1000:.0f} ms",
        f"{last.waits.write * 1000:.0f} ms",
        again,
    )


def _said_growth(row: Sequence[Cost], scales: Sequence[int]) -> str:
    case, said = row[-1].case, growth(row, scales)
    is_long = row[-1].steps.longest_cpu > LARGE_STEP_S
    return f"{said}, atomic" if is_long and (case.is_atomic or case.step_ms_max > 50) else said


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


def _sizes(sizes: Sequence[int]) -> str:
    if max(sizes) < 10_000_000:
        return _pair([size / 1000 for size in sizes], "kB")
    return _pair([size / 1_000_000 for size in sizes], "MB")


def _pair(figures: Sequence[float], unit: str) -> str:
    """Return figures from the first scale to the last, or one of them if they are the same."""
    said = list(dict.fromkeys(f"{figure:,.0f}" for figure in figures))
    return f"{' → '.join(said)} {unit}"


def _mb(size: float) -> str:
    return f"{max(0.0, size):.0f} MB"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

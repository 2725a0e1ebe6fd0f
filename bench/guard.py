"""`make bench-guard`: check that the hot paths do not execute more instructions than before.

Time depends on the load of a machine; the number of instructions does not. So this can fail a
build where a timed test could not. Each path of `bench.guard_paths` is counted by callgrind, on the
compiled build and on plain Python, and compared with the baseline in `bench/baselines.json` for the
same machine, interpreter and build. With --against it is compared with another checkout of Paddock,
which is counted on this machine and needs no baseline. The status:

    0  nothing grew; also if there was nothing to compare with, unless CI is set
    1  a path grew by more than the tolerance, or could not be taken
    3  there was nothing to compare with, and CI is set: CI must have a baseline
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bench import callgrind
from bench.baselines import Baselines, Finding, Measured, Verdict, compare, other_versions, table
from bench.servers import BenchError

ROOT: Final = Path(__file__).resolve().parent.parent
BASELINES: Final = ROOT / "bench" / "baselines.json"
# The tolerance. Runs of the same code differ by less than 0.1 %, mostly by nothing, even with six
# other processes per processor. Other code beside it, or another folder name, changes addresses,
# and with them collisions in hash tables and in the caches of the interpreter: up to 0.8 %.
TOLERANCE: Final = 0.02
# Rounds of a hundred operations.
ROUNDS: Final = 10
DEADLINE_S: Final = 1800.0

OK: Final = 0
GREW: Final = 1
NOTHING_TO_COMPARE: Final = 3

_RECORD: Final = "make bench-guard RECORD=1"
# The C library copies memory in the way that suits the processor. Here it is always the same way.
_PLAIN_COPIES: Final = {
    "aarch64": "glibc.cpu.name=generic",
    "x86_64": "glibc.cpu.hwcaps=-AVX2,-AVX512VL,-ERMS",
}


def measure(builds: Mapping[str, Path], rounds: int) -> list[Measured]:
    """Count all paths on each build, by its name and where it is. Raises BenchError."""
    command = [sys.executable, "-m", "bench.guard_paths", str(rounds)]
    running: list[callgrind.Counting] = []
    with tempfile.TemporaryDirectory(prefix="paddock-guard-") as folder:
        try:
            for name, place in builds.items():
                _check(name, command[:-1], environment(place))
                parts = Path(folder, name)
                parts.mkdir()
                running.append(callgrind.start(command, environment(place), ROOT, parts))
            return [read(*one.finish(DEADLINE_S)) for one in running]
        finally:
            for one in running:
                one.stop()


def _check(name: str, command: list[str], environment: dict[str, str]) -> None:
    """Check quickly that the paths work on that build; this also caches modules."""
    done = subprocess.run(
        [*command, "1"], env=environment, cwd=ROOT, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise BenchError(f"a path of the {name} build fails: {done.stderr.strip()[-2000:]}")
    found = json.loads(done.stdout)["combination"]["build"]
    if found != name:
        raise BenchError(f"what was to be the {name} build is {found}")


def environment(place: Path) -> dict[str, str]:
    """Return a deterministic environment, with Paddock in that folder."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": f"{place.resolve()}{os.pathsep}{ROOT}",
        "PYTHONHASHSEED": "0",
        "PYTHONNOUSERSITE": "1",
        "LC_ALL": "C.UTF-8",
        "GLIBC_TUNABLES": _PLAIN_COPIES.get(platform.machine(), ""),
    }


def read(output: str, counted: list[int]) -> Measured:
    """Combine the output of `bench.guard_paths` with the counts at its marks."""
    report = json.loads(output)
    operations: dict[str, int] = report["operations"]
    if len(counted) != 2 * len(operations):
        raise BenchError(f"callgrind saw {len(counted)} marks of {2 * len(operations)}")
    # Every second part begins with a mark and ends with one.
    each = zip(operations.items(), counted[1::2], strict=True)
    instructions = {path: count / number for (path, number), count in each}
    return Measured(report["combination"], report["versions"], instructions)


def judge(baselines: Baselines, measured: list[Measured]) -> int:
    """Print the tables and their meaning; return the status."""
    status = OK
    for now in measured:
        before = baselines.of(now)
        findings = _show(before, now)
        if before is None:
            print(f"There is no baseline for this combination. `{_RECORD}` makes one of it.\n")
            status = status or NOTHING_TO_COMPARE
            continue
        if _named(findings, Verdict.WORSE):
            status = GREW
            _tell_growth(before, now, findings)
        elif _named(findings, Verdict.NEW):
            status = status or NOTHING_TO_COMPARE
            print(f"There is a new path. `{_RECORD}` takes it into the baseline.\n")
        if better := _named(findings, Verdict.BETTER):
            print(f"Better than the baseline: {better}. `{_RECORD}` keeps it so.\n")
    return status


def _show(before: Measured | None, now: Measured) -> list[Finding]:
    findings = compare(before, now, TOLERANCE)
    print(f"{now.name}: instructions of one operation\n\n{table(findings)}\n")
    return findings


def _tell_growth(before: Measured, now: Measured, findings: list[Finding]) -> None:
    worse = _named(findings, Verdict.WORSE)
    print(f"bench-guard: more than {TOLERANCE:.0%} above the baseline: {worse}", file=sys.stderr)
    if others := other_versions(before, now):
        print(f"bench-guard: since then: {', '.join(others)}", file=sys.stderr)
    print(f"bench-guard: if it has to be, `{_RECORD}` makes it the baseline", file=sys.stderr)


def _named(findings: list[Finding], verdict: Verdict) -> str:
    return ", ".join(f"{one.path} {one.change}" for one in findings if one.verdict is verdict)


def builds_of(checkout: Path) -> dict[str, Path]:
    """Return the builds of another checkout: the source, and the build of `make bench`."""
    places = {"compiled": checkout / "build" / "optimized", "pure": checkout / "src"}
    found = {name: place for name, place in places.items() if (place / "paddock").is_dir()}
    if "pure" not in found:
        raise BenchError(f"{checkout} is no checkout of Paddock")
    return found


def forgiven(status: int, environment: Mapping[str, str]) -> int:
    """Return the effective status: only CI must have a baseline."""
    return OK if status == NOTHING_TO_COMPARE and not environment.get("CI") else status


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="bench-guard",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--compiled", type=Path, metavar="FOLDER", help="where a compiled build is")
    parser.add_argument(
        "--against", type=Path, metavar="CHECKOUT", help="compare with this, not with a baseline"
    )
    parser.add_argument("--record", action="store_true", help="make what is counted the baseline")
    chosen = parser.parse_args()
    if not callgrind.is_installed():
        print("bench-guard: valgrind is not installed: nothing is compared", file=sys.stderr)
        return forgiven(NOTHING_TO_COMPARE, os.environ)
    builds = {"pure": ROOT / "src"}
    if chosen.compiled is not None:
        builds = {"compiled": chosen.compiled, **builds}
    try:
        if chosen.against is None:
            baselines = Baselines.load(BASELINES)
        else:
            baselines = Baselines(measure(builds_of(chosen.against), ROUNDS))
        measured = measure(builds, ROUNDS)
    except BenchError as error:
        print(f"bench-guard: {error}", file=sys.stderr)
        return GREW
    if not chosen.record or chosen.against is not None:
        return forgiven(judge(baselines, measured), os.environ)
    for now in measured:
        _show(baselines.of(now), now)
        baselines.record(now)
    baselines.save(BASELINES)
    print(f"Recorded in {BASELINES.relative_to(ROOT)}")
    return OK


if __name__ == "__main__":
    sys.exit(main())

"""`make mutants`: run the campaign on each mutation, and write the table."""

from __future__ import annotations

import argparse
import os
import sys

from tests.mutants.mutation import check
from tests.mutants.page import PAGE, page
from tests.mutants.run import SEEDS_MAX, Found, find, find_all, read_found, write_found
from tests.mutants.table import BY_NAME, MUTATIONS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", choices=list(BY_NAME))
    parser.add_argument("--missing", action="store_true", help="those that were not found yet")
    parser.add_argument("--seeds", type=int, default=SEEDS_MAX, help="how many are tried")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--page", action="store_true", help="only write the page anew")
    options = parser.parse_args()
    for one in MUTATIONS:
        check(one)
    # What is found is kept at once, so that a run that was stopped can go on with what is missing.
    found = read_found() if options.missing or options.page else {}
    wanted = [BY_NAME[name] for name in options.only or BY_NAME if name not in found]
    if options.page:
        wanted = []
    for one, how in find_all(wanted, range(1, options.seeds + 1), options.processes):
        if how is None:
            _say(f"{one.name}: NOT FOUND by {options.seeds} seeds")
            continue
        found[one.name] = how
        _say(f"{one.name}: seed {how.seed}: {how.check[:150]}")
        if not options.only:
            write_found({name: found[name] for name in BY_NAME if name in found})
    if not options.only:
        PAGE.write_text(page(found))
    return 0 if options.page else _conclude(found, options.only or list(BY_NAME))


def _conclude(found: dict[str, Found], wanted: list[str]) -> int:
    """Say how many were found, and run the same seeds without a mutation: none of them may fail."""
    _say(f"{sum(name in found for name in wanted)} of {len(wanted)} are found")
    last = max((how.seed for how in found.values()), default=0)
    control = find(None, range(1, last + 1))
    if control is not None:
        _say(f"without any mutation, seed {control.seed} fails: {control.check}")
    return 1 if control is not None or any(name not in found for name in wanted) else 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

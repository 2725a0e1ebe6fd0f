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
    parser.add_argument("--seeds", type=int, default=SEEDS_MAX, help="how many are tried")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--page", action="store_true", help="only write the page anew")
    options = parser.parse_args()
    if options.page:
        PAGE.write_text(page(read_found()))
        return 0
    for one in MUTATIONS:
        check(one)
    wanted = [BY_NAME[name] for name in options.only] or list(MUTATIONS)
    found: dict[str, Found] = {}
    survivors = []
    for one, how in find_all(wanted, range(1, options.seeds + 1), options.processes):
        if how is None:
            survivors.append(one.name)
            _say(f"{one.name}: NOT FOUND by {options.seeds} seeds")
        else:
            found[one.name] = how
            _say(f"{one.name}: seed {how.seed}: {how.check[:150]}")
    last = max((how.seed for how in found.values()), default=0)
    # Without a mutation none of these seeds may fail, or they prove nothing.
    control = find(None, range(1, last + 1))
    if control is not None:
        _say(f"without any mutation, seed {control.seed} fails: {control.check}")
    if not options.only:
        write_found(found)
        PAGE.write_text(page(found))
    _say(f"{len(found)} of {len(wanted)} are found")
    return 1 if survivors or control is not None else 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

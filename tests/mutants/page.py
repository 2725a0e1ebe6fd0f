"""The page of the mutations, `docs/explanation/mutants.md`, made from what was found."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tests.mutants.mutation import ROOT
from tests.mutants.run import SEEDS_MAX, Found
from tests.mutants.table import GROUPS, MUTATIONS

PAGE: Final = ROOT / "docs" / "explanation" / "mutants.md"
_CHECK_LENGTH_MAX: Final = 160
# What differs from seed to seed: sessions, zxids.
_NUMBER: Final = re.compile(r"0x[0-9a-f]+")

_HEAD: Final = """\
# What the simulation finds

A simulation that has found nothing proves nothing: perhaps it looks at nothing. So bugs are planted
in it. Each line below is a small change of the code that ships, one that breaks one of the rules by
which Paddock is safe. It is made to a copy of the source, and the campaign of simulated worlds
(`make simulate`) runs on that copy, as it is: no test is written for a mutation. It is found when a
world breaks one of the judge's rules, or does not come to rest.

{found} of {count} are found, each by the first seed of at most {seeds} that fails. A mutation that
survives is a check that is missing, and is added to the worlds or to the judge. The seeds begin
with 1; every fourth world has a single server, the others have two or three. They hold for the code
that `make mutants` was last run on: when that changes, a seed may be another world.

Not everything that can go wrong on a shared log can happen in these worlds: a machine that has no
memory left in the middle of a write, a message of etcd's that comes in fragments, and how etcd
itself is configured are left to the tests of those parts.

`make mutants` runs all of them again and writes this page; the changes themselves are in
`tests/mutants`.
"""


def page(found: dict[str, Found]) -> str:
    """Return the text of the page."""
    head = _HEAD.format(found=len(found), count=len(MUTATIONS), seeds=f"{SEEDS_MAX:,}")
    return head + "".join(_tables(found))


def _tables(found: dict[str, Found]) -> Iterator[str]:
    for title, mutations in GROUPS:
        if mutations:
            yield f"\n## {title}\n\n| mutation | the rule that it breaks | seed | found by |\n"
            yield "|---|---|--:|---|\n"
        for one in mutations:
            how = found.get(one.name)
            seed, check = ("", "not found") if how is None else (str(how.seed), _shown(how.check))
            yield f"| `{one.name}` | {one.rule} | {seed} | {check} |\n"


def _shown(check: str) -> str:
    """Return what a check said, in one cell."""
    text = " ".join(_NUMBER.sub("…", check).split()).replace("|", "\\|").replace("<", "&lt;")
    if len(text) > _CHECK_LENGTH_MAX:
        text = text[: text.rfind(" ", 0, _CHECK_LENGTH_MAX)] + " …"
    rule, colon, rest = text.partition(": ")
    return f"**{rule}**: {rest}" if colon else text

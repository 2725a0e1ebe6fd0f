"""The first worlds of the campaign (`make simulate`), and that they have seen what they are for.

They are the same each time: what fails here fails again with its seed.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from paddock.testing.simulation.campaign import TO_BE_SEEN, Terms, run_seed

SEEDS = 60
# Seeds that share one test.
GROUP = 10

# What comes too seldom for so few worlds.
SELDOM = {
    "disk: torn tails",
    "lost its log: TrimmedError",
    "recipes: grants that outlived their session",
}


@pytest.fixture(scope="module")
def seen() -> Counter[str]:
    return Counter()


@pytest.mark.parametrize("first", range(1, SEEDS, GROUP))
def test_worlds_break_no_rule(first: int, seen: Counter[str], tmp_path: Path) -> None:
    terms = Terms(failures=tmp_path)
    for seed in range(first, first + GROUP):
        outcome = run_seed(terms, seed)
        assert not outcome.problems, "\n".join(outcome.said)
        seen.update(outcome.counts, seeds=1)


def test_they_have_seen_what_they_are_for(seen: Counter[str]) -> None:
    if seen["seeds"] < SEEDS:
        pytest.skip("it is about all of the worlds before it")
    assert [name for name in TO_BE_SEEN if not seen[name] and name not in SELDOM] == []

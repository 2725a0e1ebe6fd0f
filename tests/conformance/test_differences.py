"""The table of differences is what the suite uses, and nothing else asks which server it is."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests.conformance import differences
from tests.conformance.differences import AS_PADDOCK, Difference
from tests.support.release import Release

SUITE = sorted(Path(__file__).parent.glob("*.py"))
NAMES = [name for name, value in vars(differences).items() if isinstance(value, Difference)]


@pytest.mark.parametrize("name", NAMES)
def test_every_difference_has_a_reason_and_a_test(name: str) -> None:
    difference = getattr(differences, name)
    assert isinstance(difference, Difference)
    assert difference.name
    assert difference.reason
    # Some release is unlike ours, and what is said of one is not what the one before does.
    said = [difference.apache, *(later for _, later in sorted(difference.since.items()))]
    assert any(each not in (AS_PADDOCK, difference.paddock) for each in said)
    assert all(before != after for before, after in itertools.pairwise(said))
    assert difference.paddock not in said[1:]
    assert any(f"{name}.on(" in file.read_text() for file in SUITE)


def test_a_release_does_what_the_newest_one_did_that_is_not_newer() -> None:
    difference = Difference(
        "", "", apache="old", paddock="ours", since={(3, 9, 6): AS_PADDOCK, (3, 9): "new"}
    )
    expected = {
        (3, 8, 0): "old",
        (3, 8, 4): "old",
        (3, 9, 0): "new",
        (3, 9, 5): "new",
        (3, 9, 6): "ours",
        (4, 0, 0): "ours",
    }
    assert {release: difference.of(Release(*release)) for release in expected} == expected


def test_no_two_differences_share_a_name() -> None:
    titles = [getattr(differences, name).name for name in NAMES]
    assert len(set(titles)) == len(titles)

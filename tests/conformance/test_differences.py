"""The table of differences is what the suite uses, and nothing else asks which server it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance import differences
from tests.conformance.differences import Difference

SUITE = sorted(Path(__file__).parent.glob("test_*.py"))
NAMES = [name for name, value in vars(differences).items() if isinstance(value, Difference)]


@pytest.mark.parametrize("name", NAMES)
def test_every_difference_has_a_reason_and_a_test(name: str) -> None:
    difference = getattr(differences, name)
    assert isinstance(difference, Difference)
    assert difference.name
    assert difference.reason
    # One of the two is unlike ours, and what 3.9.5 does is said once only.
    assert difference.paddock != difference.apache or difference.has_own_39
    assert difference.apache39 not in (difference.apache, difference.paddock)
    assert any(f"{name}.on(" in file.read_text() for file in SUITE)


def test_no_two_differences_share_a_name() -> None:
    titles = [getattr(differences, name).name for name in NAMES]
    assert len(set(titles)) == len(titles)

"""Each scenario leaves the trace that is written in its file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.scenarios.player import play

HERE = Path(__file__).parent
RECORD = os.environ.get("PADDOCK_RECORD_SCENARIOS") == "1"


@pytest.mark.parametrize("path", sorted(HERE.glob("*.txt")), ids=lambda path: path.stem)
def test_the_scenario_leaves_its_trace(path: Path) -> None:
    expected = path.read_text(encoding="utf-8")
    played = play(expected)
    if RECORD:
        path.write_text(played, encoding="utf-8")
        return
    assert played == expected


def test_there_are_scenarios() -> None:
    assert list(HERE.glob("*.txt"))

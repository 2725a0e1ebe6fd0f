"""How much of the time the host of a virtual machine took."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import host
from tests.support.host import ProcessorTime


def line(*ticks: int) -> str:
    return f"cpu  {' '.join(map(str, ticks))}\ncpu0 1 1 1 1 1 1 1 1 1 1\n"


def test_the_part_that_was_stolen_of_all_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "stat"
    monkeypatch.setattr(host, "_STAT", file)
    # User, nice, system, idle, waiting, interrupts of two kinds, stolen; guests count as user.
    file.write_text(line(100, 0, 50, 800, 10, 0, 0, 40, 7, 7))
    before = ProcessorTime.now()
    file.write_text(line(150, 0, 60, 820, 10, 0, 0, 60, 9, 9))
    assert before.stolen_since() == pytest.approx(20 / 100)


def test_where_the_system_does_not_tell_nothing_is_stolen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "_STAT", tmp_path / "none")
    assert ProcessorTime.now().stolen_since() == 0

"""Histories as files: what was kept is judged as it was before, and what was changed is found."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from paddock.testing.simulation.history import History
from paddock.testing.simulation.kept import Kept, main
from paddock.testing.simulation.world import Result, kept_of, run_seed
from tests.support.tampering import TAMPERINGS
from tests.unit.testing.simulation.written import Written


@functools.cache
def world() -> Result:
    """A world with three servers, in which much goes wrong."""
    return run_seed(4, servers=3)


def broken() -> History:
    written = Written()
    one = written.connect("c1", 1, opened=1)
    written.reply(written.create(one, "/a"), 2, log=False)
    return written.history


@pytest.mark.parametrize("name", ["world.history", "world.history.gz"])
def test_what_was_kept_is_read_as_it_was(name: str, tmp_path: Path) -> None:
    kept = Kept(world().history, 1.1, 4.0, events_have_zxids=False)
    kept.write(tmp_path / "folder" / name)
    assert Kept.read(tmp_path / "folder" / name) == kept


def test_a_compressed_file_is_smaller(tmp_path: Path) -> None:
    kept = Kept(world().history)
    kept.write(tmp_path / "plain")
    kept.write(tmp_path / "small.gz")
    assert (tmp_path / "small.gz").stat().st_size < (tmp_path / "plain").stat().st_size / 4


def test_what_was_kept_gets_the_same_verdict(tmp_path: Path) -> None:
    kept_of(world().plan, world().history).write(tmp_path / "world.gz")
    assert world().verdict.is_good
    assert Kept.read(tmp_path / "world.gz").judge().is_good
    Kept(broken()).write(tmp_path / "broken.gz")
    violations = Kept(broken()).judge().violations
    assert violations
    assert Kept.read(tmp_path / "broken.gz").judge().violations == violations


@pytest.mark.parametrize("name", TAMPERINGS)
def test_a_history_that_was_tampered_with_is_failed(name: str, tmp_path: Path) -> None:
    rule, tamper = TAMPERINGS[name]
    kept_of(world().plan, tamper(world().history)).write(tmp_path / "tampered.gz")
    violations = Kept.read(tmp_path / "tampered.gz").judge().violations
    assert rule in {one.rule for one in violations}


def test_the_command_judges_each_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.history", tmp_path / "bad.history"
    Kept(History()).write(good)
    Kept(broken()).write(bad)
    assert main([str(good)]) == 0
    assert capsys.readouterr().out == f"{good}: 0 calls, 0 zxids: the history breaks no rule\n"
    assert main([str(bad), str(good)]) == 1
    shown = capsys.readouterr().out
    assert f"{bad}: 1 calls, 1 zxids: outcomes: 0x2 was acknowledged, and is not in" in shown
    assert f"{good}: " in shown


@pytest.mark.parametrize("text", ["", "{}\n", '{"at": 1, "kind": "fault"}\n', "no json\n"])
def test_a_file_that_is_no_history_is_named(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "other"
    path.write_text(text)
    assert main([str(path), str(tmp_path / "missing")]) == 2
    said = capsys.readouterr().err
    assert f"{path}: no kept history: " in said
    assert "missing" in said

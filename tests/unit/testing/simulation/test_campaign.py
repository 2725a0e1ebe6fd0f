"""Campaigns: many seeds, resumable, with a table."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from paddock.testing.simulation import campaign as module
from paddock.testing.simulation.campaign import TO_BE_SEEN, WORLDS_FOR_COVERAGE, Campaign, main
from paddock.testing.simulation.plan import Plan
from paddock.testing.simulation.world import Result, run_world


def test_a_campaign_runs_its_seeds_and_shows_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--seeds", "1:3", "--servers", "1", "--failures", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "2 worlds" in shown
    assert "0 failed" in shown
    assert "worlds with 1 servers" in shown


def test_a_campaign_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--servers", "1", "--state", str(tmp_path / "state.json")]
    assert main(["--seeds", "1:3", *arguments]) == 0
    ran: list[int] = []

    def run_noted(plan: Plan) -> Result:
        ran.append(plan.seed)
        return run_world(plan)

    monkeypatch.setattr(module, "run_world", run_noted)
    assert main(["--seeds", "1:4", *arguments]) == 0
    # Every third seed has a world of recipes as well.
    assert ran == [3, 3]
    assert "3 worlds" in capsys.readouterr().out


def test_a_failing_world_is_kept_with_its_story(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_badly(plan: Plan) -> Result:
        return replace(run_world(plan), failures=["as the test wants it"])

    monkeypatch.setattr(module, "run_world", run_badly)
    arguments = ["--seeds", "2:3", "--servers", "1", "--no-shrinking"]
    assert main([*arguments, "--failures", str(tmp_path)]) == 1
    assert "seed 2 fails" in capsys.readouterr().out
    assert "The story:" in (tmp_path / "seed-2-servers-1.txt").read_text()
    assert (tmp_path / "seed-2-servers-1.history").read_text().startswith('{"at"')


def test_a_long_campaign_must_have_seen_everything() -> None:
    campaign = Campaign()
    campaign.done = set(range(WORLDS_FOR_COVERAGE))
    assert campaign.missing() == list(TO_BE_SEEN)
    campaign.counts = Counter(dict.fromkeys(TO_BE_SEEN, 1))
    assert campaign.missing() == []
    campaign.counts["members: deposed"] = 0
    assert campaign.missing() == ["members: deposed"]
    campaign.done.pop()
    assert campaign.missing() == []

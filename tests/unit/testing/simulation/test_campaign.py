"""Campaigns: many seeds, on many cores, resumable, with a table."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from paddock.testing.simulation import campaign as module
from paddock.testing.simulation.campaign import (
    TO_BE_SEEN,
    WORLDS_FOR_COVERAGE,
    Campaign,
    Terms,
    main,
    run_campaign,
)
from paddock.testing.simulation.kept import Kept
from paddock.testing.simulation.plan import Plan
from paddock.testing.simulation.world import Result, run_world

ALONE = ["--servers", "1", "--processes", "1"]


def test_a_campaign_runs_its_seeds_and_shows_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--seeds", "1:3", *ALONE, "--failures", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "2 seeds, 2 worlds" in shown
    assert "0 failed" in shown
    assert "worlds with 1 servers" in shown


def test_a_campaign_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [*ALONE, "--state", str(tmp_path / "state.json")]
    assert main(["--seeds", "1:3", *arguments]) == 0
    ran: list[int] = []

    def run_noted(plan: Plan) -> Result:
        ran.append(plan.seed)
        return run_world(plan)

    monkeypatch.setattr(module, "run_world", run_noted)
    monkeypatch.setattr(module, "version", lambda: "changed")
    assert main(["--seeds", "1:4", *arguments]) == 0
    # Every third seed has a world of recipes as well.
    assert ran == [3, 3]
    shown = capsys.readouterr().out
    assert "3 seeds, 4 worlds" in shown
    assert "2 versions of the code" in shown


def test_several_processes_see_what_one_sees(tmp_path: Path) -> None:
    seen = []
    for processes in (1, 2):
        campaign = Campaign()
        run_campaign(campaign, range(1, 3), Terms(1, tmp_path), processes=processes)
        seen.append((campaign.done, campaign.counts, campaign.seconds, campaign.failed))
    assert seen[0] == seen[1]
    assert seen[0][0] == {1, 2}


def fail_from(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_badly(plan: Plan) -> Result:
        failures = ["as the test wants it"] if plan.seed >= seed else []
        return replace(run_world(plan), failures=failures)

    monkeypatch.setattr(module, "run_world", run_badly)


def test_a_failing_world_is_kept_with_its_story(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fail_from(2, monkeypatch)
    arguments = ["--seeds", "2:3", *ALONE, "--no-shrinking"]
    assert main([*arguments, "--failures", str(tmp_path)]) == 1
    assert "seed 2 fails" in capsys.readouterr().out
    assert "The story:" in (tmp_path / "seed-2-servers-1.txt").read_text()
    assert Kept.read(tmp_path / "seed-2-servers-1.history").judge().calls.calls


def test_a_campaign_may_stop_at_the_first_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_from(2, monkeypatch)
    campaign = Campaign()
    run_campaign(campaign, range(1, 5), Terms(1, tmp_path, shrinks=False), stops=True)
    assert campaign.done == {1, 2}
    assert list(campaign.failed) == [2]


def test_a_judge_that_raises_something_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_badly(plan: Plan) -> Result:
        raise ValueError("what cannot be")

    monkeypatch.setattr(module, "run_world", run_badly)
    assert main(["--seeds", "1:3", *ALONE, "--failures", str(tmp_path)]) == 1
    assert "seed 2: world: ValueError: what cannot be" in capsys.readouterr().out


def test_a_long_campaign_must_have_seen_everything() -> None:
    campaign = Campaign()
    campaign.worlds = WORLDS_FOR_COVERAGE
    assert campaign.missing() == list(TO_BE_SEEN)
    campaign.counts = Counter(dict.fromkeys(TO_BE_SEEN, 1))
    assert campaign.missing() == []
    campaign.counts["members: deposed"] = 0
    assert campaign.missing() == ["members: deposed"]
    campaign.worlds -= 1
    assert campaign.missing() == []


@pytest.mark.parametrize("text", ["x", "1:", "7:y"])
def test_seeds_that_are_none_are_named(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--seeds", text])
    assert f"{text!r}: expected 1000, or 7:8" in capsys.readouterr().err

"""Worlds: they break no rule, are the same each time, and find a server that is broken."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from paddock.server.replication.replica import Replica
from paddock.state.watches import Watches
from paddock.testing.simulation.plan import make_plan
from paddock.testing.simulation.world import run_seed, run_world

ROOT = Path(__file__).parents[4]

# Five worlds of one server, five of three.
DIGESTS = """
from paddock.cli.version import is_compiled
from paddock.testing.simulation.world import run_seed
print(is_compiled())
for seed in range(1, 11):
    print(run_seed(seed, 1 if seed % 2 else 3).digest())
"""


@pytest.mark.parametrize("servers", [1, 2, 3])
@pytest.mark.parametrize("seed", range(1, 5))
def test_a_world_breaks_no_rule(seed: int, servers: int) -> None:
    result = run_seed(seed, servers)
    assert not result.problems, result.report()


def test_a_seed_has_one_trace_in_every_process_and_build() -> None:
    here = [run_seed(seed, 1 if seed % 2 else 3).digest() for seed in range(1, 11)]
    # Its sets have another order; and it runs the source, also when the compiled build is tested.
    environment = dict(os.environ, PYTHONHASHSEED="4711", PYTHONPATH=str(ROOT / "src"))
    there = subprocess.run(
        [sys.executable, "-c", DIGESTS],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.split() == ["False", *here]


def test_different_seeds_have_different_traces() -> None:
    assert run_seed(1).digest() != run_seed(2).digest()


def test_a_part_of_a_plan_is_a_plan() -> None:
    plan = make_plan(3)
    result = run_world(plan.with_parts(plan.clients[:1], ()))
    assert not result.problems, result.report()
    assert result.counts["sessions"] >= 1


@pytest.mark.source
def test_a_server_that_loses_events_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Watches, "publish", lambda self, changes: None)
    result = run_seed(2)
    assert "watches" in result.kinds()
    assert "seed 2" in result.report()
    assert "The story:" in result.report()


@pytest.mark.source
def test_a_server_that_fails_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Replica, *arguments: object) -> None:
        raise ValueError("planted")

    monkeypatch.setattr(Replica, "follow", fail)
    result = run_seed(1)
    assert "s1: it does not start: ValueError('planted')" in result.failures

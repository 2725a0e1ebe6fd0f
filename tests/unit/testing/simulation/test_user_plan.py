"""The faults of users' worlds: from the seed, of the kinds that are wanted."""

import pytest

from paddock.testing.simulation import plan as p
from paddock.testing.simulation.user_plan import Faults, make_user_plan


def kinds(faults: Faults, servers: int = 1) -> set[str]:
    plans = [make_user_plan(seed, servers, faults, 60.0) for seed in range(1, 200)]
    return {fault.kind for plan in plans for fault in plan.faults}


def test_a_seed_has_one_plan() -> None:
    assert make_user_plan(3, 1, Faults.ALL, 60.0) == make_user_plan(3, 1, Faults.ALL, 60.0)
    assert make_user_plan(3, 1, Faults.ALL, 60.0) != make_user_plan(4, 1, Faults.ALL, 60.0)


@pytest.mark.parametrize(
    ("faults", "found"),
    [
        (Faults.NONE, set()),
        (Faults.PAUSES, {p.PAUSE_CLIENT}),
        (Faults.CONNECTIONS | Faults.KILLS, {p.CUT, p.CUT_REPLIES, p.KILL_CLIENT}),
        (Faults.CLOCKS, {p.JUMP}),
    ],
)
def test_only_wanted_kinds_come(faults: Faults, found: set[str]) -> None:
    assert kinds(faults) == found


def test_etcd_fails_where_there_is_one() -> None:
    assert p.QUORUM not in kinds(Faults.ALL)
    assert {p.QUORUM, p.UNLINK, p.KILL} <= kinds(Faults.ALL, servers=3)


def test_some_worlds_are_calm() -> None:
    assert make_user_plan(10, 1, Faults.ALL, 60.0).faults == ()


def test_a_simpler_plan_has_right_clocks_fewer_servers_and_a_quick_network() -> None:
    plans = [make_user_plan(seed, 3, Faults.ALL, 60.0) for seed in range(1, 30)]
    plan = next(plan for plan in plans if plan.has_clocks and plan.delay_max > 0.001)
    clocks, servers, delays = plan.simpler()
    assert clocks.clock_of("alice") == (1.0, 0.0)
    assert set(clocks.rates) == {1.0}
    assert servers.servers == 1
    assert delays.delay_max == 0.001
    assert plan.clock_of("alice") == plan.clock_of("alice")

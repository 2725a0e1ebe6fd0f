"""Plans: what a seed stands for."""

import dataclasses

from paddock.testing.simulation import plan as p
from paddock.testing.simulation.plan import make_plan


def test_a_seed_stands_for_one_plan() -> None:
    assert make_plan(7, 3) == make_plan(7, 3)
    assert make_plan(7, 3) != make_plan(8, 3)


def test_plans_of_many_seeds_have_every_kind_of_fault() -> None:
    single = {fault.kind for seed in range(200) for fault in make_plan(seed, 1).faults}
    several = {fault.kind for seed in range(200) for fault in make_plan(seed, 3).faults}
    assert single == set(p.SINGLE_FAULTS)
    assert several == {*p.CLUSTER_FAULTS, p.RESTORE}


def test_plans_of_many_seeds_have_every_kind_of_call() -> None:
    names = {
        wish.name
        for seed in range(30)
        for client in make_plan(seed).clients
        for burst in client.bursts
        for wish in burst.wishes
    }
    assert names >= {"create", "set", "delete", "multi", "sync", "add_watch", "close", "get"}


def test_clocks_are_at_most_ten_percent_apart_from_the_right_one() -> None:
    rates = {rate for seed in range(100) for rate in make_plan(seed, 3).rates}
    assert rates == {0.9, 1.0, 1.1}


def test_a_part_is_smaller_and_the_rest_is_the_same() -> None:
    plan = make_plan(5, 3)
    part = plan.with_parts(plan.clients[:1], plan.faults[1:])
    assert part.size() < plan.size()
    assert dataclasses.replace(part, clients=plan.clients, faults=plan.faults) == plan

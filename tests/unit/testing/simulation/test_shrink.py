"""Shrinking: what is left of a failing plan is what it fails by."""

import dataclasses
from collections import Counter

from paddock.testing.simulation.history import History
from paddock.testing.simulation.judge import judge
from paddock.testing.simulation.plan import Burst, ClientPlan, Fault, Plan, Wish
from paddock.testing.simulation.shrink import Shrinker
from paddock.testing.simulation.world import Result


def plan_of(faults: int, clients: int, calls: int) -> Plan:
    return Plan(
        1,
        1,
        tuple(
            ClientPlan(
                f"c{client}",
                "raw",
                2.0,
                tuple(
                    Burst(1.0, (Wish("get", f"/{call}"), Wish("set", f"/{call}")))
                    for call in range(calls)
                ),
            )
            for client in range(clients)
        ),
        tuple(Fault(float(number), "cut connections", number) for number in range(faults)),
        10.0,
        0.1,
        0.1,
    )


def fails(plan: Plan) -> bool:
    """Fail by two faults, and by two calls of one client."""
    faults = {fault.target for fault in plan.faults}
    calls = {
        (client.name, wish.name, wish.path)
        for client in plan.clients
        for burst in client.bursts
        for wish in burst.wishes
    }
    return {3, 8} <= faults and {("c1", "get", "/2"), ("c1", "set", "/5")} <= calls


def run(plan: Plan) -> Result:
    history = History()
    failures = ["rule: broken"] if fails(plan) else ["other: broken"]
    return Result(plan, history, judge(history), failures, Counter(), 0.0)


def test_the_least_is_left() -> None:
    plan = plan_of(faults=10, clients=4, calls=8)
    shrinker = Shrinker(run(plan), attempts_max=1_000, run=run)
    found = shrinker.shrink().plan
    assert fails(found)
    assert [fault.target for fault in found.faults] == [3, 8]
    assert [client.name for client in found.clients] == ["c1"]
    wishes = [wish for burst in found.clients[0].bursts for wish in burst.wishes]
    assert wishes == [Wish("get", "/2"), Wish("set", "/5")]
    assert found.size() == 5


def test_it_gives_up_after_so_many_attempts() -> None:
    shrinker = Shrinker(run(plan_of(10, 4, 8)), attempts_max=10, run=run)
    assert fails(shrinker.shrink().plan)
    assert shrinker.attempts == 10


def test_another_failure_does_not_count() -> None:
    plan = plan_of(2, 1, 1)
    shrinker = Shrinker(run(plan), run=lambda plan: dataclasses.replace(run(plan), failures=[]))
    assert shrinker.shrink().plan == plan

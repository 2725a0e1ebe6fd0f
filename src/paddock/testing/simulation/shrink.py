"""Shrinks a failing plan: fewer faults, clients and calls that still break one of the same rules.

Parts are left out by bisection: half of them, then quarters, down to single ones. What is left is
not the smallest plan there is, but none of its parts can be left out alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TypeVar

from paddock.testing.simulation.plan import Burst, ClientPlan, Fault, Plan
from paddock.testing.simulation.world import Result, run_world

T = TypeVar("T")


class Shrinker:
    """Looks for a smaller plan, with so many attempts at most."""

    def __init__(
        self,
        result: Result,
        *,
        attempts_max: int = 200,
        run: Callable[[Plan], Result] = run_world,
    ) -> None:
        self.result = result
        self.attempts = 0
        self._kinds = result.kinds()
        self._attempts_max = attempts_max
        self._run = run

    def shrink(self) -> Result:
        """Return the result of the smallest plan that was found."""
        size = -1
        while size != self.result.plan.size() and self.attempts < self._attempts_max:
            size = self.result.plan.size()
            self._shrink_faults()
            self._shrink_clients()
            self._shrink_calls()
        return self.result

    def _shrink_faults(self) -> None:
        def put(faults: Sequence[Fault]) -> Plan:
            return dataclasses.replace(self.result.plan, faults=tuple(faults))

        self._leave_out(list(self.result.plan.faults), put)

    def _shrink_clients(self) -> None:
        def put(clients: Sequence[ClientPlan]) -> Plan:
            return dataclasses.replace(self.result.plan, clients=tuple(clients))

        self._leave_out(list(self.result.plan.clients), put)

    def _shrink_calls(self) -> None:
        for place in range(len(self.result.plan.clients)):

            def put(bursts: Sequence[Burst], place: int = place) -> Plan:
                clients = list(self.result.plan.clients)
                clients[place] = dataclasses.replace(clients[place], bursts=_joined(bursts))
                return dataclasses.replace(self.result.plan, clients=tuple(clients))

            single = [
                Burst(burst.pause if not number else -1.0, (wish,))
                for burst in self.result.plan.clients[place].bursts
                for number, wish in enumerate(burst.wishes)
            ]
            self._leave_out(single, put)

    def _leave_out(self, parts: list[T], put: Callable[[list[T]], Plan]) -> None:
        leave_out(parts, lambda fewer: self._fails(put(fewer)))

    def _fails(self, plan: Plan) -> bool:
        if self.attempts >= self._attempts_max:
            return False
        self.attempts += 1
        result = self._run(plan)
        if not result.kinds() & self._kinds:
            return False
        self.result = result
        return True


def leave_out(parts: list[T], fails: Callable[[list[T]], bool]) -> list[T]:
    """Leave out parts as long as the others fail without them; return what is left."""
    step = len(parts)
    while step >= 1 and parts:
        start = 0
        while start < len(parts):
            fewer = parts[:start] + parts[start + step :]
            if fails(fewer):
                parts = fewer
            else:
                start += step
        step = min(step // 2, len(parts))
    return parts


def _joined(single: Sequence[Burst]) -> tuple[Burst, ...]:
    """Put calls together again that were issued together: those without a pause of their own."""
    bursts: list[Burst] = []
    for one in single:
        if one.pause < 0 and bursts:
            last = bursts.pop()
            bursts.append(Burst(last.pause, last.wishes + one.wishes))
        else:
            bursts.append(Burst(max(one.pause, 0.0), one.wishes))
    return tuple(bursts)

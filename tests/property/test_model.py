"""The state machine is the reference model, whatever several clients do."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.property.actions import Action, crowded, histories
from tests.property.bounds import examples
from tests.property.pair import Pair


@examples(150)
@given(histories, st.integers(0, 9))
def test_the_machine_does_what_the_model_does(history: list[Action], choice: int) -> None:
    _run(Pair(extended_types=choice > 0, enforce_quota=choice < 8), history)


@examples(100)
@given(crowded, st.integers(0, 9))
def test_the_machine_keeps_quotas_as_the_model_does(history: list[Action], choice: int) -> None:
    _run(Pair(enforce_quota=choice < 8), history)


def _run(pair: Pair, history: list[Action]) -> None:
    for number, action in enumerate(history):
        pair.run(action)
        if number % 4 == 0:
            pair.compare()
    pair.compare()

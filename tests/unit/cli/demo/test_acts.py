"""What the acts of the demo claim about a lock is counted from the lines, and can be wrong."""

import pytest

from paddock.cli.demo.acts import ACTS
from paddock.cli.demo.acts.lock import one_at_a_time
from paddock.cli.demo.notebook import DEMO, KILLS, Happening
from paddock.cli.demo.stage import Act

HOLDS = "holds the lock"


def lines(*said: tuple[str, str]) -> list[Happening]:
    return [
        Happening(number, 0.0, who, what, {"worker": "alice"} if what == KILLS else {})
        for number, (who, what) in enumerate(said)
    ]


@pytest.mark.parametrize("how", [("alice", "lets go"), ("alice", "ends"), (DEMO, KILLS)])
def test_the_next_one_may_hold_the_lock_when_the_last_one_has_it_no_more(
    how: tuple[str, str],
) -> None:
    assert one_at_a_time(lines(("alice", HOLDS), how, ("bob", HOLDS)))


@pytest.mark.parametrize("how", [("carol", "lets go"), ("bob", "ends"), ("bob", "wants the lock")])
def test_two_who_hold_the_lock_are_noticed(how: tuple[str, str]) -> None:
    assert not one_at_a_time(lines(("alice", HOLDS), how, ("bob", HOLDS)))


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.name)
def test_the_code_of_an_act_fits_on_a_card(act: Act) -> None:
    code = act.code.splitlines()
    # Within a window of 80 × 24, with what stands around it.
    assert len(code) <= 16
    assert max(map(len, code)) <= 76
    assert len(act.shows) <= 156

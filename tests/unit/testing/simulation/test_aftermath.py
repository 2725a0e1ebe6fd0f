"""What should not have happened in a world, though no rule of the judge is broken."""

from collections import Counter

import pytest

from paddock.errors import NO_NODE
from paddock.testing.simulation import history as h
from paddock.testing.simulation.aftermath import (
    GONE_SECONDS,
    count,
    find_disturbed,
    find_forgotten,
)
from paddock.testing.simulation.history import Logged
from tests.unit.testing.simulation.written import Written


@pytest.fixture
def written() -> Written:
    return Written()


def test_a_member_that_is_lost_in_a_calm_world_is_found(written: Written) -> None:
    written.log(Logged(0, h.JOINED, 1, path="s1 boot", at=0.0))
    assert find_disturbed(written.judge()) == []
    written.log(Logged(0, h.DEPOSED, 1, path="s1 boot", at=9.0))
    assert find_disturbed(written.judge()) == ["calm: s1 was a member no more, at 9.000"]


@pytest.mark.parametrize("is_used", [True, False])
def test_a_session_that_expires_under_its_client_is_found(written: Written, is_used: bool) -> None:
    one = written.connect("c1", 1, opened=1)
    written.reply(written.exists(one, "/a"), 1, error=NO_NODE)
    if not is_used:
        written.lose(one)
    written.at += 20
    written.log(Logged(2, h.EXPIRED, 1, at=written.at))
    expected = ["calm: session 0x1 expired, whose client was there"] if is_used else []
    assert find_disturbed(written.judge()) == expected


@pytest.mark.parametrize("has_ended", [True, False])
def test_a_session_that_outlives_its_client_is_found(written: Written, has_ended: bool) -> None:
    one = written.connect("c1", 1, opened=1)
    written.lose(one)
    if has_ended:
        written.log(Logged(2, h.EXPIRED, 1, at=written.at + 10))
    written.at += 2 * GONE_SECONDS
    written.connect("c2", 2, opened=3 if has_ended else 2)
    expected = [] if has_ended else ["liveness: session 0x1 outlives its client"]
    assert find_forgotten(written.judge()) == expected


def test_what_a_world_has_seen_is_counted(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    written.create(one, "/a")
    written.lose(one)
    written.connect("c1", 1, server="s2")
    counts: Counter[str] = Counter()
    count(counts, written.judge())
    assert (counts["calls"], counts["unknown outcomes"]) == (1, 1)
    assert (counts["sessions"], counts["reconnects"], counts["moved sessions"]) == (1, 1, 1)
    assert counts["log: opened"] == 1

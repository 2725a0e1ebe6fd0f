"""How long an answer of etcd's is waited for."""

from __future__ import annotations

from paddock.log.etcd.patience import Patience


def test_it_doubles_as_long_as_there_is_no_answer() -> None:
    patience = Patience(1.0, 5.0)
    seconds = []
    for _ in range(5):
        seconds.append(patience.seconds)
        patience.late(patience.seconds)
    assert seconds == [1.0, 2.0, 4.0, 5.0, 5.0]
    assert patience.is_longest


def test_calls_that_fail_together_count_once() -> None:
    patience = Patience(1.0, 4.0)
    for _ in range(4):
        patience.late(1.0)
    assert patience.seconds == 2.0
    assert not patience.is_longest


def test_after_an_answer_it_is_four_times_what_that_took_within_its_limits() -> None:
    patience = Patience(1.0, 4.0)
    patience.late(2.0)
    for took_s, seconds in [(0.001, 1.0), (0.5, 2.0), (3.0, 4.0)]:
        patience.answered(took_s)
        assert patience.seconds == seconds

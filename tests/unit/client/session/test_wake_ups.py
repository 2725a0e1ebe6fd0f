"""Wake-ups of change feeds: each finds its own feed, and all are woken where nobody else would."""

from __future__ import annotations

from paddock.client.session.wake_ups import WakeUps


def test_a_wake_up_finds_the_feed_that_it_names() -> None:
    wake_ups = WakeUps()
    (one, first), (other, second) = wake_ups.add(), wake_ups.add()
    assert one != other
    wake_ups.wake(other)
    assert (first.is_set(), second.is_set()) == (False, True)
    wake_ups.remove(other)
    # It may come late, and no feed gets the number of another one.
    wake_ups.wake(other)
    assert wake_ups.add()[0] not in (one, other)


def test_all_are_woken_at_once() -> None:
    wake_ups = WakeUps()
    signals = [wake_ups.add()[1] for _ in range(3)]
    wake_ups.wake_all()
    assert all(signal.is_set() for signal in signals)

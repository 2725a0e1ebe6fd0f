"""How long a command may live, by clocks that do not agree."""

from paddock.cli.run_under.run_while_held import Awake


def test_what_was_answered_counts_while_the_clocks_go_together() -> None:
    awake = Awake(tolerance=1.0)
    assert awake.covers(99.0, now=100.0, clock=5000.0)
    assert awake.covers(99.0, now=104.0, clock=5004.5)


def test_after_a_sleep_only_what_was_asked_since_counts() -> None:
    awake = Awake(tolerance=1.0)
    assert awake.covers(99.0, now=100.0, clock=5000.0)
    # By our clock a second has passed, and it was an hour.
    assert not awake.covers(99.0, now=101.0, clock=8601.0)
    assert not awake.covers(100.9, now=102.0, clock=8602.0)
    assert awake.covers(101.5, now=103.0, clock=8603.0)


def test_each_sleep_counts() -> None:
    awake = Awake(tolerance=1.0)
    assert awake.covers(0.0, now=1.0, clock=1.0)
    assert not awake.covers(1.0, now=2.0, clock=12.0)
    assert awake.covers(2.5, now=3.0, clock=13.0)
    assert not awake.covers(2.5, now=4.0, clock=24.0)

"""When a batch goes to a shared log."""

from paddock.server.replication.pacing import Pacing

FULL = 1_000


class Clock:
    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


def paced(commit: float) -> tuple[Pacing, Clock]:
    """Return a pacing that has seen commits of this length, and its clock."""
    clock = Clock()
    pacing = Pacing(clock, FULL)
    for _ in range(100):
        pacing.committed(commit)
    return pacing, clock


def test_a_batch_waits_for_a_sixteenth_of_a_commit_if_nothing_is_in_flight() -> None:
    pacing, clock = paced(0.02)
    pacing.gathered()
    assert round(pacing.pause(0, 10), 5) == 0.00125
    clock.now += 0.0013
    assert pacing.pause(0, 10) == 0


def test_a_batch_waits_for_half_of_a_commit_if_something_is_in_flight() -> None:
    pacing, clock = paced(0.02)
    pacing.gathered()
    assert round(pacing.pause(1, 10), 4) == 0.01
    clock.now += 0.004
    pacing.gathered()
    assert round(pacing.pause(1, 10), 4) == 0.006
    clock.now += 0.006
    assert pacing.pause(1, 10) < 1e-6


def test_a_full_batch_does_not_wait() -> None:
    pacing, _ = paced(0.02)
    pacing.gathered()
    assert pacing.pause(3, FULL) == 0


def test_what_is_left_behind_waits_from_when_the_batch_went() -> None:
    pacing, clock = paced(0.02)
    pacing.gathered()
    clock.now += 1
    pacing.proposed(has_more=True)
    assert round(pacing.pause(1, 10), 4) == 0.01
    pacing.proposed(has_more=False)
    clock.now += 1
    pacing.gathered()
    assert round(pacing.pause(1, 10), 4) == 0.01


def test_a_long_outage_does_not_make_batches_wait_as_long() -> None:
    pacing, _ = paced(60.0)
    pacing.gathered()
    assert pacing.pause(1, 10) <= 0.05


def test_idle_seconds_count_from_the_last_batch() -> None:
    pacing, clock = paced(0.02)
    clock.now += 2
    assert pacing.idle_seconds() == 2
    pacing.proposed(has_more=False)
    assert pacing.idle_seconds() == 0


def test_there_is_a_pause_between_two_batches_while_a_member_cannot_keep_up() -> None:
    pacing, clock = paced(0.02)
    pacing.hold_seconds = 0.05
    pacing.proposed(has_more=False)
    clock.now += 0.02
    pacing.gathered()
    # Whether something is in flight or not, and however full the batch is.
    assert round(pacing.pause(0, 10), 4) == 0.03
    assert round(pacing.pause(1, FULL), 4) == 0.03
    clock.now += 0.04
    assert pacing.pause(0, 10) == 0
    pacing.proposed(has_more=True)
    assert round(pacing.pause(0, 10), 4) == 0.05
    pacing.hold_seconds = 0.0
    assert round(pacing.pause(0, 10), 5) == 0.00125

"""The rules of `paddock.server.replication.lease`, one by one."""

from paddock.server.replication.lease import Lease

T = 10.0


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def started() -> tuple[Lease, Clock]:
    clock = Clock()
    lease = Lease(clock, T)
    lease.begin()
    return lease, clock


def test_there_is_no_lease_before_the_first_batch_is_applied() -> None:
    lease, _ = started()
    assert lease.is_over()
    lease.sending(0)
    assert lease.is_over()
    assert lease.left() == 0
    lease.applied(0)
    assert not lease.is_over()


def test_a_lease_counts_from_when_the_batch_was_sent_and_not_from_when_it_was_applied() -> None:
    lease, clock = started()
    lease.sending(0)
    clock.now += 3
    lease.applied(0)
    assert lease.left() == 5
    clock.now += 5
    assert lease.is_over()


def test_a_batch_that_is_only_sent_renews_nothing() -> None:
    lease, clock = started()
    lease.sending(0)
    lease.applied(0)
    clock.now += 7
    lease.sending(1)
    clock.now += 1
    assert lease.is_over()


def test_an_older_batch_that_is_applied_later_does_not_shorten_the_lease() -> None:
    lease, clock = started()
    lease.sending(0)
    clock.now += 1
    lease.sending(1)
    lease.applied(1)
    lease.applied(0)
    assert lease.left() == 8


def test_a_batch_of_a_former_boot_renews_nothing() -> None:
    lease, _ = started()
    lease.sending(0)
    lease.begin()
    lease.applied(0)
    assert lease.is_over()


def test_a_boot_that_is_over_has_no_lease_whatever_is_applied() -> None:
    lease, _ = started()
    lease.sending(0)
    lease.sending(1)
    lease.applied(0)
    lease.end()
    assert lease.is_over()
    assert lease.left() == 0
    lease.applied(1)
    assert lease.is_over()


def test_the_lease_ends_before_others_depose_with_clocks_ten_percent_apart() -> None:
    lease, _ = started()
    lease.sending(0)
    lease.applied(0)
    # As long as our slow clock says, in the time of a fast one that counts T.
    assert lease.left() / 0.9 < T / 1.1

"""The FIFO of one connection's replies."""

from __future__ import annotations

from paddock.server.connections.reply_queue import QUERIES, READY, ReplyQueue, Waiting
from paddock.state.access import NOBODY


def waiting(xid: int, size: int = 0) -> Waiting:
    return Waiting(READY, bytes(size), 1, NOBODY, xid)


def test_an_entry_waits_for_the_writes_before_it_and_for_no_other() -> None:
    queue = ReplyQueue(0, 1000)
    queue.enter_write(10)
    queue.put(waiting(2))
    queue.enter_write(10)
    queue.put(waiting(4))
    assert not queue.can_answer()
    queue.leave_write(10)
    assert queue.can_answer()
    assert queue.take().xid == 2
    assert not queue.can_answer()
    queue.leave_write(10)
    assert queue.take().xid == 4
    assert queue.length == 0


def test_it_is_over_its_limits_in_number_or_in_bytes() -> None:
    queue = ReplyQueue(2, 100)
    for xid in range(2):
        queue.put(waiting(xid, 20))
    assert (queue.is_over(1), queue.is_over(2)) == (False, True)
    queue.enter_write(0)
    assert queue.is_over(1)
    queue.leave_write(0)
    queue.enter_write(80)
    assert queue.is_over(1)


def test_queries_in_a_row_share_an_entry_and_count_each() -> None:
    queue = ReplyQueue(4, 1000)
    queue.enter_write(0)
    queue.put(Waiting(QUERIES, bytes(60), 3, NOBODY))
    assert (queue.length, queue.waiting_count, queue.waiting_bytes) == (4, 3, 60)
    assert not queue.is_over(1)
    queue.enter_write(0)
    assert queue.is_over(1)
    queue.leave_write(0)
    assert queue.take().count == 3
    assert (queue.length, queue.waiting_count, queue.waiting_bytes) == (1, 0, 0)


def test_nothing_counts_once_it_is_cleared() -> None:
    queue = ReplyQueue(1, 10)
    queue.enter_write(50)
    queue.put(waiting(2, 50))
    queue.clear()
    assert (queue.length, queue.waiting_count, queue.waiting_bytes) == (0, 0, 0)
    assert not queue.is_over(2)
    queue.put(waiting(3))
    assert queue.can_answer()

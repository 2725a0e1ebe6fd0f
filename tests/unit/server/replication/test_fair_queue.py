"""In which batches writes are proposed: all of them, in order for each origin, and fairly."""

from __future__ import annotations

from itertools import groupby
from random import Random

import pytest

from paddock.protocol import opcodes
from paddock.protocol.acl import Identity
from paddock.server.config.config import SHARED_FRAME_BYTES_MAX
from paddock.server.replication.fair_queue import FairQueue
from paddock.server.replication.pacing import SHARED_BATCH_BYTES_MAX
from paddock.server.replication.proposals import Submitter
from paddock.state.access import Identities
from paddock.state.entry import BATCH_BYTES_MAX, Batch, Entry

SMALL = 100
LARGE = 100_000
# Of an etcd that was not told otherwise (--max-request-bytes).
ETCD_REQUEST_BYTES_MAX = 3 << 19


def entry(number: int, size: int = SMALL) -> Entry:
    return Entry(opcodes.SET_DATA, bytes(size), xid=number)


def numbers(entries: list[Entry]) -> list[int]:
    return [one.xid for one in entries]


def test_what_fits_into_one_batch_is_taken_as_it_came() -> None:
    queue, origins = FairQueue(), [Submitter(), Submitter()]
    for number in range(10):
        queue.put(entry(number), origins[number % 2])
    entries, takers = queue.take()
    assert numbers(entries) == list(range(10))
    assert takers == [origins[number % 2] for number in range(10)]
    assert (queue.size, queue.length) == (0, 0)


def test_the_first_part_is_taken_if_less_is_wanted() -> None:
    queue, origins = FairQueue(), [Submitter(), Submitter()]
    for number in range(10):
        queue.put(entry(number, SMALL + number), origins[number % 2])
    entries, takers = queue.take(4)
    assert numbers(entries) == [0, 1, 2, 3]
    assert takers == [origins[number % 2] for number in range(4)]
    left = sum(entry(number, SMALL + number).size() for number in range(4, 10))
    assert (queue.size, queue.length) == (left, 6)
    queue.put(entry(10), origins[0])
    assert numbers(queue.take(100)[0]) == list(range(4, 11))
    assert (queue.size, queue.length) == (0, 0)


def test_who_sends_little_comes_with_the_next_batch_whatever_others_have_waiting() -> None:
    queue, much, little = FairQueue(), Submitter(), Submitter()
    for number in range(50_000):
        queue.put(entry(number), much)
    queue.put(entry(-1), little)
    entries, takers = queue.take()
    assert sum(one.size() for one in entries) <= BATCH_BYTES_MAX + SMALL + 100
    assert takers.index(little) <= 16


@pytest.mark.parametrize(("origins", "turns"), [(1, [50]), (2, [16, 9]), (10, [5]), (50, [1])])
def test_all_have_as_much_of_a_batch_and_each_some_entries_in_a_row(
    origins: int, turns: list[int]
) -> None:
    queue, waiting = FairQueue(50), [Submitter() for _ in range(origins)]
    for number in range(1000):
        queue.put(entry(number), waiting[number % origins])
    _, takers = queue.take()
    rows = [(origin, len(list(row))) for origin, row in groupby(takers)]
    assert rows == [(origin, turn) for turn in turns for origin in waiting]


def test_all_have_as_many_bytes_of_a_batch() -> None:
    queue, thick, thin = FairQueue(), Submitter(), Submitter()
    queue.bytes_max = 40_000
    for number in range(100):
        queue.put(entry(number, 10_000), thick)
        queue.put(entry(number, 1_000), thin)
    entries, takers = queue.take()
    sizes = dict.fromkeys((thick, thin), 0)
    for one, origin in zip(entries, takers, strict=True):
        sizes[origin] += one.size()
    assert sizes[thick] - sizes[thin] < 20_000
    assert sum(sizes.values()) < 60_000


def test_small_writes_go_before_large_ones_of_others() -> None:
    queue, little = FairQueue(), Submitter()
    greedy = [Submitter() for _ in range(20)]
    for origin in greedy:
        for number in range(4):
            queue.put(entry(number, BATCH_BYTES_MAX - 100), origin)
    for number in range(3):
        queue.put(entry(number), little)
    entries, takers = queue.take()
    assert takers == [little, little, little, greedy[0]]
    assert numbers(entries) == [0, 1, 2, 0]
    # Then each of the others has one.
    for origin in (*greedy[1:], greedy[0]):
        entries, takers = queue.take()
        assert takers == [origin]


def test_as_many_large_ones_are_taken_as_fit_and_one_in_any_case() -> None:
    queue, origin = FairQueue(), Submitter()
    for number in range(30):
        queue.put(entry(number, LARGE), origin)
    entries, _ = queue.take()
    assert numbers(entries) == list(range(BATCH_BYTES_MAX // (LARGE + 42)))
    queue = FairQueue()
    queue.put(entry(1, 2 * BATCH_BYTES_MAX), origin)
    queue.put(entry(2, 2 * BATCH_BYTES_MAX), origin)
    assert numbers(queue.take()[0]) == [1]


def test_a_batch_has_no_more_entries_than_it_may_have_if_more_wait() -> None:
    queue, much, little = FairQueue(), Submitter(), Submitter()
    queue.entries_max = 10
    for number in range(25):
        queue.put(entry(number), much)
    queue.put(entry(99), little)
    entries, takers = queue.take()
    assert len(entries) == 10
    assert little in takers
    assert queue.length == 16


def test_a_batch_has_no_more_bytes_than_it_may_have_but_one_entry_in_any_case() -> None:
    for size in (SMALL, LARGE):
        queue, origin = FairQueue(), Submitter()
        queue.bytes_max = size + 1
        for number in range(6):
            queue.put(entry(number, size), origin)
        assert [numbers(queue.take()[0]) for _ in range(6)] == [[number] for number in range(6)]


def test_large_ones_count_among_the_entries_of_a_batch() -> None:
    queue = FairQueue(3)
    for number in range(10):
        queue.put(entry(number, LARGE), Submitter())
    sizes = []
    while queue.length:
        sizes.append(len(queue.take()[0]))
    assert sizes == [3, 3, 3, 1]


@pytest.mark.parametrize("seed", range(20))
def test_every_entry_is_taken_once_and_in_the_order_of_its_origin(seed: int) -> None:
    random, queue = Random(seed), FairQueue()
    queue.entries_max = random.choice([5, 50, 1 << 30])
    origins = [Submitter() for _ in range(8)]
    put: dict[Submitter, list[int]] = {origin: [] for origin in origins}
    taken: dict[Submitter, list[int]] = {origin: [] for origin in origins}
    number = 0
    while number < 600 or queue.length:
        for _ in range(random.randrange(60) if number < 600 else 0):
            origin = random.choice(origins)
            put[origin].append(number)
            queue.put(entry(number, random.choice([0, SMALL, 20_000, LARGE, 900_000])), origin)
            number += 1
        entries, takers = queue.take()
        assert entries or not queue.length
        for one, origin in zip(entries, takers, strict=True):
            taken[origin].append(one.xid)
    assert taken == put
    assert (queue.size, queue.length) == (0, 0)


def test_a_batch_with_the_largest_request_fits_into_a_request_to_etcd() -> None:
    # What the server accepts of a client with the largest certificate, beside many others.
    identities = Identities((Identity("x509", "x" * (16 << 10)),))
    queue = FairQueue()
    queue.bytes_max = SHARED_BATCH_BYTES_MAX
    queue.put(
        Entry(opcodes.SET_DATA, bytes(SHARED_FRAME_BYTES_MAX), identities=identities), Submitter()
    )
    for number in range(100):
        queue.put(entry(number, 16_000), Submitter())
    entries, _ = queue.take()
    assert max(len(one.body) for one in entries) == SHARED_FRAME_BYTES_MAX
    assert len(entries) > 4
    # With room for the two keys and the transaction around it.
    assert len(Batch(entries, 1, 1).encode()) < ETCD_REQUEST_BYTES_MAX - (64 << 10)

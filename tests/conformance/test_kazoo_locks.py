"""kazoo's recipes in which clients wait for each other: locks, semaphores, elections, leases."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import CancelledError, LockTimeout

from tests.support.kazoo_clients import (
    DEADLINE_S,
    Inbox,
    KazooClients,
    wait_children,
    watch_states,
)
from tests.support.server import Server


@pytest.fixture
def clients(addresses: list[tuple[str, int]]) -> Iterator[KazooClients]:
    with KazooClients(*addresses) as clients:
        yield clients


@pytest.fixture
def five(clients: KazooClients) -> list[KazooClient]:
    """Five sessions."""
    return [clients.connect() for _ in range(5)]


class Room:
    """Counts who is inside: the most at any time, and the visits in all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = self.most = self.visits = 0

    def visit(self, client: KazooClient) -> None:
        with self._lock:
            self._inside += 1
            self.visits += 1
            self.most = max(self.most, self._inside)
        # A round trip is long enough for another thread to come in, if it may.
        client.sync("/")
        with self._lock:
            self._inside -= 1


def visit_often(room: Room, client: KazooClient, guard: Any, times: int) -> None:
    for _ in range(times):
        with guard:
            room.visit(client)


def test_a_lock_is_held_by_one_at_a_time(
    clients: KazooClients, five: list[KazooClient], base: str
) -> None:
    room = Room()
    workers = [
        clients.run(visit_often, room, client, client.Lock(f"{base}/lock"), 10) for client in five
    ]
    for worker in workers:
        worker.result(DEADLINE_S)
    assert (room.most, room.visits) == (1, 50)
    # The others may be clients of other servers, which are ahead.
    five[0].sync(base)
    assert five[0].get_children(f"{base}/lock") == []


def test_a_lock_is_given_in_the_order_of_asking(
    clients: KazooClients, five: list[KazooClient], base: str
) -> None:
    holder, *others = five
    first = holder.Lock(base, "first")
    assert first.acquire(timeout=DEADLINE_S)
    order = Inbox()

    def contend(number: int, client: KazooClient) -> None:
        with client.Lock(base, f"number {number}"):
            order.put(number)

    for number, client in enumerate(others):
        clients.run(contend, number, client)
        wait_children(holder, base, number + 2)
    assert first.contenders() == ["first", *(f"number {number}" for number in range(4))]
    assert order.empty()
    first.release()
    assert [order.take() for _ in others] == [0, 1, 2, 3]


def test_a_lock_that_is_taken_can_be_tried_and_given_up(
    clients: KazooClients, five: list[KazooClient], base: str
) -> None:
    holder, hurried, patient, cancelled, _ = five
    held = holder.Lock(base)
    assert held.acquire(timeout=DEADLINE_S)
    assert hurried.Lock(base).acquire(blocking=False) is False
    with pytest.raises(LockTimeout):
        patient.Lock(base).acquire(timeout=0.05)
    lock = cancelled.Lock(base)
    attempt = clients.run(lock.acquire)
    wait_children(holder, base, 2)
    lock.cancel()
    with pytest.raises(CancelledError):
        attempt.result(DEADLINE_S)
    wait_children(holder, base, 1)


def test_a_lock_outlives_a_broken_connection(clients: KazooClients, base: str) -> None:
    holder, other = clients.connect(), clients.connect()
    lock = holder.Lock(base)
    assert lock.acquire(timeout=DEADLINE_S)
    waiting = clients.run(other.Lock(base).acquire, timeout=DEADLINE_S)
    wait_children(holder, base, 2)
    for client in (holder, other):
        states = watch_states(client)
        clients.cut(client)
        states.take_until(lambda state: state == KazooState.CONNECTED)
    assert len(wait_children(holder, base, 2)) == 2
    assert not waiting.done()
    lock.release()
    assert waiting.result(DEADLINE_S)


def test_a_lock_goes_on_when_its_holder_expires(
    server: Server, clients: KazooClients, base: str
) -> None:
    # Who has several servers goes to all of them before it looks where else to go.
    with KazooClients(server.address) as lone:
        holder, other = lone.connect(timeout=0.5), clients.connect()
        assert holder.Lock(base).acquire(timeout=DEADLINE_S)
        waiting = clients.run(other.Lock(base).acquire, timeout=DEADLINE_S)
        wait_children(other, base, 2)
        lone.cut_off(holder)
        assert waiting.result(DEADLINE_S)


def test_readers_share_and_a_writer_excludes(
    clients: KazooClients, five: list[KazooClient], base: str
) -> None:
    readers = [client.ReadLock(base) for client in five[:2]]
    for reader in readers:
        assert reader.acquire(timeout=DEADLINE_S)
    writer = five[2].WriteLock(base)
    writing = clients.run(writer.acquire, timeout=DEADLINE_S)
    wait_children(five[0], base, 3)
    # Behind a writer a reader waits, so that writers are not starved.
    late = clients.run(five[3].ReadLock(base).acquire, timeout=DEADLINE_S)
    wait_children(five[0], base, 4)
    readers[0].release()
    assert five[4].WriteLock(base).acquire(blocking=False) is False
    assert not writing.done()
    readers[1].release()
    assert writing.result(DEADLINE_S)
    assert not late.done()
    writer.release()
    assert late.result(DEADLINE_S)


def test_a_semaphore_lets_in_as_many_as_it_has_leases(
    clients: KazooClients, five: list[KazooClient], base: str
) -> None:
    room, path = Room(), f"{base}/semaphore"
    workers = [
        clients.run(visit_often, room, client, client.Semaphore(path, max_leases=2), 4)
        for client in five
    ]
    for worker in workers:
        worker.result(DEADLINE_S)
    assert room.most <= 2
    assert room.visits == 20
    five[0].sync(base)
    assert five[0].get_children(path) == []


def test_a_semaphore_names_its_holders_and_keeps_its_size(
    clients: KazooClients, five: list[KazooClient], base: str
) -> None:
    path = f"{base}/semaphore"
    held = [five[at].Semaphore(path, f"holder {at}", max_leases=2) for at in range(3)]
    for one in held[:2]:
        assert one.acquire(timeout=DEADLINE_S)
    five[0].sync(base)
    assert sorted(held[0].lease_holders()) == ["holder 0", "holder 1"]
    assert held[2].acquire(blocking=False) is False
    with pytest.raises(ValueError, match="max leases"):
        five[3].Semaphore(path, max_leases=3).acquire(timeout=DEADLINE_S)
    waiting = clients.run(held[2].acquire, timeout=DEADLINE_S)
    five[0].stop()
    assert waiting.result(DEADLINE_S)
    five[1].sync(base)
    assert sorted(held[1].lease_holders()) == ["holder 1", "holder 2"]


def test_an_election_has_one_leader_after_the_other(
    clients: KazooClients, five: list[KazooClient], base: str
) -> None:
    leaders, resign = Inbox(), threading.Semaphore(0)

    def lead(number: int) -> None:
        leaders.put(number)
        assert resign.acquire(timeout=DEADLINE_S)

    elections = [client.Election(base, f"number {at}") for at, client in enumerate(five[:4])]
    runs = []
    for number, election in enumerate(elections):
        runs.append(clients.run(election.run, lead, number))
        wait_children(five[4], base, number + 1)
    five[3].sync(base)
    assert elections[3].contenders() == [f"number {number}" for number in range(4)]
    elections[2].cancel()
    wait_children(five[4], base, 3)
    for expected in (0, 1, 3):
        assert leaders.take() == expected
        assert leaders.empty()
        resign.release()
    for run in runs:
        run.result(DEADLINE_S)


def test_leases_are_held_until_their_time_is_over(five: list[KazooClient], base: str) -> None:
    now = datetime.datetime(2024, 1, 1)  # noqa: DTZ001 - kazoo's clock is a naive one
    hour, path = datetime.timedelta(hours=1), f"{base}/lease"

    def lease(client: KazooClient, name: str) -> bool:
        return bool(client.NonBlockingLease(path, hour, name, utcnow=lambda: now))

    assert lease(five[0], "ann")
    assert not lease(five[1], "bob")
    assert lease(five[2], "ann")
    now += 2 * hour
    assert lease(five[1], "bob")
    assert not lease(five[0], "ann")


def test_several_leases_go_to_as_many(
    clients: KazooClients, five: list[KazooClient], base: str
) -> None:
    now = datetime.datetime(2024, 1, 1)  # noqa: DTZ001 - kazoo's clock is a naive one
    hour = datetime.timedelta(hours=1)

    def lease(client: KazooClient, name: str) -> bool:
        return bool(client.MultiNonBlockingLease(2, base, hour, name, utcnow=lambda: now))

    attempts = [clients.run(lease, client, f"at {at}") for at, client in enumerate(five)]
    assert sum(attempt.result(DEADLINE_S) for attempt in attempts) == 2

"""kazoo's recipes in which clients share something: barriers, queues, parties, counters, caches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kazoo.client import KazooClient, KazooState
from kazoo.recipe.cache import TreeCache, TreeEvent
from kazoo.recipe.watchers import PatientChildrenWatch

from tests.support.kazoo_clients import (
    DEADLINE_S,
    Inbox,
    KazooClients,
    wait_children,
    watch_states,
)
from tests.support.server import Server


@pytest.fixture
def clients(server: Server) -> Iterator[KazooClients]:
    with KazooClients(server.address) as clients:
        yield clients


@pytest.fixture
def three(clients: KazooClients) -> list[KazooClient]:
    """Three sessions."""
    return [clients.connect() for _ in range(3)]


def test_a_barrier_holds_everybody_until_it_is_removed(
    clients: KazooClients, three: list[KazooClient], base: str
) -> None:
    path = f"{base}/barrier"
    barriers = [client.Barrier(path) for client in three]
    barriers[0].create()
    assert barriers[1].wait(timeout=0.01) is False
    waiting = [clients.run(barrier.wait, DEADLINE_S) for barrier in barriers]
    assert not any(one.done() for one in waiting)
    assert barriers[2].remove() is True
    assert [one.result(DEADLINE_S) for one in waiting] == [True, True, True]
    assert barriers[0].remove() is False
    assert barriers[0].wait() is True


def test_a_double_barrier_is_entered_and_left_together(
    clients: KazooClients, three: list[KazooClient], base: str
) -> None:
    path = f"{base}/barrier"
    three[0].ensure_path(path)
    barriers = [client.DoubleBarrier(path, 3) for client in three]
    entering = [clients.run(barrier.enter) for barrier in barriers[:2]]
    wait_children(three[2], path, 2)
    assert not any(one.done() for one in entering)
    entering.append(clients.run(barriers[2].enter))
    for one in entering:
        one.result(DEADLINE_S)
    assert [barrier.participating for barrier in barriers] == [True, True, True]
    # Who leaves first waits for the last.
    leaving = [clients.run(barrier.leave) for barrier in barriers[:2]]
    three[2].sync(path)
    assert not any(one.done() for one in leaving)
    leaving.append(clients.run(barriers[2].leave))
    for one in leaving:
        one.result(DEADLINE_S)
    assert three[0].get_children(path) == []


def test_a_queue_gives_by_priority_and_then_by_age(three: list[KazooClient], base: str) -> None:
    queues = [client.Queue(f"{base}/queue") for client in three]
    queues[0].put(b"first")
    queues[1].put(b"second")
    queues[2].put(b"urgent", priority=1)
    assert len(queues[0]) == 3
    assert [queues[1].get() for _ in range(4)] == [b"urgent", b"first", b"second", None]


def test_a_queue_gives_each_item_once(
    clients: KazooClients, three: list[KazooClient], base: str
) -> None:
    path = f"{base}/queue"
    wanted = {b"%d" % number for number in range(30)}

    def produce(client: KazooClient, first: int) -> None:
        for number in range(first, 30, 3):
            client.Queue(path).put(b"%d" % number)

    def consume(client: KazooClient) -> list[bytes]:
        queue, items = client.Queue(path), []
        while (item := queue.get()) is not None:
            items.append(item)
        return items

    for producer in [clients.run(produce, client, at) for at, client in enumerate(three)]:
        producer.result(DEADLINE_S)
    consumers = [clients.run(consume, client) for client in three]
    taken = [item for consumer in consumers for item in consumer.result(DEADLINE_S)]
    assert len(taken) == 30
    assert set(taken) == wanted


def test_a_locking_queue_keeps_an_item_until_it_is_consumed(
    clients: KazooClients, three: list[KazooClient], base: str
) -> None:
    queues = [client.LockingQueue(f"{base}/queue") for client in three]
    queues[0].put_all([b"one", b"two"])
    assert queues[0].get(DEADLINE_S) == b"one"
    assert queues[1].get(DEADLINE_S) == b"two"
    assert queues[2].get(0.01) is None
    assert queues[0].holds_lock()
    assert queues[0].consume() is True
    assert queues[0].consume() is False
    assert queues[1].release() is True
    assert queues[2].get(DEADLINE_S) == b"two"
    # A holder whose session ends gives its item back, and who waits for one is told.
    waiting = clients.run(queues[0].get, DEADLINE_S)
    three[2].stop()
    assert waiting.result(DEADLINE_S) == b"two"
    assert queues[0].consume() is True
    assert len(queues[0]) == 0


@pytest.mark.parametrize("kind", ["Party", "ShallowParty"])
def test_a_party_knows_its_members(three: list[KazooClient], base: str, kind: str) -> None:
    parties = [getattr(client, kind)(base, f"guest {at}") for at, client in enumerate(three)]
    for party in parties:
        party.join()
    assert sorted(parties[0]) == ["guest 0", "guest 1", "guest 2"]
    parties[0].join()
    parties[1].leave()
    assert len(parties[0]) == 2
    three[2].stop()
    assert list(parties[1]) == ["guest 0"]


def test_a_counter_counts_what_everybody_adds(
    clients: KazooClients, three: list[KazooClient], base: str
) -> None:
    def add(client: KazooClient, step: int) -> None:
        counter = client.Counter(f"{base}/counter")
        for _ in range(10):
            counter += step

    adders = [clients.run(add, three[at], step) for at, step in enumerate((1, 10, -2))]
    for adder in adders:
        adder.result(DEADLINE_S)
    assert three[0].Counter(f"{base}/counter").value == 90
    half = three[0].Counter(f"{base}/half", default=0.5)
    half += 1.0
    assert (half.pre_value, half.post_value, half.value) == (0.5, 1.5, 1.5)


def test_a_set_is_partitioned_again_when_somebody_leaves(
    clients: KazooClients, three: list[KazooClient], base: str
) -> None:
    def settle(partitioner: Any, size: int) -> list[str]:
        """Follow the states until our part has this size."""
        while True:
            partitioner.state_change_event.clear()
            assert not partitioner.failed
            part = list(partitioner)
            if partitioner.release:
                partitioner.release_set()
            elif partitioner.acquired and len(part) == size:
                return part
            else:
                assert partitioner.state_change_event.wait(DEADLINE_S)

    def settled(members: list[Any], size: int) -> list[str]:
        parts = [clients.run(settle, member, size) for member in members]
        return sorted(item for part in parts for item in part.result(DEADLINE_S))

    whole = tuple("abcdef")
    options = {"set": whole, "time_boundary": 0.1, "max_reaction_time": 0.1}
    members = [
        client.SetPartitioner(base, identifier=f"member {at}", **options)
        for at, client in enumerate(three)
    ]
    assert settled(members, 2) == list(whole)
    members[0].finish()
    assert settled(members[1:], 3) == list(whole)
    for member in members[1:]:
        member.finish()


def test_a_patient_watch_waits_for_the_children_to_settle(
    three: list[KazooClient], base: str
) -> None:
    three[1].create(f"{base}/a")
    result = PatientChildrenWatch(three[0], base, time_boundary=0.05).start()
    children, changed = result.get(timeout=DEADLINE_S)
    assert children == ["a"]
    assert not changed.ready()
    three[1].create(f"{base}/b")
    changed.get(timeout=DEADLINE_S)


def test_a_tree_cache_follows_a_subtree(
    clients: KazooClients, three: list[KazooClient], base: str
) -> None:
    cached, writer, _ = three
    writer.create(f"{base}/a", b"one")
    events = Inbox()
    cache = TreeCache(cached, base)
    cache.listen(events.put)

    def wait_event(kind: int, path: str | None = None) -> None:
        events.take_until(
            lambda event: (
                event.event_type == kind and (path is None or event.event_data.path == path)
            )
        )

    cache.start()
    try:
        wait_event(TreeEvent.INITIALIZED)
        assert cache.get_data(f"{base}/a").data == b"one"
        writer.create(f"{base}/a/b", b"below")
        wait_event(TreeEvent.NODE_ADDED, f"{base}/a/b")
        writer.set(f"{base}/a", b"two")
        wait_event(TreeEvent.NODE_UPDATED, f"{base}/a")
        assert cache.get_data(f"{base}/a").data == b"two"
        assert cache.get_children(f"{base}/a") == {"b"}
        states = watch_states(cached)
        clients.cut_off(cached)
        assert states.take() == KazooState.SUSPENDED
        writer.set(f"{base}/a/b", b"missed")
        clients.let_back(cached)
        wait_event(TreeEvent.NODE_UPDATED, f"{base}/a/b")
        writer.delete(f"{base}/a", recursive=True)
        wait_event(TreeEvent.NODE_REMOVED, f"{base}/a")
        assert cache.get_data(f"{base}/a") is None
    finally:
        cache.close()

"""Our locks in kazoo's layout and kazoo's own, in one line on the same server: both take turns."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from kazoo.client import KazooClient

from paddock import MixedLayoutsError, PaddockError
from paddock.errors import LockStateError
from paddock.sync import Client, connect
from paddock.sync.recipes import Election, Lock, ReadWriteLock, Semaphore
from tests.support.kazoo_clients import DEADLINE_S, KazooClients, wait_children
from tests.support.server import Server


@pytest.fixture
def clients(server: Server) -> Iterator[KazooClients]:
    with KazooClients(server.address) as clients:
        yield clients


@pytest.fixture
def kazoo(clients: KazooClients) -> KazooClient:
    return clients.connect()


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with connect(f"{server.host}:{server.port}") as client:
        yield client


def take(clients: KazooClients, acquire: Callable[..., Any]) -> Future[Any]:
    return clients.run(acquire, timeout=DEADLINE_S)


def said(contenders: list[Any]) -> list[str]:
    return [one.data.decode() for one in contenders]


def test_a_lock_is_held_in_the_order_of_the_line_and_both_list_all_of_it(
    clients: KazooClients, kazoo: KazooClient, client: Client, base: str
) -> None:
    path = f"{base}/deep/lock"
    ours = [Lock(client, path, data=b"ours %d" % at, layout="kazoo") for at in range(2)]
    theirs = [kazoo.Lock(path, f"theirs {at}") for at in range(2)]
    holding = [take(clients, ours[0].acquire)]
    holding[0].result(DEADLINE_S)
    for at, one in enumerate((theirs[0], ours[1], theirs[1]), 2):
        holding.append(take(clients, one.acquire))
        wait_children(kazoo, path, at)
    everybody = ["ours 0", "theirs 0", "ours 1", "theirs 1"]
    assert theirs[1].contenders() == everybody
    assert said(ours[0].contenders()) == everybody
    for at, one in enumerate((ours[0], theirs[0], ours[1], theirs[1])):
        assert holding[at].result(DEADLINE_S)
        assert not any(later.done() for later in holding[at + 1 :])
        assert ours[0].try_acquire() is None if at else True
        assert kazoo.Lock(path).acquire(blocking=False) is False
        one.release()
    # Without a wait, when nobody is there.
    with ours[0]:
        assert theirs[0].acquire(blocking=False) is False
    assert theirs[0].acquire(blocking=False) is True
    theirs[0].release()
    assert kazoo.get_children(path) == []


def test_readers_share_and_writers_exclude_each_other(
    clients: KazooClients, kazoo: KazooClient, client: Client, base: str
) -> None:
    ours = ReadWriteLock(client, base, data=b"ours", layout="kazoo")
    reading = kazoo.ReadLock(base, "theirs")
    assert reading.acquire(timeout=DEADLINE_S)
    assert ours.read.try_acquire() is not None
    assert kazoo.WriteLock(base).acquire(blocking=False) is False
    their_writer = kazoo.WriteLock(base, "their writer")
    writing = take(clients, their_writer.acquire)
    wait_children(kazoo, base, 3)
    # Behind a writer that waits.
    assert ReadWriteLock(client, base, layout="kazoo").read.try_acquire() is None
    ours.read.release()
    reading.release()
    assert writing.result(DEADLINE_S)
    waiting = take(clients, ours.write.acquire)
    wait_children(kazoo, base, 2)
    assert kazoo.WriteLock(base).contenders() == ["their writer", "ours"]
    assert not waiting.done()
    their_writer.release()
    waiting.result(DEADLINE_S)
    next_writer = kazoo.WriteLock(base)
    writing = take(clients, next_writer.acquire)
    wait_children(kazoo, base, 2)
    # The writer goes on as a reader, before the next one that has come long ago.
    ours.read.acquire()
    ours.write.release()
    wait_children(kazoo, base, 2)
    assert kazoo.WriteLock(base).acquire(blocking=False) is False
    assert not writing.done()
    ours.read.release()
    assert writing.result(DEADLINE_S)
    # kazoo's Lock is a writer, too; a plain one does not see readers, ours or theirs.
    assert ours.read.try_acquire() is None
    assert Lock(client, base, layout="kazoo").try_acquire() is None
    next_writer.release()
    with ours.read:
        assert kazoo.Lock(base).acquire(blocking=False) is True
        assert Lock(client, base, layout="kazoo").try_acquire() is None


def test_leases_are_counted_together(
    clients: KazooClients, kazoo: KazooClient, client: Client, base: str
) -> None:
    path = f"{base}/semaphore"
    ours = [
        Semaphore(client, path, leases=2, data=b"ours %d" % at, layout="kazoo") for at in range(2)
    ]
    theirs = [kazoo.Semaphore(path, f"theirs {at}", max_leases=2) for at in range(2)]
    ours[0].acquire()
    assert theirs[0].acquire(timeout=DEADLINE_S)
    assert sorted(theirs[1].lease_holders()) == ["ours 0", "theirs 0"]
    assert said(ours[1].holders()) == ["ours 0", "theirs 0"]
    assert ours[1].try_acquire() is None
    assert theirs[1].acquire(blocking=False) is False
    third = take(clients, ours[1].acquire)
    wait_children(kazoo, f"{path}-__lock__", 1)
    fourth = take(clients, theirs[1].acquire)
    wait_children(kazoo, f"{path}-__lock__", 2)
    assert not third.done()
    theirs[0].release()
    third.result(DEADLINE_S)
    assert not fourth.done()
    ours[1].release()
    assert fourth.result(DEADLINE_S)
    theirs[1].release()
    with pytest.raises(LockStateError, match="it was made for 2 leases, and we for 3"):
        Semaphore(client, path, leases=3, layout="kazoo").acquire()
    with pytest.raises(ValueError, match="max leases"):
        kazoo.Semaphore(path, max_leases=3).acquire(timeout=DEADLINE_S)
    ours[0].release()
    wait_children(kazoo, path, 0)
    wait_children(kazoo, f"{path}-__lock__", 0)


def test_candidates_of_both_lead_in_turn(
    clients: KazooClients, kazoo: KazooClient, client: Client, base: str
) -> None:
    resign = threading.Event()
    leading = threading.Event()

    def lead() -> None:
        leading.set()
        assert resign.wait(DEADLINE_S)

    ours = Election(client, base, data=b"ours", layout="kazoo")
    theirs = kazoo.Election(base, "theirs")
    with ours:
        ours.wait_leader()
        running = clients.run(theirs.run, lead)
        wait_children(kazoo, base, 2)
        assert theirs.contenders() == said(ours.candidates()) == ["ours", "theirs"]
        assert not leading.is_set()
        # In the background it stands at the end of the line then.
        ours.step_down()
        assert leading.wait(DEADLINE_S)
        wait_children(kazoo, base, 2)
        leader = ours.leader()
        assert leader is not None
        assert leader.data == b"theirs"
        assert not ours.is_leader
        resign.set()
        running.result(DEADLINE_S)
        ours.wait_leader()


def test_the_node_of_a_lock_stays_for_those_who_expect_it(
    kazoo: KazooClient, client: Client, base: str
) -> None:
    """The service deletes an empty container; a lock of kazoo's that was used before fails then."""
    used = kazoo.Lock(f"{base}/lock")
    with used:
        pass
    kazoo.delete(f"{base}/lock")
    for layout in ("kazoo", "curator"):
        # The other one shows that whatever is deleted has been.
        path = f"{base}/lock" if layout == "kazoo" else f"{base}/control"
        with Lock(client, path, layout=layout):
            pass
    gone = threading.Event()
    if client.exists(f"{base}/control", watch=lambda _: gone.set()) is not None:
        assert gone.wait(DEADLINE_S)
    assert used.acquire(timeout=DEADLINE_S)


Recipe = Callable[[Client, str, str], Any]
MIXED: dict[str, tuple[Recipe, Callable[[KazooClient, str], Any]]] = {
    "lock": (
        lambda client, path, layout: Lock(client, path, layout=layout),  # type: ignore[arg-type]
        lambda kazoo, path: kazoo.Lock(path),
    ),
    "writer": (
        lambda client, path, layout: ReadWriteLock(client, path, layout=layout).write,  # type: ignore[arg-type]
        lambda kazoo, path: kazoo.ReadLock(path),
    ),
    "semaphore": (
        lambda client, path, layout: Semaphore(client, path, leases=2, layout=layout),  # type: ignore[arg-type]
        lambda kazoo, path: kazoo.Semaphore(path, max_leases=2),
    ),
}


@pytest.mark.parametrize("kind", MIXED)
def test_who_would_not_be_excluded_is_refused(
    kazoo: KazooClient, client: Client, base: str, kind: str
) -> None:
    ours, theirs = MIXED[kind]
    path = f"{base}/line"
    held = theirs(kazoo, path)
    assert held.acquire(timeout=DEADLINE_S)
    mine = ours(client, path, "curator")
    for take_it in (mine.acquire, mine.try_acquire):
        with pytest.raises(MixedLayoutsError, match='ask for layout="kazoo", or use another path'):
            take_it()
    held.release()
    # Nothing of ours is left in anybody's way.
    wait_children(kazoo, path, 0)
    assert held.acquire(timeout=DEADLINE_S)
    held.release()
    grant = ours(client, f"{base}/other", "curator").acquire()
    with pytest.raises(MixedLayoutsError, match='ask for layout="curator", or use another path'):
        ours(client, f"{base}/other", "kazoo").acquire()
    assert grant.is_held
    grant.release()


def test_a_candidate_that_would_not_be_excluded_fails(
    kazoo: KazooClient, client: Client, base: str
) -> None:
    theirs = kazoo.Lock(base)
    assert theirs.acquire(timeout=DEADLINE_S)
    ours = Election(client, base)
    ours.start()
    with pytest.raises(MixedLayoutsError):
        ours.wait_leader()
    wait_children(kazoo, base, 1)
    with pytest.raises(MixedLayoutsError), Election(client, base).lead():
        pass


def test_what_kazoo_could_not_read_is_refused(client: Client, base: str) -> None:
    for make in (Lock, ReadWriteLock, Election):
        with pytest.raises(PaddockError, match="data: kazoo reads it as UTF-8"):
            make(client, base, data=b"\xff", layout="kazoo")
        with pytest.raises(PaddockError, match='layout: expected "curator" or "kazoo"'):
            make(client, base, layout="etcd")  # type: ignore[arg-type]
    for layout in ("etcd", "kazoo"):
        with pytest.raises(PaddockError, match=r"data: kazoo reads|layout: expected"):
            Semaphore(client, base, leases=1, data=b"\xff", layout=layout)  # type: ignore[arg-type]

"""Recipes in threads: what blocking code meets there and asyncio code does not.

That every recipe does the same on both APIs is shown by the suites of the recipes, which run on
both.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from paddock import GrantLostError, LockStateError
from paddock.sync import Client, connect, timeout
from paddock.sync.recipes import Grant, GrantEvent, Lock
from paddock.testing import ServerThread, expire_session_blocking

DEADLINE_S = 60.0


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread() as server:
        yield server


@pytest.fixture
def client(server: ServerThread) -> Iterator[Client]:
    with timeout(DEADLINE_S), connect(server.hosts) as client:
        yield client


@pytest.fixture
def other(server: ServerThread) -> Iterator[Client]:
    with timeout(DEADLINE_S), connect(server.hosts) as client:
        yield client


def test_threads_take_turns_each_with_a_lock_of_its_own(client: Client) -> None:
    inside: list[int] = []

    def work(number: int) -> list[int]:
        tokens = []
        for _ in range(5):
            with timeout(DEADLINE_S), Lock(client, "/turns") as grant:
                inside.append(number)
                tokens.append(grant.token)
                with grant.guard() as transaction:
                    transaction.check("/turns")
                assert inside == [number]
                inside.remove(number)
        return tokens

    with ThreadPoolExecutor(8) as pool:
        tokens = [token for some in pool.map(work, range(8)) for token in some]
    assert len({*tokens}) == 40
    assert Lock(client, "/turns").contenders() == []


def test_one_lock_is_one_contender_whichever_thread_asks(client: Client) -> None:
    lock = Lock(client, "/shared")
    with ThreadPoolExecutor(1) as pool, lock as grant:
        with pytest.raises(LockStateError, match="it is held already"):
            pool.submit(lock.acquire).result(DEADLINE_S)
        assert grant.is_held


def test_a_limit_ends_the_wait_and_leaves_the_line(client: Client, other: Client) -> None:
    lock = Lock(other, "/limited")
    with Lock(client, "/limited"):
        with timeout(0.1), pytest.raises(TimeoutError, match="acquire: no answer in time"):
            lock.acquire()
        with timeout(0.1), pytest.raises(TimeoutError):
            lock.__enter__()
        while len(client.children("/limited")) > 1:
            client.sync()
    with timeout(DEADLINE_S), lock as grant:
        assert grant.is_held


def hold_until_lost(lock: Lock, lose: Callable[[Grant], object], error: Exception | None) -> None:
    with lock as grant:
        is_told = threading.Event()
        grant.add_listener(lambda event: is_told.set() if event is GrantEvent.LOST else None)
        lose(grant)
        grant.wait_over()
        assert grant.is_lost
        assert not lock.is_held
        with pytest.raises(GrantLostError):
            grant.check()
        assert is_told.wait(DEADLINE_S)
        if error is not None:
            raise error


def test_a_body_hears_that_its_grant_was_lost_when_it_leaves(client: Client, other: Client) -> None:
    lock = Lock(client, "/lost")
    with pytest.raises(GrantLostError, match=r"/lost/.*: held no more"):
        hold_until_lost(lock, lambda grant: other.delete(grant.path), None)
    with pytest.raises(KeyError) as caught:
        hold_until_lost(lock, lambda grant: other.delete(grant.path), KeyError("of its own"))
    assert isinstance(caught.value.__context__, GrantLostError)
    with lock as grant:
        assert grant.is_held


def test_the_end_of_the_session_is_told_in_the_same_way(
    server: ServerThread, client: Client
) -> None:
    def expire(grant: Grant) -> None:
        expire_session_blocking(server.address, client.session_id, client.session_password)

    with pytest.raises(GrantLostError):
        hold_until_lost(Lock(client, "/expired"), expire, None)


def test_whoever_closes_the_client_in_a_scope_is_told_and_leaves_no_thread(
    server: ServerThread,
) -> None:
    client = connect(server.hosts)
    client.start()

    def hold() -> None:
        with timeout(DEADLINE_S), Lock(client, "/closed"):
            client.close()

    with pytest.raises(GrantLostError):
        hold()
    ours = {"paddock", "paddock-callbacks", "paddock-handler"}
    assert ours.isdisjoint(one.name for one in threading.enumerate())


def test_a_lock_keeps_its_client(server: ServerThread) -> None:
    def made() -> Lock:
        client = connect(server.hosts)
        client.start()
        return Lock(client, "/kept")

    lock = made()
    gc.collect()
    with lock as grant:
        assert grant.is_held
    with pytest.warns(ResourceWarning, match="a Client was not closed"):
        del lock, grant

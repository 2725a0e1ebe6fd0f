"""What blocking code meets and asyncio code does not: threads, time limits, callbacks.

That every operation does the same on both is shown by the suite of the client itself, which runs
on both.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

import paddock
from paddock import (
    ConnectionLostError,
    Event,
    EventType,
    InvalidArgumentError,
    NodeExistsError,
    NoNodeError,
    SessionExpiredError,
    SessionState,
    UsageError,
    recipes,
)
from paddock.sync import Client, connect, timeout
from paddock.sync import recipes as sync_recipes
from paddock.testing import FaultProxy, ServerThread

DEADLINE_S = 60.0


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread() as server:
        yield server


@pytest.fixture
def client(server: ServerThread) -> Iterator[Client]:
    with timeout(DEADLINE_S), connect(server.hosts) as client:
        for name in client.children("/"):
            if name != "zookeeper":
                client.delete_tree(f"/{name}")
        yield client


def portal_threads() -> list[str]:
    names = ("paddock", "paddock-callbacks")
    return [one.name for one in threading.enumerate() if one.name in names]


def test_what_a_user_writes(server: ServerThread, client: Client) -> None:
    client.create("/app")
    with connect(f"{server.hosts}/app", session_timeout=10) as client, timeout(DEADLINE_S):
        client.create("/config", b"v1", make_parents=True)
        data, stat = client.get("/config")
        assert (data, stat.version) == (b"v1", 0)
        seen = []
        for change in client.watch("/config"):
            seen.append(change.data)
            if change.data == b"v2":
                break
            with client.transaction() as transaction:
                transaction.set("/config", b"v2").check("/config", version=1)
        assert seen == [b"v1", b"v2"]
        assert transaction.results[0].version == 1


def test_no_thread_is_left_when_the_last_client_is_closed(server: ServerThread) -> None:
    with connect(server.hosts) as first, connect(server.hosts) as second:
        first.get("/", watch=lambda event: None)
        assert first.session_id != second.session_id
        assert portal_threads().count("paddock") == 1
    assert first.state is second.state is SessionState.CLOSED
    assert portal_threads() == []
    with pytest.raises(SessionExpiredError, match="get /: the client is closed"):
        first.get("/")
    first.close()


def test_a_client_may_be_started_and_closed_without_a_scope(server: ServerThread) -> None:
    client = connect(server.hosts)
    client.start()
    assert client.exists("/") is not None
    client.close()
    assert portal_threads() == []


def test_a_client_that_is_not_open_or_is_opened_twice_is_an_error_that_does_no_harm(
    server: ServerThread,
) -> None:
    client = connect(server.hosts)
    with pytest.raises(UsageError, match="the client is not open"):
        client.get("/")
    with timeout(DEADLINE_S), client:
        with pytest.raises(UsageError, match="a client is opened once"):
            client.start()
        assert client.exists("/") is not None
    assert portal_threads() == []


def test_a_coroutine_function_is_no_watcher(client: Client) -> None:
    async def nobody_awaits(event: Event) -> None:
        pass

    with pytest.raises(InvalidArgumentError, match=r"watch: <function .*nobody_awaits"):
        client.get("/", watch=nobody_awaits)  # type: ignore[arg-type]


def test_what_cannot_be_opened_leaves_no_thread(server: ServerThread) -> None:
    with pytest.raises(InvalidArgumentError, match="hosts 'no-port:x'"):
        connect("no-port:x")
    with pytest.raises(ConnectionLostError, match="connect: "):
        connect("127.0.0.1:1", session_timeout=0.2).__enter__()
    with timeout(0.05), pytest.raises(TimeoutError):
        connect("127.0.0.1:1", session_timeout=60).__enter__()
    assert portal_threads() == []


def test_many_threads_use_one_client(client: Client) -> None:
    client.create("/many")

    def work(number: int) -> list[bytes]:
        path = f"/many/{number}"
        client.create(path, b"0")
        seen = []
        for turn in range(20):
            client.set(path, b"%d" % turn, version=turn)
            seen.append(client.get(path).data)
            with pytest.raises(NodeExistsError, match=f"create {path}: "):
                client.create(path)
        return seen

    with ThreadPoolExecutor(16) as pool:
        for seen in pool.map(work, range(32)):
            assert seen == [b"%d" % turn for turn in range(20)]
    assert len(client.children("/many")) == 32


def test_closing_fails_those_who_wait_each_with_an_error_of_its_own(server: ServerThread) -> None:
    with FaultProxy(server.address) as proxy, ThreadPoolExecutor(8) as pool:
        client = connect(proxy.hosts, session_timeout=2)
        client.start()
        stream = client.watch("/")
        next(stream)
        proxy.blackhole()
        waiting: list[Future[object]] = [pool.submit(client.get, "/") for _ in range(6)]
        waiting.append(pool.submit(next, stream))
        waiting.append(pool.submit(client.delete_tree, "/tree"))
        client.close()
        errors = [one.exception(DEADLINE_S) for one in waiting]
        assert list(stream) == []
    # What had to ask once more finds the client closed.
    assert {type(one) for one in errors} == {ConnectionLostError, SessionExpiredError}
    assert len({id(one) for one in errors}) == 8
    assert portal_threads() == []


@pytest.mark.parametrize("seconds", ["5", math.nan, True])
def test_a_limit_is_a_number_of_seconds(seconds: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"seconds: {seconds!r} is no number of seconds"):
        timeout(seconds)


def test_a_limit_may_be_infinite(server: ServerThread) -> None:
    with connect(server.hosts) as client, timeout(math.inf):
        assert client.exists("/") is not None


def test_a_limit_cancels_the_call_and_the_client_stays_usable(server: ServerThread) -> None:
    with FaultProxy(server.address) as proxy, connect(proxy.hosts, session_timeout=60) as client:
        client.get("/")
        proxy.blackhole()
        with timeout(0.1), pytest.raises(TimeoutError, match="get /: no answer in time"):
            client.get("/")
        with timeout(-1), pytest.raises(TimeoutError, match="exists /: the time is up"):
            client.exists(path="/")
        with timeout(0.1), pytest.raises(TimeoutError, match="no answer in time"):
            client.transaction().create("/late").commit()
        proxy.heal()
        proxy.cut()
        with timeout(DEADLINE_S):
            client.get("/")


def test_a_lost_reply_is_told_truthfully(server: ServerThread) -> None:
    with (
        FaultProxy(server.address) as proxy,
        timeout(DEADLINE_S),
        connect(proxy.hosts) as exact,
        connect(proxy.hosts, exact=False) as client,
    ):
        assert (exact.is_exact, client.is_exact) == (True, False)
        proxy.when(operation="create", path="/found").cut_after()
        assert exact.create("/found") == "/found"
        proxy.when(operation="create", path="/lost").cut_after()
        with pytest.raises(ConnectionLostError, match=r"create /lost: .* outcome is unknown"):
            client.create("/lost", ephemeral=True)
        assert client.exists("/lost") is not None
        proxy.when(operation="get", path="/lost").cut_before()
        assert client.get("/lost").data == b""


def test_errors_come_with_a_short_traceback(client: Client) -> None:
    with pytest.raises(NoNodeError, match="get /none: no such node") as caught:
        client.get("/none")
    assert [frame.path.name for frame in caught.traceback if hasattr(frame.path, "name")] == [
        "test_sync.py",
        "client.py",
        "portal.py",
        "portal.py",
        "portal.py",
    ]


def test_a_watcher_may_make_calls(client: Client) -> None:
    done = threading.Event()
    seen: list[tuple[EventType, bytes]] = []

    def follow(event: Event) -> None:
        # On a thread that is neither ours nor the loop's, so it may wait.
        data, _ = client.get("/followed", watch=follow)
        seen.append((event.type, data))
        client.create(f"/followed/{data.decode()}")
        if data == b"3":
            done.set()

    client.create("/followed", b"0")
    client.get("/followed", watch=follow)
    for number in range(1, 4):
        client.set("/followed", b"%d" % number)
        while not client.exists(f"/followed/{number}"):
            pass
    assert done.wait(DEADLINE_S)
    assert seen == [(EventType.CHANGED, b"%d" % number) for number in range(1, 4)]


def test_a_watcher_that_fails_is_logged_and_does_no_harm(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    heard = threading.Event()

    def fail(event: Event) -> None:
        raise ValueError("of no use")

    client.create("/watched")
    client.exists("/watched", watch=fail)
    client.get("/watched", watch=lambda event: heard.set())
    client.set("/watched", b"1")
    assert heard.wait(DEADLINE_S)
    assert "of no use" in caplog.text
    assert client.get("/watched").data == b"1"


def test_a_watcher_may_close_the_client(server: ServerThread) -> None:
    closed = threading.Event()

    def close(event: Event) -> None:
        if event.type is EventType.CREATED:
            closing.close()
            closed.set()

    closing = connect(server.hosts)
    closing.start()
    closing.exists("/close", watch=close)
    try:
        closing.create("/close", ephemeral=True)
    except (ConnectionLostError, SessionExpiredError):
        # The watcher may be first.
        pass
    assert closed.wait(DEADLINE_S)
    assert closing.state is SessionState.CLOSED


def test_a_forgotten_watcher_is_told_of_nothing(client: Client) -> None:
    heard: list[Event] = []
    client.add_watch("/forgotten", heard.append)
    client.forget_watcher(heard.append)
    client.create("/forgotten")
    client.sync()
    client.close()
    assert heard == []


def test_states_are_told_and_streamed(server: ServerThread) -> None:
    heard: list[SessionState] = []
    removed: list[SessionState] = []
    with FaultProxy(server.address) as proxy, timeout(DEADLINE_S):
        with connect(proxy.hosts) as client:
            states = client.states()
            assert next(states) is SessionState.CONNECTED
            client.add_listener(heard.append)
            client.add_listener(removed.append)
            client.remove_listener(removed.append)
            proxy.cut()
            assert next(states) is SessionState.DISCONNECTED
            assert next(states) is SessionState.CONNECTED
            now = time.monotonic()
            assert now < client.session_valid_until < now + client.session_timeout + 1
        # What was not read in time is not lost with the thread.
        assert list(states) == [SessionState.CLOSED]
        assert list(states) == []
    expected = [SessionState.DISCONNECTED, SessionState.CONNECTED, SessionState.CLOSED]
    assert heard == expected
    assert removed == []


def test_the_thread_of_an_event_loop_is_refused(client: Client) -> None:
    async def main() -> None:
        with pytest.raises(UsageError, match=r"use paddock\.connect here"):
            client.get("/")
        with pytest.raises(UsageError, match=r"use paddock\.connect here"):
            connect("127.0.0.1:1")
        assert await asyncio.to_thread(client.exists, "/none") is None

    asyncio.run(main())
    assert client.exists("/none") is None


def test_another_client_has_a_session_of_its_own_and_the_same_credentials(
    server: ServerThread,
) -> None:
    first = connect(server.hosts)
    with first:
        first.add_auth("digest", b"alice:secret")
        first.create("/private", acl=paddock.CREATOR_ALL_ACL)
        with first.another() as second:
            assert second.session_id != first.session_id
            assert ("digest", "alice") in second.who_am_i()
    # Also when the first one is closed, and its thread has ended.
    with first.another() as third:
        third.delete("/private")


def test_a_client_of_the_other_api_is_refused(server: ServerThread, client: Client) -> None:
    async def main() -> None:
        async with paddock.connect(server.hosts) as other:
            with pytest.raises(InvalidArgumentError, match=r"^client: .* not of the blocking API"):
                sync_recipes.Lock(other, "/lock")  # type: ignore[arg-type]
            lock = recipes.Lock(other, "/lock")
            with pytest.raises(InvalidArgumentError, match=r"^locks: .* not of the blocking API"):
                sync_recipes.MultiLock([lock])  # type: ignore[list-item]
        with pytest.raises(
            InvalidArgumentError, match=r"^client: expected one of paddock\.connect"
        ):
            recipes.Lock(client, "/lock")  # type: ignore[arg-type]
        with pytest.raises(UsageError, match=r"use paddock\.connect here, also for"):
            client.get("/")
        with pytest.raises(UsageError, match="start_task: a blocking client has no such method"):
            client.start_task  # type: ignore[attr-defined] # noqa: B018

    asyncio.run(main())
    with pytest.raises(AttributeError, match="'Client' object has no attribute 'nothing'"):
        client.nothing  # type: ignore[attr-defined] # noqa: B018

"""OpenTelemetry by its own SDK, on a real server: which spans there are, and whose children."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import uvloop
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode

import paddock
import paddock.sync
from paddock import Client, Event, NoNodeError, SessionState, TransactionFailedError
from paddock.errors import GrantLostError
from paddock.recipes import Election, Lease, Lock, Semaphore, SimpleMutex
from paddock.sync.recipes import Lock as BlockingLock
from paddock.testing import FaultyServer, ServerThread
from tests.support.recipes import until
from tests.support.telemetry import Telemetry, attributes_of, events_of

DEADLINE_S = 60.0

Scenario = Callable[[Client], Coroutine[Any, Any, None]]


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread() as server:
        yield server


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry()


@pytest.fixture
def run(server: ServerThread, telemetry: Telemetry) -> Callable[[Scenario], None]:
    """Run a scenario with a client that is observed, on an empty tree."""

    def run(scenario: Scenario, hosts: str = server.hosts) -> None:
        async def main() -> None:
            async with asyncio.timeout(DEADLINE_S):
                async with paddock.connect(hosts) as client:
                    for name in {*await client.children("/")} - {"zookeeper"}:
                        await client.delete_tree(f"/{name}")
                async with paddock.connect(hosts, observer=telemetry.observer) as client:
                    await scenario(client)

        asyncio.run(main())

    return run


Run = Callable[[Scenario], None]


# Calls.


def test_a_call_says_what_it_was_and_where(
    run: Run, server: ServerThread, telemetry: Telemetry
) -> None:
    async def scenario(client: Client) -> None:
        await client.create("/config", b"v1")
        with telemetry.span("request"):
            _, stat = await client.get("/config")
        call = telemetry.only("zookeeper get", path="/config")
        host, port = server.address
        assert telemetry.parent(call) == "request"
        assert call.kind is SpanKind.CLIENT
        assert call.status.status_code is StatusCode.UNSET
        assert attributes_of(call) == {
            "db.system.name": "zookeeper",
            "db.operation.name": "get",
            "server.address": host,
            "server.port": port,
            "zookeeper.path": "/config",
            "zookeeper.session": f"0x{client.session_id:x}",
            # The session and its connection took no number.
            "zookeeper.xid": 2,
            "zookeeper.zxid": f"0x{stat.czxid:x}",
        }

    run(scenario)


def test_the_session_is_opened_and_closed_by_calls(run: Run, telemetry: Telemetry) -> None:
    ids = []

    async def scenario(client: Client) -> None:
        ids.append(f"0x{client.session_id:x}")

    run(scenario)
    for name in ("zookeeper connect", "zookeeper close"):
        assert attributes_of(telemetry.only(name))["zookeeper.session"] == ids[0]
        assert attributes_of(telemetry.only(name))["server.port"] > 0


def test_a_chroot_is_the_namespace(server: ServerThread, telemetry: Telemetry) -> None:
    async def main() -> None:
        hosts = f"{server.hosts}/app"
        async with paddock.connect(hosts, observer=telemetry.observer) as client:
            assert await client.exists("/config") is None

    asyncio.run(main())
    found = attributes_of(telemetry.only("zookeeper exists"))
    assert (found["db.namespace"], found["zookeeper.path"]) == ("/app", "/config")


def test_calls_in_flight_together_have_their_own_parents_and_zxids(
    run: Run, telemetry: Telemetry
) -> None:
    """Neither tasks that take turns nor replies that come in one read mix them up."""

    async def scenario(client: Client) -> None:
        created = {}

        async def work(name: str) -> None:
            with telemetry.span(name):
                asked = [client.create_with_stat(f"/{name}-{one}") for one in range(20)]
                for future in asked:
                    path, stat = await future
                    created[path] = stat.czxid
                await client.get(f"/{name}-0")

        await asyncio.gather(*(work(f"task{one}") for one in range(5)))
        for path, czxid in created.items():
            call = telemetry.only("zookeeper create", path=path)
            assert telemetry.parent(call) == path.split("-")[0][1:]
            assert attributes_of(call)["zookeeper.zxid"] == f"0x{czxid:x}"
        xids = [attributes_of(one)["zookeeper.xid"] for one in telemetry.spans("zookeeper create")]
        assert sorted(xids) == list(range(1, 101))
        gets = telemetry.spans("zookeeper get")
        assert {telemetry.parent(one) for one in gets} == {f"task{one}" for one in range(5)}

    run(scenario)


def test_a_refusal_is_recorded_and_a_missing_node_of_exists_is_none(
    run: Run, telemetry: Telemetry
) -> None:
    async def scenario(client: Client) -> None:
        with pytest.raises(NoNodeError):
            await client.get("/nothing")
        assert await client.exists("/nothing") is None
        with pytest.raises(TransactionFailedError):
            await client.transaction().check("/nothing").commit()
        refused = telemetry.only("zookeeper get")
        assert refused.status.status_code is StatusCode.ERROR
        assert refused.status.description == "get /nothing: no such node"
        assert attributes_of(refused)["error.type"] == "NoNodeError"
        assert attributes_of(refused)["db.response.status_code"] == "-101"
        [(name, recorded)] = events_of(refused)
        assert (name, recorded["exception.type"]) == ("exception", "paddock.errors.NoNodeError")
        looked = telemetry.only("zookeeper exists")
        assert looked.status.status_code is StatusCode.UNSET
        assert "error.type" not in attributes_of(looked)
        failed = attributes_of(telemetry.only("zookeeper transaction"))
        assert failed["error.type"] == "TransactionFailedError"
        assert failed["db.response.status_code"] == "-101"

    run(scenario)


def test_a_cancelled_call_is_no_error(run: Run, telemetry: Telemetry) -> None:
    async def scenario(client: Client) -> None:
        asked = client.get("/")
        asked.cancel()
        await client.sync()
        call = telemetry.only("zookeeper get")
        assert call.status.status_code is StatusCode.UNSET
        assert attributes_of(call)["error.type"] == "cancelled"

    run(scenario)


def test_a_call_of_several_requests_is_one_span_above_them(run: Run, telemetry: Telemetry) -> None:
    async def scenario(client: Client) -> None:
        with telemetry.span("request"):
            await client.create("/a/b", make_parents=True)
            await client.delete_tree("/a")
        [made, parents] = telemetry.spans("paddock create")
        assert (telemetry.parent(made), telemetry.parent(parents)) == ("request", "paddock create")
        assert made.status.status_code is StatusCode.UNSET
        requests = telemetry.spans("zookeeper create")
        assert {telemetry.parent(one) for one in requests} == {"paddock create"}
        assert attributes_of(requests[0])["error.type"] == "NoNodeError"
        assert telemetry.parent(telemetry.only("paddock delete_tree")) == "request"
        deletes = telemetry.spans("zookeeper delete")
        assert {telemetry.parent(one) for one in deletes} == {"paddock delete_tree"}
        assert len(deletes) >= 2

    run(scenario)


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_the_calls_of_a_watcher_belong_to_nobody_who_opened_the_session(
    server: ServerThread, telemetry: Telemetry, new_loop: Callable[[], Any]
) -> None:
    async def main() -> None:
        done = asyncio.Event()
        calls = []

        def watcher(event: Event) -> None:
            if event.path is not None:
                calls.append(client.sync())
                done.set()

        client = paddock.connect(server.hosts, observer=telemetry.observer)
        with telemetry.span("start of the program"):
            await client.start()
            path = await client.create("/watched-", sequential=True)
            await client.get(path, watch=watcher)
        await client.set(path, b"new")
        async with asyncio.timeout(DEADLINE_S):
            await done.wait()
            await calls[0]
        await client.close()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())
    assert telemetry.parent(telemetry.only("zookeeper sync")) is None
    assert telemetry.parent(telemetry.only("zookeeper create")) == "start of the program"


def test_credentials_are_a_call_without_a_secret(run: Run, telemetry: Telemetry) -> None:
    async def scenario(client: Client) -> None:
        await client.add_auth("digest", b"alice:secret")

    run(scenario)
    assert "secret" not in telemetry.only("zookeeper add_auth").to_json()


def test_a_span_that_is_not_sampled_costs_no_call_and_is_measured(server: ServerThread) -> None:
    telemetry = Telemetry(ALWAYS_OFF)

    async def main() -> None:
        async with paddock.connect(server.hosts, observer=telemetry.observer) as client:
            async with Lock(client, "/unsampled"):
                await client.get("/")
            with pytest.raises(NoNodeError):
                await client.get("/nothing")

    asyncio.run(main())
    assert telemetry.spans("zookeeper get") == []
    gets = {"db.operation.name": "get"}
    assert telemetry.counted("db.client.operation.duration", gets) == 2


def test_an_error_that_nobody_looks_at_is_still_complained_about(
    run: Run, telemetry: Telemetry
) -> None:
    complaints = []

    async def scenario(client: Client) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, about: complaints.append(about["message"]))
        client.get("/nothing")
        await client.sync()

    run(scenario)
    assert complaints == ["Future exception was never retrieved"]


# Lost connections.


def test_a_call_that_is_sent_again_is_one_span_and_the_reconnect_a_trace_of_its_own(
    telemetry: Telemetry,
) -> None:
    with FaultyServer() as server:

        async def main() -> None:
            async with paddock.connect(server.hosts, observer=telemetry.observer) as client:
                server.drop_reply("get")
                with telemetry.span("request"):
                    await client.get("/")
                metrics = client.metrics()
                assert (metrics.connections, metrics.reconnects) == (2, 1)

        asyncio.run(main())
    call = telemetry.only("zookeeper get")
    assert attributes_of(call)["zookeeper.lost_connections"] == 1
    assert call.status.status_code is StatusCode.UNSET
    reconnect = telemetry.only("zookeeper reconnect")
    assert reconnect.parent is None
    assert reconnect.context.trace_id != call.context.trace_id
    assert attributes_of(reconnect)["zookeeper.state"] == "connected"
    assert attributes_of(reconnect)["zookeeper.next_server"].startswith("127.0.0.1:")
    ended = {"zookeeper.state": "connected"}
    assert telemetry.counted("zookeeper.client.reconnect.duration", ended) == 1
    assert telemetry.counted("zookeeper.client.state_changes", ended) == 2
    lost = {"zookeeper.state": "disconnected"}
    assert telemetry.counted("zookeeper.client.state_changes", lost) == 1


def test_a_session_that_expires_ends_its_reconnect_and_its_lock_with_an_error(
    telemetry: Telemetry,
) -> None:
    with FaultyServer() as server:

        async def be_lost(client: Client) -> None:
            async with asyncio.timeout(DEADLINE_S), Lock(client, "/lock"):
                await asyncio.to_thread(server.expire, client.session_id)
                await asyncio.Event().wait()

        async def main() -> None:
            async with paddock.connect(server.hosts, observer=telemetry.observer) as client:
                with pytest.raises(GrantLostError):
                    await be_lost(client)
                assert client.state is SessionState.EXPIRED

        asyncio.run(main())
    hold = telemetry.only("Lock.hold")
    assert hold.status.status_code is StatusCode.ERROR
    assert hold.status.description == "the session has expired"
    assert attributes_of(hold)["paddock.lock.outcome"] == "lost"
    reconnect = telemetry.only("zookeeper reconnect")
    assert attributes_of(reconnect)["zookeeper.state"] == "expired"
    assert reconnect.status.status_code is StatusCode.ERROR
    lost = {"paddock.lock.kind": "Lock", "paddock.lock.outcome": "lost"}
    assert telemetry.counted("paddock.lock.hold.duration", lost) == 1


# Locks.


def test_a_hand_over_is_seen_from_both_sides(run: Run, telemetry: Telemetry) -> None:
    async def scenario(client: Client) -> None:
        async with client.another() as other:
            with telemetry.span("holder"):
                grant = await Lock(client, "/lock").acquire()
            with telemetry.span("waiter"):
                waiting = asyncio.create_task(Lock(other, "/lock").acquire())
            # The waiter watches the holder's node, and so does the holder, since it holds on.
            await until(lambda: other.metrics().watches["data"] == 1)
            await until(lambda: client.metrics().watches["data"] == 1)
            with telemetry.span("end"):
                await grant.release()
            second = await waiting
            await second.release()
        holder, waiter = telemetry.spans("Lock.acquire")
        held, _ = telemetry.spans("Lock.hold")
        released, _ = telemetry.spans("Lock.release")
        deleted, _ = telemetry.spans("zookeeper delete")
        assert [telemetry.parent(one) for one in (holder, held)] == ["holder", "holder"]
        assert [telemetry.parent(one) for one in (waiter, released)] == ["waiter", "end"]
        assert telemetry.parent(deleted) == "Lock.release"
        # What a grant asks for itself, to see whether its node is there.
        assert telemetry.parent(telemetry.spans("zookeeper exists")[0]) == "Lock.hold"
        assert (telemetry.links(held), telemetry.links(released)) == ([holder], [held])
        # The waiter names the node, and the transaction that has handed the lock over.
        assert events_of(holder) == []
        node = attributes_of(held)["paddock.lock.node"]
        assert events_of(waiter) == [
            (
                "blocked",
                {
                    "paddock.lock.blocked_by": node,
                    "paddock.lock.blocked_by.session": f"0x{client.session_id:x}",
                },
            ),
            ("woken", {"zookeeper.zxid": attributes_of(deleted)["zookeeper.zxid"]}),
        ]
        assert attributes_of(released)["paddock.lock.node"] == node
        assert attributes_of(waiter)["paddock.lock.token"] == second.token
        assert [attributes_of(one)["paddock.lock.waited"] for one in (holder, waiter)] == [
            False,
            True,
        ]

    run(scenario)
    granted = {"paddock.lock.kind": "Lock", "paddock.lock.outcome": "granted"}
    assert telemetry.counted("paddock.lock.wait.duration", granted) == 2
    assert telemetry.counted("paddock.lock.hold.duration", {"paddock.lock.kind": "Lock"}) == 2


def test_a_wait_may_end_without_a_grant(run: Run, telemetry: Telemetry) -> None:
    async def scenario(client: Client) -> None:
        async with Lock(client, "/lock"):
            assert await Lock(client, "/lock").try_acquire() is None
            with pytest.raises(TimeoutError):
                await Lock(client, "/lock").acquire(timeout=0.01)
        spans = [attributes_of(one) for one in telemetry.spans("Lock.acquire")]
        outcomes = [one["paddock.lock.outcome"] for one in spans]
        assert outcomes == ["granted", "busy", "cancelled"]

    run(scenario)


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("SimpleMutex", lambda client: SimpleMutex(client, "/held", "it")),
        ("Semaphore", lambda client: Semaphore(client, "/held", leases=1)),
        ("Lease", lambda client: Lease(client, "/held", seconds=60)),
    ],
)
def test_every_kind_of_lock_says_whom_it_waits_for(
    run: Run, telemetry: Telemetry, kind: str, make: Callable[[Client], Any]
) -> None:
    async def scenario(client: Client) -> None:
        async with client.another() as other:
            first = await make(client).acquire()
            waiting = asyncio.create_task(make(other).acquire())
            await until(lambda: sum(other.metrics().watches.values()) > 0)
            await first.release()
            await (await waiting).release()
        waited = telemetry.spans(f"{kind}.acquire")[1]
        events = events_of(waited)
        assert [name for name, _ in events][:2] == ["blocked", "woken"]
        assert events[0][1]["paddock.lock.blocked_by"] == first.path
        assert len(telemetry.spans(f"{kind}.release")) == 2

    run(scenario)


def test_a_contender_for_a_semaphore_says_that_it_waits_for_its_turn(
    run: Run, telemetry: Telemetry
) -> None:
    async def scenario(client: Client) -> None:
        held = await Semaphore(client, "/held", leases=1).acquire()
        contenders = [Semaphore(client, "/held", leases=1) for _ in range(2)]
        waiting = [asyncio.create_task(one.acquire()) for one in contenders]
        # The holder looks at its own node, the first waiter at the leases, the next at the first.
        await until(lambda: {"data": 2, "children": 1}.items() <= client.metrics().watches.items())
        await held.release()
        for task in waiting:
            await (await task).release()
        last = telemetry.spans("Semaphore.acquire")[2]
        name, attributes = events_of(last)[0]
        assert name == "blocked"
        assert attributes["paddock.lock.blocked_by"].startswith("/held/locks/")

    run(scenario)


def test_a_leadership_is_held_as_a_lock_is(run: Run, telemetry: Telemetry) -> None:
    async def scenario(client: Client) -> None:
        with telemetry.span("program"):
            async with Election(client, "/election").lead():
                pass
        for name in ("Election.acquire", "Election.hold", "Election.release"):
            assert telemetry.parent(telemetry.only(name)) == "program"

    run(scenario)


def test_a_grant_is_suspended_and_resumed(run: Run, telemetry: Telemetry) -> None:
    async def scenario(client: Client) -> None:
        async with Lock(client, "/lock"):
            transport = client._session.dispatcher.transport
            assert transport is not None
            transport.abort()
            await until(lambda: client.metrics().reconnects == 1)
        assert [name for name, _ in events_of(telemetry.only("Lock.hold"))] == [
            "suspended",
            "resumed",
        ]

    run(scenario)


# Metrics.


def test_what_is_now_is_summed_over_clients(server: ServerThread, telemetry: Telemetry) -> None:
    async def main() -> None:
        async with asyncio.timeout(DEADLINE_S):
            one = paddock.connect(server.hosts, observer=telemetry.observer)
            async with one, one.another() as other:
                for client in (one, other):
                    await client.children("/", watch=print)
                for client in (one, other):
                    client.get("/")
                sessions = "zookeeper.client.sessions", {"zookeeper.state": "connected"}
                requests = "zookeeper.client.requests", {"zookeeper.request.state": "in_flight"}
                watches = "zookeeper.client.watches", {"zookeeper.watch.kind": "children"}
                for name, attributes in (sessions, requests, watches):
                    assert telemetry.counted(name, attributes) == 2
                await one.create("/counted")
                await other.sync()
                created = {"zookeeper.event.type": "children_changed"}
                assert telemetry.counted("zookeeper.client.watch_events", created) == 2
                assert telemetry.counted(*watches) == 0
            assert telemetry.counted(*sessions) == 0

    asyncio.run(main())


def test_calls_are_counted_by_their_outcome(run: Run, telemetry: Telemetry) -> None:
    async def scenario(client: Client) -> None:
        for _ in range(3):
            await client.get("/")
        with pytest.raises(NoNodeError):
            await client.get("/nothing")

    run(scenario)
    gets = [
        (attributes.get("error.type"), attributes.get("db.response.status_code"), count)
        for attributes, count in telemetry.points("db.client.operation.duration")
        if attributes["db.operation.name"] == "get"
    ]
    assert sorted(gets, key=str) == [("NoNodeError", "-101", 1), (None, None, 3)]


# Blocking code.


def test_a_blocking_call_is_a_child_of_the_span_of_its_thread(
    server: ServerThread, telemetry: Telemetry
) -> None:
    def work(client: paddock.sync.Client, name: str) -> None:
        with telemetry.span(name):
            for one in range(10):
                client.exists(f"/{name}/{one}")

    with paddock.sync.connect(server.hosts, observer=telemetry.observer) as client:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda name: work(client, name), "abcd"))
        assert client.metrics().succeeded == 40
    for call in telemetry.spans("zookeeper exists"):
        assert f"/{telemetry.parent(call)}/" in attributes_of(call)["zookeeper.path"]
    assert len(telemetry.spans("zookeeper exists")) == 40


def test_a_blocking_lock_is_traced_in_the_span_of_its_thread(
    server: ServerThread, telemetry: Telemetry
) -> None:
    with paddock.sync.connect(server.hosts, observer=telemetry.observer) as client:
        with telemetry.span("request"), BlockingLock(client, "/blocking"):
            client.sync()
    for name in ("Lock.acquire", "Lock.hold", "Lock.release", "zookeeper sync"):
        assert telemetry.parent(telemetry.only(name)) == "request"
    assert telemetry.parent(telemetry.only("zookeeper delete")) == "Lock.release"


# Without it.

_UNSEEN = """
import asyncio, sys

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "opentelemetry":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Refusing())
import paddock
from paddock.recipes import Lock

async def main(hosts):
    async with paddock.connect(hosts) as client:
        async with Lock(client, "/unseen"):
            await client.get("/")

asyncio.run(main(sys.argv[1]))
with paddock.sync.connect(sys.argv[1]) as client:
    client.get("/")
print([one for one in sys.modules if one.startswith(("opentelemetry", "paddock.otel"))])
import paddock.otel
"""


def test_nothing_of_it_is_imported_unless_it_is_used(server: ServerThread) -> None:
    command = [sys.executable, "-c", _UNSEEN, server.hosts]
    run = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    assert run.stdout == "[]\n", run.stderr
    expected = "ImportError: paddock.otel needs the package opentelemetry-api: pip install"
    assert expected in run.stderr

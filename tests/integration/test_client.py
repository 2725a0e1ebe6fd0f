"""The client's operations, on Paddock, on Apache ZooKeeper, and on three of each."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest

from paddock.client.client import Client
from paddock.client.states import Event, EventType, SessionState
from paddock.errors import (
    BadVersionError,
    ConnectionLostError,
    InvalidACLError,
    InvalidArgumentError,
    NoAuthError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    NoWatcherError,
    SessionExpiredError,
    TransactionFailedError,
    UsageError,
)
from paddock.protocol.acl import ACL, ALL, CREATOR_ALL, Identity
from paddock.testing import EmbeddedServer, expire_session
from tests.support.apis import api, asyncio_only, connect, lose_connection
from tests.support.server import Server, Service

__all__ = ["api"]

DEADLINE_S = 30.0


@pytest.fixture(
    scope="module",
    params=[
        "paddock",
        pytest.param("apache", marks=pytest.mark.judge),
        pytest.param("ensemble", marks=pytest.mark.judge),
        pytest.param("cluster", marks=pytest.mark.judge),
    ],
)
def server(request: pytest.FixtureRequest) -> Service:
    """The service under test; `conftest.py` says which tests run on three servers, and when."""
    found: Service = request.getfixturevalue(f"shared_{request.param}")
    return found


def run(
    server: Service, scenario: Callable[[Client], Coroutine[Any, Any, None]], chroot: str = ""
) -> None:
    async def main() -> None:
        async with asyncio.timeout(DEADLINE_S), client_of(server, chroot) as client:
            await scenario(client)

    asyncio.run(main())


def client_of(server: Service, chroot: str = "", **settings: Any) -> Client:
    return connect(f"{server.hosts}{chroot}", random=Random(1), **settings)


def fresh(request: pytest.FixtureRequest) -> str:
    """Return the path of a node that only this test uses."""
    return "/" + "".join(one if one.isalnum() else "-" for one in request.node.name)


@pytest.fixture
def path(request: pytest.FixtureRequest) -> str:
    return fresh(request)


def test_a_node_from_its_creation_to_its_end(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        assert await client.exists(path) is None
        created = await client.create_with_stat(path, b"one")
        assert created.path == path
        assert (created.stat.version, created.stat.data_length) == (0, 3)
        assert await client.get(path) == (b"one", created.stat)
        stat = await client.set(path, b"two", version=0)
        assert (await client.get(path)).data == b"two"
        assert await client.exists(path) == stat
        assert await client.create(f"{path}/child") == f"{path}/child"
        assert await client.children(path) == ["child"]
        names, above = await client.children_with_stat(path)
        assert (names, above.num_children) == (["child"], 1)
        assert await client.count_descendants(path) == 1
        with pytest.raises(
            NotEmptyError,
            match=f"delete {path}: the node has children; delete_tree deletes them, too",
        ):
            await client.delete(path)
        await client.sync(path)
        await client.delete(f"{path}/child")
        await client.delete(path, version=1)
        assert await client.exists(path) is None

    run(server, scenario)


def test_a_node_that_exists_may_be_accepted(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        assert (
            await client.create(f"{path}/a", b"x", make_parents=True, exist_ok=True) == f"{path}/a"
        )
        assert await client.create(f"{path}/a", b"y", exist_ok=True) == f"{path}/a"
        created, stat = await client.create_with_stat(f"{path}/a", b"y", exist_ok=True)
        assert (created, stat) == (f"{path}/a", await client.exists(f"{path}/a"))
        assert (await client.get(f"{path}/a")).data == b"x"
        with pytest.raises(NoNodeError, match="its parent does not exist"):
            await client.create(f"{path}/none/a", exist_ok=True)
        with pytest.raises(InvalidArgumentError, match="exist_ok: expected True or False"):
            await client.create(f"{path}/a", exist_ok="yes")  # type: ignore[arg-type]
        await client.delete_tree(path)

    run(server, scenario)


def test_errors_name_operation_and_path(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        await client.create(path)
        missing = f"{path}/none"
        for call, kind, text in (
            (client.get(missing), NoNodeError, f"get {missing}: no such node"),
            (client.children(missing), NoNodeError, f"children {missing}: no such node"),
            (client.children_with_stat(missing), NoNodeError, f"children {missing}: no such node"),
            (client.count_descendants(missing), NoNodeError, f"count_descendants {missing}: no"),
            (
                client.create(f"{missing}/a"),
                NoNodeError,
                f"create {missing}/a: its parent does not exist; make_parents=True creates it",
            ),
            (
                client.transaction().create(f"{missing}/a", container=True).commit(),
                TransactionFailedError,
                f"create {missing}/a: its parent does not exist$",
            ),
            (client.create(path), NodeExistsError, f"create {path}: the node exists already"),
            (client.create_with_stat(path), NodeExistsError, f"create {path}: the node exists"),
            (client.create(path, ttl=1), NodeExistsError, f"create {path}: the node exists"),
            (client.create(path, container=True), NodeExistsError, f"create {path}: the node"),
            (client.set(path, b"", version=7), BadVersionError, f"set {path}: the version"),
        ):
            with pytest.raises(kind, match=text):
                await call
        await client.delete(path)

    run(server, scenario)


def test_all_kinds_of_nodes(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        await client.create(path)
        first = await client.create(f"{path}/n-", sequential=True)
        second = await client.create(f"{path}/n-", sequential=True, ephemeral=True)
        assert (first, second) == (f"{path}/n-0000000000", f"{path}/n-0000000001")
        assert await client.create(f"{path}/", sequential=True) == f"{path}/0000000002"
        stat = await client.exists(second)
        assert stat is not None
        assert stat.ephemeral_owner == client.session_id
        assert await client.ephemerals(path) == [second]
        await client.create(f"{path}/container", container=True)
        await client.create(f"{path}/ttl", ttl=100)
        await client.create(f"{path}/ttl-", ttl=100, sequential=True)
        await client.create(f"{path}/null", None)
        assert (await client.get(f"{path}/null")).data == b""

    run(server, scenario)


def test_parents_are_made_and_trees_are_deleted(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        deep = f"{path}/a/b/c"
        with pytest.raises(NoNodeError):
            await client.create(deep)
        assert await client.create(deep, b"x", make_parents=True) == deep
        with pytest.raises(NodeExistsError):
            await client.create(deep, make_parents=True)
        created = await client.create_with_stat(f"{path}/q/n-", sequential=True, make_parents=True)
        assert created.path == f"{path}/q/n-0000000000"
        await asyncio.gather(*(client.create(f"{path}/{number}") for number in range(50)))
        assert await client.delete_tree(path, batch=7) == 56
        assert await client.exists(path) is None
        assert await client.delete_tree(path) == 0

    run(server, scenario)


def test_a_path_is_ensured_with_its_parents_and_their_acl(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        await client.add_auth("digest", b"alice:secret")
        await client.create(path, b"kept")
        await client.ensure_path(f"{path}/a/b", acl=CREATOR_ALL)
        await client.ensure_path(f"{path}/a/b")
        await client.ensure_path("/")
        assert (await client.get(path)).data == b"kept"
        for made in (f"{path}/a", f"{path}/a/b"):
            acl, stat = await client.get_acl(made)
            assert [one.identity.scheme for one in acl] == ["digest"]
            assert (stat.aversion, stat.data_length) == (0, 0)
        with pytest.raises(InvalidArgumentError, match="acl: "):
            await client.ensure_path(path, acl=[])
        await client.create(f"{path}/ephemeral", ephemeral=True)
        with pytest.raises(NoChildrenForEphemeralsError):
            await client.ensure_path(f"{path}/ephemeral/below")
        async with client_of(server) as stranger:
            # It exists, so the right to create it is not needed.
            await stranger.sync()
            await stranger.ensure_path(f"{path}/a")
            with pytest.raises(NoAuthError):
                await stranger.ensure_path(f"{path}/a/b/c")

    run(server, scenario)


def test_a_chroot_that_does_not_exist_is_ensured(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        await client.ensure_path("/")
        assert await client.children("/") == []
        await client.ensure_path("/a/b")
        assert await client.children("/a") == ["b"]

    async def look(client: Client) -> None:
        await client.sync()
        assert await client.delete_tree(path) == 5

    run(server, scenario, f"{path}/deep/chroot")
    run(server, look)


def test_a_protected_create_has_a_mark_in_its_name(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        made = await client.create(
            f"{path}/n-", sequential=True, ephemeral=True, protected=True, make_parents=True
        )
        assert re.fullmatch(rf"{path}/_c_[0-9a-f]{{32}}-n-0000000000", made)
        assert await client.children(path) == [made.rpartition("/")[2]]

    run(server, scenario)


def test_a_chroot_is_on_every_path_and_seen_in_none(server: Service, path: str) -> None:
    async def prepare(client: Client) -> None:
        await client.create(path)

    async def scenario(client: Client) -> None:
        events: asyncio.Queue[Event] = asyncio.Queue()
        assert await client.children("/", watch=events.put_nowait) == []
        created = await client.create("/n", ephemeral=True)
        assert created == "/n"
        event = await events.get()
        assert (event.type, event.path) == (EventType.CHILDREN_CHANGED, "/")
        assert await client.ephemerals() == ["/n"]
        with pytest.raises(NoNodeError, match="get /none: "):
            await client.get("/none")

    run(server, prepare)
    run(server, scenario, path)


def test_parents_are_made_up_to_and_above_the_chroot(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        with pytest.raises(NoNodeError, match="create /n: "):
            await client.create("/n")
        assert await client.create("/n", make_parents=True) == "/n"
        assert await client.create("/m/n", make_parents=True) == "/m/n"
        await client.delete_tree("/")
        assert await client.create("/m/n", make_parents=True) == "/m/n"
        assert await client.children("/") == ["m"]

    async def look(client: Client) -> None:
        assert await client.delete_tree(path) == 5

    run(server, scenario, f"{path}/deep/chroot")
    run(server, look)


def test_a_watch_fires_once_and_is_only_set_where_the_reply_allows_it(
    server: Service, path: str
) -> None:
    async def scenario(client: Client) -> None:
        events: asyncio.Queue[Event] = asyncio.Queue()
        with pytest.raises(NoNodeError):
            await client.get(path, watch=events.put_nowait)
        assert await client.exists(path, watch=events.put_nowait) is None
        await client.create(path)
        assert (await events.get()).type == EventType.CREATED
        await client.set(path, b"1")
        # One watcher that watches twice is told once.
        await client.get(path, watch=events.put_nowait)
        await client.exists(path, watch=events.put_nowait)
        await client.children(path, watch=events.put_nowait)
        await client.set(path, b"2")
        assert (await events.get()).type == EventType.CHANGED
        await client.set(path, b"3")
        await client.delete(path)
        assert (await events.get()).type == EventType.DELETED
        await client.sync()
        assert events.empty()

    run(server, scenario)


def test_persistent_watches_stay_until_they_are_removed(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        here: asyncio.Queue[Event] = asyncio.Queue()
        below: asyncio.Queue[Event] = asyncio.Queue()
        await client.create(path)
        await client.add_watch(path, here.put_nowait)
        await client.add_watch(f"{path}/tree", below.put_nowait, recursive=True)
        await client.create(f"{path}/tree")
        await client.create(f"{path}/tree/leaf")
        await client.set(path, b"1")
        await client.set(path, b"2")
        assert [(await here.get()).type for _ in range(3)] == [
            EventType.CHILDREN_CHANGED,
            EventType.CHANGED,
            EventType.CHANGED,
        ]
        assert [(await below.get()).path for _ in range(2)] == [f"{path}/tree", f"{path}/tree/leaf"]
        await client.remove_watches(path)
        await client.set(path, b"3")
        await client.sync()
        assert here.empty()
        assert below.empty()
        with pytest.raises(NoWatcherError, match=f"remove_watches {path}: there is no such watch"):
            await client.remove_watches(path)

    run(server, scenario)


def test_the_default_watcher_hears_of_the_session_and_of_its_watches(
    server: Service, path: str
) -> None:
    async def main() -> None:
        heard: list[Event] = []
        async with (
            asyncio.timeout(DEADLINE_S),
            client_of(server, default_watcher=heard.append) as client,
        ):
            await client.exists(path, watch=True)
            await client.create(path, ephemeral=True)
            await client.sync()
        states = [(event.state, event.type) for event in heard]
        assert states == [
            (SessionState.CONNECTED, EventType.NONE),
            (SessionState.CONNECTED, EventType.CREATED),
            (SessionState.CLOSED, EventType.NONE),
        ]
        assert heard[1].path == path

    asyncio.run(main())


def test_acls_and_credentials(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        await client.add_auth("digest", b"user:password")
        await client.create(path, acl=CREATOR_ALL)
        entries, stat = await client.get_acl(path)
        assert [(one.permissions, one.identity.scheme) for one in entries] == [(ALL, "digest")]
        assert stat.aversion == 0
        assert any(scheme == "digest" for scheme, _ in await client.who_am_i())
        async with client_of(server) as stranger:
            with pytest.raises(NoAuthError, match=f"get {path}: the ACL does not permit it"):
                await stranger.get(path)
        anyone = [ACL(ALL, Identity("world", "anyone"))]
        assert (await client.set_acl(path, anyone, version=0)).aversion == 1

    run(server, scenario)


@asyncio_only
def test_what_was_asked_before_credentials_is_asked_without_them(
    server: Service, path: str
) -> None:
    async def scenario(client: Client) -> None:
        await client.create(path)
        # Much more than what is written at a time.
        before = [client.set(path, bytes(100_000)) for _ in range(50)]
        too_early = client.create(f"{path}/early", acl=CREATOR_ALL)
        said = client.add_auth("digest", b"user:password")
        in_time = client.create(f"{path}/late", acl=CREATOR_ALL)
        with pytest.raises(InvalidACLError):
            await too_early
        await asyncio.gather(*before, said, in_time)

    run(server, scenario)


def test_a_transaction_is_committed_once(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        await client.create(path)
        async with client.transaction() as transaction:
            transaction.create(f"{path}/n-", sequential=True)
            await transaction.commit()
        assert transaction.results == [f"{path}/n-0000000000"]
        with pytest.raises(UsageError, match="a transaction is committed once"):
            await transaction.commit()
        with pytest.raises(UsageError, match="a transaction is committed once"):
            transaction.delete(path)
        assert await client.children(path) == ["n-0000000000"]

    run(server, scenario)


def test_a_transaction_happens_as_a_whole(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        async with client.transaction() as transaction:
            transaction.create(path, b"1").create(f"{path}/n-", sequential=True)
            transaction.check(path, version=0).set(path, b"2")
        assert transaction.results[:2] == [path, f"{path}/n-0000000000"]
        assert transaction.results[3].version == 1
        with pytest.raises(TransactionFailedError) as caught:
            await (
                client.transaction().delete(f"{path}/n-0000000000").check(path, version=9).commit()
            )
        assert [type(one) for one in caught.value.results] == [type(None), BadVersionError]
        assert f"check {path}: the version does not match" in str(caught.value)
        assert await client.children(path) == ["n-0000000000"]
        assert await client.transaction().commit() == []

    run(server, scenario)


def test_a_call_that_was_given_up_leaves_the_client_usable(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        calls = [client.exists(path) for _ in range(100)]
        for call in calls[::2]:
            call.cancel()
        assert await asyncio.gather(*calls[1::2]) == [None] * 50
        assert await client.exists(path) is None

    run(server, scenario)


@asyncio_only
def test_reads_survive_a_lost_connection_and_writes_do_or_tell_that_they_may_not_have(
    server: Service, path: str
) -> None:
    async def scenario(client: Client) -> None:
        watched: asyncio.Queue[Event] = asyncio.Queue()
        await client.create(path, b"kept", ephemeral=True)
        await client.get(path, watch=watched.put_nowait)
        session = client.session_id
        reading, writing = client.get(path), client.set(path, b"lost?")
        await asyncio.sleep(0)
        lose_connection(client)
        if client.is_exact:
            assert (await writing).version == 1
        else:
            with pytest.raises(ConnectionLostError, match=f"set {path}: .* outcome is unknown"):
                await writing
        data, stat = await reading
        assert data in (b"kept", b"lost?")
        assert (client.session_id, stat.ephemeral_owner) == (session, session)
        await client.set(path, b"again")
        seen = [(await watched.get()).state for _ in range(2)]
        assert seen == [SessionState.DISCONNECTED, SessionState.CONNECTED]
        assert (await watched.get()).type == EventType.CHANGED

    run(server, scenario)


async def asking_until_it_fails(client: Client) -> None:
    while True:
        await client.get("/")


def test_an_expired_session_fails_everything_once(server: Service, path: str) -> None:
    async def main() -> None:
        async with asyncio.timeout(DEADLINE_S), client_of(server) as client:
            states: list[SessionState] = []
            client._session.states.add(states.append)
            await expire_session(server.address, client.session_id, client.session_password)
            with pytest.raises(SessionExpiredError, match="get /: the session has expired"):
                await asking_until_it_fails(client)
            assert client.state is SessionState.EXPIRED
            with pytest.raises(SessionExpiredError):
                await client.create(path)
            assert states.count(SessionState.EXPIRED) == 1

    asyncio.run(main())


def test_nobody_waits_for_ever_for_a_server_that_is_not_there() -> None:
    async def main() -> None:
        client = connect("127.0.0.1:1", session_timeout=0.5, random=Random(1))
        async with asyncio.timeout(DEADLINE_S):
            with pytest.raises(ConnectionLostError, match="connect: "):
                await client.__aenter__()
        assert client.state is SessionState.CLOSED

    asyncio.run(main())


def test_calls_after_the_end_are_told(server: Service) -> None:
    async def main() -> None:
        async with asyncio.timeout(DEADLINE_S):
            async with client_of(server) as client:
                pass
            with pytest.raises(SessionExpiredError, match="get /: the client is closed"):
                await client.get("/")
            await client.close()

    asyncio.run(main())


def test_within_a_chroot_the_root_is_a_tree_like_any_other(server: Server, path: str) -> None:
    async def scenario(client: Client) -> None:
        await client.create(f"{path}/zookeeper/quota", make_parents=True)
        async with client_of(server, path) as below:
            # Also what is called as what the service keeps.
            assert await below.delete_tree("/") == 3
        assert await client.exists(path) is None

    run(server, scenario)


def test_the_whole_tree_is_all_but_what_the_service_keeps(path: str) -> None:
    async def main() -> None:
        # A server of its own: on one that is shared there may be what we may not delete.
        async with (
            asyncio.timeout(DEADLINE_S),
            EmbeddedServer() as server,
            connect(server.hosts, random=Random(1)) as client,
        ):
            await client.create(f"{path}/a/b", make_parents=True)
            assert await client.delete_tree("/") == 3
            assert await client.children("/") == ["zookeeper"]
            assert "quota" in await client.children("/zookeeper")

    asyncio.run(main())


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_trees_of_any_shape_are_deleted_and_counted(server: Server, path: str, batch: int) -> None:
    async def scenario(client: Client) -> None:
        random = Random(batch)
        nodes = [path]
        await client.create(path)
        # Chains, bushes and many nodes with a few children each, more than are listed at once.
        nodes.extend(f"{path}/{number}" for number in range(100))
        for number in range(100):
            above = nodes[-1] if number < 30 else random.choice(nodes)
            nodes.append(f"{above}/n{number}")
        await asyncio.gather(*(client.create(node) for node in nodes[1:]))
        assert await client.delete_tree(path, batch=batch) == len(nodes) == 201
        assert await client.exists(path) is None

    run(server, scenario)


def test_what_others_create_in_a_tree_meanwhile_goes_too(server: Server, path: str) -> None:
    async def scenario(client: Client) -> None:
        await asyncio.gather(
            client.create(path), *(client.create(f"{path}/{number}") for number in range(100))
        )
        async with client_of(server) as other:
            deleting = client.delete_tree(path, batch=5)
            added = 0
            # Not for ever: a writer that is always faster keeps the tree.
            for _ in range(100):
                if deleting.done():
                    break
                with contextlib.suppress(NoNodeError):
                    await other.create(f"{path}/x", b"")
                    added += 1
                with contextlib.suppress(NoNodeError):
                    await other.delete(f"{path}/x")
                    added -= 1
            assert await deleting == 101 + added
        assert await client.exists(path) is None

    run(server, scenario)


def test_a_call_of_several_requests_begins_in_its_place(server: Server, path: str) -> None:
    async def scenario(client: Client) -> None:
        creating = client.create(path, make_parents=True)
        marking = client.set(path, b"mark", version=0, mark=b"mark")
        assert (await client.get(path)).data == b"mark"
        await asyncio.gather(creating, marking)
        committing = client.transaction().set(path, b"committed").commit()
        assert (await client.get(path)).data == b"committed"
        await committing
        # Given up before it began to be waited for.
        calls = (client.create(path, protected=True), client.set(path, b"m", version=2))
        for call in calls:
            call.cancel()
        for call in calls:
            with pytest.raises(asyncio.CancelledError):
                await call

    run(server, scenario)

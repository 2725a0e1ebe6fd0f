"""Lost replies of what takes several requests: the outcome is found out, or said to be unknown.

In an ordinary session, as any service has it. In an exact one the outcome is always known.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from random import Random
from typing import Any

import pytest

from paddock import (
    OPEN_ACL,
    BadVersionError,
    Client,
    ConnectionLostError,
    InvalidArgumentError,
    NoAuthError,
    NoNodeError,
    NotAppliedError,
    Permission,
    Stat,
    connect,
    world_acl,
)
from paddock.recipes.common.retry import read_node
from paddock.testing import CutPoint, EmbeddedServer, FaultProxy, at_every_cut, run_virtually
from tests.integration.test_client import DEADLINE_S, client_of, path, server
from tests.support.server import Service

__all__ = ["path", "server"]

MARK = b"mark-7f3a"
OURS = b"data of ours, " + MARK

Meanwhile = Callable[[Client, str], Awaitable[object]]


@pytest.fixture(
    params=["paddock", pytest.param("cluster", marks=[pytest.mark.judge, pytest.mark.long])]
)
def exact_server(request: pytest.FixtureRequest) -> Service:
    """A service with exact sessions."""
    found: Service = request.getfixturevalue(f"shared_{request.param}")
    return found


def client_through(proxy: FaultProxy, *, exact: bool = False) -> Client:
    return connect(proxy.hosts, random=Random(1), exact=exact)


def cut_everywhere(
    server: Service, scenario: Callable[[Client, Client], Coroutine[Any, Any, None]]
) -> None:
    """Run a scenario at every cut of its first client; the second one is never cut."""

    async def main() -> None:
        async with client_of(server) as direct:

            async def through(proxy: FaultProxy, cut: CutPoint | None) -> None:
                async with asyncio.timeout(DEADLINE_S), client_through(proxy) as client:
                    await scenario(client, direct)

            assert await at_every_cut(lambda: contextlib.nullcontext(server), through)

    asyncio.run(main())


def test_a_marked_write_happens_once_wherever_it_is_cut(server: Service, path: str) -> None:
    async def scenario(client: Client, direct: Client) -> None:
        await direct.delete_tree(path)
        await direct.create(path)
        await client.sync(path)
        stat = await client.set(path, OURS, version=0, mark=MARK)
        await direct.sync(path)
        assert await direct.get(path) == (OURS, stat)
        assert stat.version == 1

    cut_everywhere(server, scenario)


async def write_with_the_reply_lost(
    server: Service, path: str, *, is_done: bool, meanwhile: Meanwhile, exact: bool = False
) -> tuple[bytes, Stat]:
    """Lose the reply of a marked write; let others do something before we can look."""
    async with (
        asyncio.timeout(DEADLINE_S),
        FaultProxy(server.address) as proxy,
        client_of(server) as direct,
        client_through(proxy, exact=exact) as client,
    ):
        await direct.create(path, b"first")
        await client.sync(path)
        when = proxy.when(operation="set")
        fault = when.cut_after(stay_away=True) if is_done else when.cut_before(stay_away=True)
        writing = client.set(path, OURS, version=0, mark=MARK)
        await fault.happened()
        await meanwhile(direct, path)
        proxy.heal()
        stat = await writing
        await direct.sync(path)
        found = await read_node(direct, path)
        return found.data if found else b"", stat


async def nothing(other: Client, path: str) -> None:
    pass


async def write(other: Client, path: str) -> None:
    await other.set(path, b"theirs")


async def write_twice(other: Client, path: str) -> None:
    await write(other, path)
    await write(other, path)


async def delete(other: Client, path: str) -> None:
    await other.delete(path)


async def make_anew(other: Client, path: str) -> None:
    await other.delete(path)
    await other.create(path, b"anew")


async def make_anew_and_write(other: Client, path: str) -> None:
    await make_anew(other, path)
    await write(other, path)


async def forbid(other: Client, path: str) -> None:
    await other.set_acl(path, [world_acl(Permission.ADMIN)])


async def forbid_writing(other: Client, path: str) -> None:
    await other.set_acl(path, [world_acl(Permission.READ | Permission.ADMIN)])


@pytest.mark.parametrize("is_done", [True, False])
def test_a_marked_write_whose_reply_is_lost_tells_its_stat(
    server: Service, path: str, is_done: bool
) -> None:
    written = write_with_the_reply_lost(server, path, is_done=is_done, meanwhile=nothing)
    data, stat = asyncio.run(written)
    assert (data, stat.version) == (OURS, 1)


@pytest.mark.parametrize(
    ("is_done", "meanwhile", "outcome"),
    [
        # The requested version was written by another client: certainly not by us.
        (False, write, BadVersionError),
        # One of the two may have been on top of ours, and was: nobody can tell.
        (True, write, ConnectionLostError),
        (False, write_twice, ConnectionLostError),
        (True, delete, ConnectionLostError),
        (False, delete, ConnectionLostError),
        # Another node of the same name; sent again, our write would happen to it, a second time.
        (True, make_anew, ConnectionLostError),
        (False, make_anew, ConnectionLostError),
        (True, make_anew_and_write, ConnectionLostError),
        (False, make_anew_and_write, ConnectionLostError),
        # We may not look; and we may look, but not write.
        (True, forbid, ConnectionLostError),
        (False, forbid, ConnectionLostError),
        (False, forbid_writing, NoAuthError),
    ],
)
def test_a_marked_write_never_guesses(
    server: Service, path: str, is_done: bool, meanwhile: Meanwhile, outcome: type[Exception]
) -> None:
    async def main() -> None:
        with pytest.raises(outcome, match=f"set {path}: "):
            await write_with_the_reply_lost(server, path, is_done=is_done, meanwhile=meanwhile)
        async with client_of(server) as judge:
            await judge.sync(path)
            try:
                await judge.set_acl(path, OPEN_ACL)
            except NoNodeError:
                return
            # Nothing was written after the fact.
            is_ours = (await judge.get(path)).data == OURS
            assert is_ours == (is_done and meanwhile is forbid)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("meanwhile", "refusal"),
    [
        (nothing, None),
        (write, BadVersionError),
        (write_twice, BadVersionError),
        (delete, NoNodeError),
        # Another node of the same name and version: what was not done is done to it, once.
        (make_anew, None),
        (make_anew_and_write, BadVersionError),
        (forbid_writing, NoAuthError),
    ],
)
@pytest.mark.parametrize("is_done", [True, False])
def test_in_an_exact_session_the_outcome_is_known_whatever_others_do(
    exact_server: Service,
    path: str,
    is_done: bool,
    meanwhile: Meanwhile,
    refusal: type[Exception] | None,
) -> None:
    written = write_with_the_reply_lost(
        exact_server, path, is_done=is_done, meanwhile=meanwhile, exact=True
    )
    if refusal is None or is_done:
        _, stat = asyncio.run(written)
        assert stat.version == 1
    else:
        with pytest.raises(refusal):
            asyncio.run(written)


def test_somebody_who_writes_between_our_look_and_our_second_attempt_is_noticed(
    server: Service, path: str
) -> None:
    async def main() -> None:
        async with (
            asyncio.timeout(DEADLINE_S),
            FaultProxy(server.address) as proxy,
            client_of(server) as direct,
            client_through(proxy) as client,
        ):
            await direct.create(path)
            await client.sync(path)
            lost = proxy.when(operation="set").cut_before()
            late = proxy.when(operation="set", nth=2).delay(0.3)
            writing = client.set(path, OURS, version=0, mark=MARK)
            await lost.happened()
            await late.happened()
            await direct.set(path, b"theirs")
            with pytest.raises(BadVersionError):
                await writing
            assert (await direct.get(path)).data == b"theirs"

    asyncio.run(main())


def test_a_write_that_loses_every_connection_is_given_up(server: Service, path: str) -> None:
    async def main() -> None:
        async with (
            asyncio.timeout(DEADLINE_S),
            FaultProxy(server.address) as proxy,
            client_through(proxy) as client,
        ):
            await client.create(path)
            fault = proxy.when(operation="set", times=None).cut_before()
            with pytest.raises(ConnectionLostError, match=f"set {path}: "):
                await client.set(path, OURS, version=0, mark=MARK)
            assert len(fault.hits) == 10
            creates = proxy.when(operation="create2", times=None).cut_before()
            with pytest.raises(ConnectionLostError, match=f"create {path}/_c_"):
                await client.create(f"{path}/n-", protected=True)
            assert len(creates.hits) == 10
            deletes = proxy.when(operation="delete", times=None).cut_before()
            with pytest.raises(ConnectionLostError, match=f"delete {path}: "):
                await client.delete_tree(path)
            assert len(deletes.hits) == 10

    asyncio.run(main())


@pytest.mark.parametrize(
    ("operation", "call"),
    [
        ("set", lambda client: client.set("/n", OURS, version=0, mark=MARK)),
        ("create2", lambda client: client.create("/n/n-", protected=True)),
        ("create2", lambda client: client.create("/other", exist_ok=True)),
        ("delete", lambda client: client.delete_tree("/n")),
    ],
)
def test_in_an_exact_session_such_a_write_is_known_to_have_no_effect(
    operation: str, call: Callable[[Client], Awaitable[object]]
) -> None:
    async def main() -> None:
        async with (
            EmbeddedServer() as server,
            FaultProxy(server.address) as proxy,
            client_through(proxy, exact=True) as client,
        ):
            await client.create("/n")
            fault = proxy.when(operation=operation, times=None).cut_before()
            with pytest.raises(NotAppliedError, match="it had no effect"):
                await call(client)
            assert len(fault.hits) == 10

    run_virtually(main())


@pytest.mark.parametrize(
    ("data", "version", "mark", "named"),
    [
        (OURS, -1, MARK, "mark: it needs a version"),
        (b"other", 0, MARK, "mark: it is not in the data"),
        (None, 0, MARK, "mark: it is not in the data"),
        (OURS, 0, b"", "mark: expected some bytes"),
        (OURS, 0, "data", "mark: expected some bytes"),
    ],
)
def test_a_mark_that_can_tell_nothing_is_refused(
    server: Service, data: bytes | None, version: int, mark: Any, named: str
) -> None:
    async def main() -> None:
        async with client_of(server) as client:
            with pytest.raises(InvalidArgumentError, match=named):
                client.set("/", data, version=version, mark=mark)

    asyncio.run(main())


def test_parents_are_made_wherever_it_is_cut(server: Service, path: str) -> None:
    async def scenario(client: Client, direct: Client) -> None:
        await direct.delete_tree(path)
        leaf = f"{path}/a/b/leaf"
        with contextlib.suppress(ConnectionLostError):
            # Only the node itself may be in doubt, not what is above it.
            await client.create(leaf, make_parents=True)
            await direct.sync(path)
            assert await direct.exists(leaf) is not None
            return
        await client.create(f"{path}/a/b/other", make_parents=True)

    cut_everywhere(server, scenario)


def test_a_protected_create_happens_once_wherever_it_is_cut(server: Service, path: str) -> None:
    async def scenario(client: Client, direct: Client) -> None:
        await direct.delete_tree(path)
        created = await client.create_with_stat(
            f"{path}/n-", b"x", sequential=True, protected=True, make_parents=True
        )
        await direct.sync(path)
        assert [created.path] == [f"{path}/{name}" for name in await direct.children(path)]
        assert await direct.exists(created.path) == created.stat

    cut_everywhere(server, scenario)


def test_a_tree_is_deleted_wherever_it_is_cut(server: Service, path: str) -> None:
    async def scenario(client: Client, direct: Client) -> None:
        await direct.delete_tree(path)
        for below in ("", "/a", "/a/b", "/c"):
            await direct.create(f"{path}{below}")
        await client.sync(path)
        # Of a node whose delete was lost nobody knows who deleted it.
        assert await client.delete_tree(path, batch=2) in (2, 3, 4)
        await direct.sync(path)
        assert await direct.exists(path) is None

    cut_everywhere(server, scenario)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    ("composite", "nth"),
    [
        *[(lambda client: client.create("/a/b/c", make_parents=True), nth) for nth in (1, 2, 3, 4)],
        (lambda client: client.create("/b", protected=True), 1),
        *[(lambda client: client.delete_tree("/tree"), nth) for nth in (1, 2, 3)],
        (lambda client: client.delete_tree("/"), 1),
        (lambda client: client.set("/tree", OURS, version=0, mark=MARK), 1),
    ],
)
def test_what_takes_several_requests_fails_when_the_session_may_be_over(
    composite: Callable[[Client], Awaitable[object]], nth: int, exact: bool
) -> None:
    async def main() -> None:
        async with (
            EmbeddedServer() as server,
            connect(server.hosts) as direct,
            FaultProxy(server.address) as proxy,
            client_through(proxy, exact=exact) as client,
        ):
            await direct.create("/tree/a/b", make_parents=True)
            await client.sync()
            fault = proxy.when(nth=nth).cut_after(stay_away=True)
            with pytest.raises(ConnectionLostError):
                await composite(client)
            assert fault.hits
            # What is asked now fails at once, and must not be asked for ever.
            with pytest.raises(ConnectionLostError):
                await composite(client)

    run_virtually(main())

"""Whatever is cancelled, and whenever: the client is of use afterwards, and nothing is left over.

Each operation is begun again and again and cancelled after 1, 2, 3, … passes of the event loop,
until it is done before that. Once on a good connection, and once on one that is lost on the way, so
that every await of a recovery is met, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from random import Random
from typing import Any, Final, cast

import pytest

from paddock.api import connect
from paddock.client.client import Client
from paddock.client.states import SessionState
from paddock.errors import NodeExistsError
from paddock.testing import EmbeddedServer, FaultProxy, VirtualClockLoop, run_virtually
from tests.fault.stage.cutting import in_real_time
from tests.fault.stage.playing import TIMEOUT_S, play

Work = Callable[[Client], Awaitable[Any]]

# No operation takes more passes of the loop than this; one that never ends would.
_PASSES_MAX: Final = 500


async def commit_by_a_scope(client: Client) -> None:
    async with client.transaction() as transaction:
        transaction.create("/box/n-", sequential=True).set("/leaf", b"")


def take(count: int, *, recursive: bool) -> Work:
    async def work(client: Client) -> None:
        stream = cast(AsyncGenerator[Any, None], client.watch("/tree", recursive=recursive))
        try:
            for _ in range(count):
                await anext(stream)
        finally:
            await stream.aclose()

    return work


OPERATIONS: dict[str, Work] = {
    "get": lambda client: client.get("/leaf"),
    "set": lambda client: client.set("/leaf", b""),
    "create": lambda client: client.create("/box/n-", sequential=True),
    "create ephemeral": lambda client: client.create("/box/n-", sequential=True, ephemeral=True),
    "create protected": lambda client: client.create(
        "/box/n-", sequential=True, ephemeral=True, protected=True
    ),
    "create with parents": lambda client: client.create(
        "/box/a/b/c-", sequential=True, make_parents=True
    ),
    "create protected with parents": lambda client: client.create_with_stat(
        "/box/a/b/c-", sequential=True, make_parents=True, protected=True
    ),
    "set with a mark": lambda client: client.set("/marked", b"mark", version=0, mark=b"mark"),
    "delete_tree": lambda client: client.delete_tree("/tree", batch=2),
    "transaction": lambda client: client.transaction().create("/box/n-", sequential=True).commit(),
    "transaction by a scope": commit_by_a_scope,
    "a stream": take(1, recursive=False),
    "a stream of a tree": take(4, recursive=True),
    "add_auth": lambda client: client.add_auth("digest", b"a:b"),
    "sync": lambda client: client.sync(),
}


async def prepare(bystander: Client) -> None:
    await bystander.delete_tree("/tree")
    await bystander.delete_tree("/box")
    await bystander.delete_tree("/marked")
    for path in ("/tree", "/tree/1", "/tree/1/a", "/tree/1/b", "/tree/2", "/box", "/marked"):
        await bystander.create(path)
    try:
        await bystander.create("/leaf")
    except NodeExistsError:
        pass


async def cancel_after(passes: int, work: Awaitable[Any]) -> bool:
    """Cancel something after so many passes of the loop; tell whether it was over by then."""

    async def wait() -> None:
        await work

    loop = cast(VirtualClockLoop, asyncio.get_running_loop())
    task = asyncio.create_task(wait())
    for _ in range(passes):
        # Time goes on, for those who pause before they try again.
        loop.stall(0.005)
        await asyncio.sleep(0)
    was_over = task.done()
    task.cancel()
    await asyncio.wait((task,))
    if was_over and not task.cancelled():
        # What it raises it raises without being cancelled, too: nothing to be seen here.
        task.exception()
    else:
        assert task.cancelled() or task.exception() is None
    return was_over


@pytest.mark.parametrize("is_cut", [False, True], ids=["connected", "while a reply is lost"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_cancelled_operation_leaves_a_client_that_can_be_used(name: str, is_cut: bool) -> None:
    async def story(client: Client, proxy: FaultProxy, bystander: Client) -> int:
        for passes in range(1, _PASSES_MAX):
            await prepare(bystander)
            if is_cut:
                proxy.when().cut_after()
            was_over = await cancel_after(passes, OPERATIONS[name](client))
            if is_cut and not was_over:
                proxy.heal()
            # It can be used, and answers come to whom they belong.
            assert (await client.get("/leaf")).data == b""
            assert await client.exists("/none") is None
            await client.create("/box/after")
            await client.sync()
            assert client._sender._tasks == set()
            session = client._session
            assert not session.in_flight.unsent
            assert not session.in_flight.sent
            assert session.watches.everybody() == []
            if was_over:
                return passes
        raise AssertionError("it never ended")

    assert play(story) > 1


def test_connecting_can_be_cancelled_at_any_time() -> None:
    async def main() -> int:
        async with EmbeddedServer() as server:
            for passes in range(1, _PASSES_MAX):
                client = connect(server.hosts, session_timeout=TIMEOUT_S, random=Random(2))
                was_over = await cancel_after(passes, client.start())
                if was_over:
                    await client.close()
                assert client.state is SessionState.CLOSED
                # Nothing of it goes on.
                assert client._session._task is None or client._session._task.done()
                if was_over:
                    return passes
        raise AssertionError("it never ended")

    with in_real_time(120):
        assert run_virtually(main()) > 2


def test_closing_can_be_cancelled_at_any_time() -> None:
    async def main() -> int:
        async with EmbeddedServer() as server:
            for passes in range(1, _PASSES_MAX):
                client = connect(server.hosts, session_timeout=TIMEOUT_S, random=Random(2))
                await client.start()
                waiting = client.create("/a/b/c", make_parents=True)
                reading = client.get("/")
                was_over = await cancel_after(passes, client.close())
                # It closes completely, whether or not it is awaited.
                assert client.state is SessionState.CLOSED
                await asyncio.gather(waiting, reading, return_exceptions=True)
                await client.close()
                assert client._sender._tasks == set()
                assert client._session._task is None or client._session._task.done()
                if was_over:
                    return passes
        raise AssertionError("it never ended")

    with in_real_time(120):
        assert run_virtually(main()) > 2


def test_a_cancelled_protected_create_leaves_one_node_at_most_and_it_ends_with_the_session() -> (
    None
):
    """What the API promises: nobody looks for the node of a create that was cancelled."""

    async def main() -> int:
        most = 0
        async with (
            EmbeddedServer() as server,
            connect(server.hosts, random=Random(1)) as bystander,
        ):
            await bystander.create("/box")
            for passes in range(_PASSES_MAX):
                async with connect(server.hosts, random=Random(2)) as client:
                    work = client.create("/box/n-", ephemeral=True, sequential=True, protected=True)
                    for _ in range(passes):
                        await asyncio.sleep(0)
                    was_over = work.done()
                    work.cancel()
                    await client.sync()
                    names = await bystander.children("/box")
                    assert len(names) <= 1
                    most = max(most, len(names))
                    assert [f"/box/{name}" for name in names] == await client.ephemerals()
                assert await bystander.children("/box") == []
                if was_over:
                    return most
        raise AssertionError("it never ended")

    with in_real_time(120):
        assert run_virtually(main()) == 1

"""Servers that say nothing, or are not there: nothing hangs, nothing spins, everybody is told.

What would spin instead of waiting meets the limit in real time that `play` sets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from paddock.client.client import Client
from paddock.client.states import Event, SessionState
from paddock.errors import ConnectionLostError, NodeExistsError, SessionExpiredError
from paddock.testing import Direction, FaultProxy
from tests.fault.stage.playing import TIMEOUT_S, play


def every_call(client: Client) -> dict[str, Awaitable[Any]]:
    """Ask for everything that there is."""
    ignore: Callable[[Event], None] = lambda event: None  # noqa: E731
    return {
        "exists": client.exists("/n", watch=ignore),
        "get": client.get("/n"),
        "children": client.children("/n"),
        "get_acl": client.get_acl("/n"),
        "sync": client.sync(),
        "who_am_i": client.who_am_i(),
        "ephemerals": client.ephemerals(),
        "create": client.create("/new"),
        "create with parents": client.create("/a/b/c", make_parents=True),
        "create protected": client.create("/p", protected=True),
        "set": client.set("/n", b""),
        "delete": client.delete("/n"),
        "delete_tree": client.delete_tree("/n"),
        "transaction": client.transaction().set("/n", b"").commit(),
        "add_auth": client.add_auth("digest", b"a:b"),
        "add_watch": client.add_watch("/n", ignore, recursive=True),
        "remove_watches": client.remove_watches("/n"),
    }


async def outcomes(calls: dict[str, Awaitable[Any]]) -> dict[str, type[BaseException] | None]:
    """Wait for all of them; give how each failed, or None."""
    answers = await asyncio.gather(*calls.values(), return_exceptions=True)
    return {
        name: type(answer) if isinstance(answer, BaseException) else None
        for name, answer in zip(calls, answers, strict=True)
    }


def test_every_call_ends_when_nobody_answers() -> None:
    async def story(client: Client, proxy: FaultProxy, bystander: Client) -> None:
        proxy.blackhole()
        told = await outcomes(every_call(client))
        assert set(told.values()) == {ConnectionLostError}, told
        # By now the session may be over: each call fails at once, and nothing spins.
        again = await outcomes(every_call(client))
        assert set(again.values()) == {ConnectionLostError}, again

    play(story)


def test_every_call_ends_when_nobody_is_there() -> None:
    async def story(client: Client, proxy: FaultProxy, bystander: Client) -> None:
        proxy.refuse()
        told = await outcomes(every_call(client))
        assert set(told.values()) == {ConnectionLostError}, told
        # The service has ended the session by then, and says so.
        await asyncio.sleep(TIMEOUT_S)
        proxy.heal()
        with pytest.raises(SessionExpiredError):
            await client.wait_connected()
        told = await outcomes(every_call(client))
        assert set(told.values()) == {SessionExpiredError}, told

    play(story)


def test_every_pending_call_gets_an_error_when_the_client_is_closed() -> None:
    async def story(client: Client, proxy: FaultProxy, bystander: Client) -> None:
        loop = asyncio.get_running_loop()
        proxy.blackhole()
        waiting = asyncio.ensure_future(outcomes(every_call(client)))
        streams = [
            asyncio.ensure_future(take_all(client, recursive)) for recursive in (True, False)
        ]
        await asyncio.sleep(0.1)
        began = loop.time()
        await client.close()
        # It waits for an answer, but not for long: not until the server is left for its silence.
        assert loop.time() - began < TIMEOUT_S * 2 / 3 - 0.1
        told = await waiting
        # What had to ask once more finds the client closed.
        assert set(told.values()) == {ConnectionLostError, SessionExpiredError}, told
        assert told["get"] is told["set"] is ConnectionLostError, told
        for stream in streams:
            with pytest.raises(SessionExpiredError, match="the client is closed"):
                await stream
        assert client.state is SessionState.CLOSED

    play(story)


def test_what_takes_several_requests_has_ended_when_the_client_is_closed() -> None:
    async def story(client: Client, proxy: FaultProxy, bystander: Client) -> None:
        before = asyncio.all_tasks()
        proxy.blackhole()
        under_way: list[asyncio.Future[Any]] = [
            client.delete_tree("/app"),
            client.create("/app/a/b", make_parents=True),
            client.create("/app-", protected=True, sequential=True),
            client.set("/app", b"marked", version=0, mark=b"marked"),
        ]
        await client.close()
        assert asyncio.all_tasks() <= before
        for one in under_way:
            with pytest.raises((ConnectionLostError, SessionExpiredError)):
                one.result()

    play(story)


async def disconnection(client: Client) -> None:
    """Wait until the client knows that its connection is lost."""
    async for state in client._session.states.stream():
        if state is SessionState.DISCONNECTED:
            return


async def take_all(client: Client, recursive: bool) -> None:
    async for _ in client.watch("/", recursive=recursive):
        pass


def test_closing_waits_for_what_was_asked_before() -> None:
    async def story(client: Client, proxy: FaultProxy, bystander: Client) -> None:
        await client.create("/box")
        calls = [client.create(f"/box/{number}") for number in range(5000)]
        trees = client.create("/a/b/c", make_parents=True)
        reading = client.count_descendants("/box")
        await client.close()
        assert await asyncio.gather(*calls) == [f"/box/{number}" for number in range(5000)]
        assert await reading == 5000
        assert (await bystander.children_with_stat("/box")).stat.num_children == 5000
        with pytest.raises((ConnectionLostError, SessionExpiredError), match="closed"):
            await trees

    play(story)


def test_a_server_that_goes_silent_is_left_before_the_session_ends() -> None:
    async def story(client: Client, proxy: FaultProxy, bystander: Client) -> None:
        await client.create("/mine", ephemeral=True)
        for _ in range(3):
            fault = proxy.when(operation="get").blackhole()
            assert (await client.get("/mine")).stat.ephemeral_owner == client.session_id
            assert fault.hits
        assert await bystander.exists("/mine") is not None

    play(story)


def test_an_idle_client_keeps_its_session() -> None:
    async def story(client: Client, proxy: FaultProxy, bystander: Client) -> None:
        await client.create("/mine", ephemeral=True)
        session = client.session_id
        await asyncio.sleep(20 * TIMEOUT_S)
        # Answers stay away, requests arrive: the server does not see that anything is wrong.
        proxy.when(operation="ping", nth=2).blackhole(Direction.TO_CLIENT)
        await asyncio.sleep(20 * TIMEOUT_S)
        assert client.session_id == session
        assert (await client.get("/mine")).stat.ephemeral_owner == session

    play(story)


def test_a_reply_that_comes_too_late_leaves_the_client_usable() -> None:
    async def story(client: Client, proxy: FaultProxy, bystander: Client) -> None:
        await client.create("/n")
        proxy.when(operation="set").delay_reply(3.0)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await client.set("/n", b"new")
        # It was carried out, and what is asked behind it gets its own answer.
        assert (await client.get("/n")).data == b"new"
        proxy.when(operation="create").delay(3.0)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await client.create("/late")
        assert await client.exists("/late") is not None
        proxy.when(operation="create2").delay_reply(3.0)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await client.create("/late/child/grandchild", make_parents=True)
        await client.sync()
        await client.create("/late/child/grandchild", make_parents=True)

    play(story)


def test_a_call_that_was_given_up_before_it_was_sent_is_never_sent() -> None:
    async def story(client: Client, proxy: FaultProxy, bystander: Client) -> None:
        proxy.refuse()
        await disconnection(client)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await client.create("/never")
        proxy.heal()
        await client.sync()
        assert await bystander.exists("/never") is None
        assert not [request for request in proxy.requests if request.name == "create"]

    play(story)


def test_what_was_not_sent_waits_for_the_next_connection() -> None:
    async def story(client: Client, proxy: FaultProxy, bystander: Client) -> None:
        await client.create("/n")
        proxy.refuse(1.0)
        await disconnection(client)
        await asyncio.gather(*(client.set("/n", b"") for _ in range(10)))
        assert (await bystander.get("/n")).stat.version == 10
        # Also while the connection is on its way out, and what was asked just before.
        transport = client._session.dispatcher.transport
        assert transport is not None
        # It goes out at once, so that what follows it does not.
        reading = client.get("/n")
        before = client.set("/n", b"")
        transport.abort()
        await client.set("/n", b"")
        await before
        await reading
        assert (await bystander.get("/n")).stat.version == 12

    play(story)


def test_a_tree_is_counted_right_while_somebody_else_plants_in_it() -> None:
    async def story(client: Client, proxy: FaultProxy, bystander: Client) -> None:
        for path in ("/tree", "/tree/1", "/tree/2", "/tree/3"):
            await client.create(path)

        async def plant() -> None:
            await proxy.when(operation="delete", path="/tree/2").delay(1.0).happened()
            await bystander.create("/tree/2/late")

        planting = asyncio.ensure_future(plant())
        await asyncio.sleep(0)
        assert await client.delete_tree("/tree") == 5
        await planting
        assert await bystander.exists("/tree") is None

    play(story)


def test_parents_that_somebody_else_makes_are_fine() -> None:
    async def story(client: Client, proxy: FaultProxy, bystander: Client) -> None:
        calls = [client.create(f"/a/b/c/{number}", make_parents=True) for number in range(10)]
        others = [bystander.create(f"/a/b/c/x{number}", make_parents=True) for number in range(10)]
        await asyncio.gather(*calls, *others)
        assert len(await client.children("/a/b/c")) == 20
        with pytest.raises(NodeExistsError):
            await client.create("/a/b/c/0", make_parents=True)

    play(story)

"""What recipes need of a client: tasks that outlive their caller, and marks to find a node by."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Callable, Coroutine
from typing import Any

from paddock import CREATOR_ALL_ACL
from paddock.api import connect
from paddock.client.client import Client
from paddock.errors import SessionExpiredError
from paddock.testing import EmbeddedServer, run_virtually


def play(story: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, connect(server.hosts) as client:
            await story(client)

    run_virtually(main())


def test_a_task_outlives_the_caller_that_is_cancelled() -> None:
    async def story(client: Client) -> None:
        async def errand() -> None:
            await client.create("/made")

        async def caller() -> None:
            await asyncio.shield(client.start_task(errand()))

        calling = asyncio.ensure_future(caller())
        await asyncio.sleep(0)
        calling.cancel()
        await asyncio.wait([calling])
        assert calling.cancelled()
        await asyncio.sleep(1)
        assert await client.exists("/made") is not None

    play(story)


def test_closing_ends_every_task_that_the_client_owns() -> None:
    async def story(client: Client) -> None:
        ends = []

        async def waits_for_ever() -> None:
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                try:
                    await client.get("/")
                except SessionExpiredError:
                    ends.append("after the session")

        task = client.start_task(waits_for_ever())
        await asyncio.sleep(0)
        await client.close()
        assert task.cancelled()
        assert ends == ["after the session"]

    play(story)


def test_a_task_that_ends_since_the_client_was_closed_is_no_news() -> None:
    async def story(client: Client) -> None:
        told = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(context["exception"]))

        # Whether a task hears of the end first or is cancelled first is left to the event loop.
        async def fails_with(error: Exception | None) -> None:
            with contextlib.suppress(asyncio.CancelledError):
                async for state in client.states():
                    if state.is_final:
                        break
            raise error or SessionExpiredError("get", "/")

        wrong = ValueError("wrong")
        client.start_task(fails_with(None))
        client.start_task(fails_with(wrong))
        await asyncio.sleep(0)
        await client.close()
        gc.collect()
        assert told == [wrong]

    play(story)


def test_a_task_may_close_the_client_that_owns_it() -> None:
    async def story(client: Client) -> None:
        await client.start_task(client.close())
        assert client.state.is_final

    play(story)


def test_a_protected_node_carries_the_mark_that_was_given() -> None:
    async def story(client: Client) -> None:
        mark = client.new_mark()
        assert mark != client.new_mark()
        path = await client.create("/node-", sequential=True, protected=mark)
        assert path == f"/_c_{mark}-node-0000000000"

    play(story)


def test_another_client_is_like_the_first_one_but_for_its_session() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server:
            told: list[object] = []
            hosts = f"{server.hosts}/app"
            async with connect(hosts, session_timeout=7.0, default_watcher=told.append) as client:
                await client.add_auth("digest", b"alice:secret")
                await client.create("/private", acl=CREATOR_ALL_ACL, make_parents=True)
                told.clear()
                async with client.another() as other:
                    assert other.session_id != client.session_id
                    assert other.session_timeout == client.session_timeout
                    assert (await other.get("/private")).data == b""
                    # And so is the one that is made of that one.
                    async with other.another() as third:
                        assert (await third.get("/private")).data == b""
                assert told == []

    run_virtually(main())

"""What recipes need of a client: tasks that outlive their caller, and marks to find a node by."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

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

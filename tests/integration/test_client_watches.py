"""Watches on the client's side: who is told of what, how often, and by whom."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from paddock.client.client import Client
from paddock.client.states import Event, EventType, SessionState
from paddock.errors import NoNodeError
from tests.integration.test_client import DEADLINE_S, client_of, path, run, server
from tests.support.apis import api, asyncio_only
from tests.support.server import Service

__all__ = ["api", "path", "server"]

CREATED, CHANGED, DELETED, CHILDREN = (
    EventType.CREATED,
    EventType.CHANGED,
    EventType.DELETED,
    EventType.CHILDREN_CHANGED,
)
Told = list[tuple[EventType, str | None]]
Read = Callable[[Client, str, Callable[[Event], None]], Awaitable[Any]]

READS: dict[str, Read] = {
    "exists": lambda client, path, told: client.exists(path, watch=told),
    "get": lambda client, path, told: client.get(path, watch=told),
    "children": lambda client, path, told: client.children(path, watch=told),
    "children_with_stat": lambda client, path, told: client.children_with_stat(path, watch=told),
}


class Heard:
    """A watcher that remembers events, without what concerns the session."""

    def __init__(self) -> None:
        self.told: Told = []
        self._came = asyncio.Event()

    def __call__(self, event: Event) -> None:
        if event.type is not EventType.NONE:
            self.told.append((event.type, event.path))
            self._came.set()

    async def is_told(self, *expected: tuple[EventType, str]) -> None:
        """Wait for so many events, and see that they are these, from the first one on."""
        while len(self.told) < len(expected):
            self._came.clear()
            await self._came.wait()
        assert self.told == [*expected]


# What a watch that a read has set is told of, by what happens to its node.
MATRIX: dict[str, dict[str, EventType | None]] = {
    "exists": {"create": CREATED, "set": CHANGED, "child": None, "delete": DELETED},
    "get": {"set": CHANGED, "child": None, "delete": DELETED},
    "children": {"set": None, "child": CHILDREN, "delete": DELETED},
    "children_with_stat": {"set": None, "child": CHILDREN, "delete": DELETED},
}


@pytest.mark.parametrize("read", READS)
def test_each_read_brings_the_events_that_it_can_bring(
    server: Service, path: str, read: str
) -> None:
    async def scenario(client: Client) -> None:
        for action, expected in MATRIX[read].items():
            node, heard = f"{path}-{action}", Heard()
            if action != "create":
                await client.create(node)
            await READS[read](client, node, heard)
            if action == "create":
                await client.create(node)
            elif action == "set":
                await client.set(node, b"1")
            elif action == "child":
                await client.create(f"{node}/child", ephemeral=True)
            else:
                await client.delete(node)
            await client.sync()
            await heard.is_told(*([] if expected is None else [(expected, node)]))

    run(server, scenario)


def test_a_read_that_was_refused_sets_no_watch(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        heard = Heard()
        for read in ("get", "children", "children_with_stat"):
            with pytest.raises(NoNodeError):
                await READS[read](client, path, heard)
        # The server tells us on his account, and of him alone.
        witness = Heard()
        await client.exists(path, watch=witness)
        await client.create(path)
        await witness.is_told((CREATED, path))
        await client.create(f"{path}/child")
        await client.set(path, b"1")
        await client.sync()
        await heard.is_told()

    run(server, scenario)


def test_a_delete_tells_everybody_once_who_watches_the_node_or_its_parent(
    server: Service, path: str
) -> None:
    async def scenario(client: Client) -> None:
        node = f"{path}/node"
        await client.create(path)
        await client.create(node)
        data, child, both, above = Heard(), Heard(), Heard(), Heard()
        await client.get(node, watch=data)
        await client.children(node, watch=child)
        await client.get(node, watch=both)
        await client.children(node, watch=both)
        await client.children(path, watch=above)
        await client.delete(node)
        await client.sync()
        for one in (data, child, both):
            await one.is_told((DELETED, node))
        await above.is_told((CHILDREN, path))
        # The parent of a top-level node is the root.
        top = Heard()
        await client.children("/", watch=top)
        await client.delete(path)
        await client.sync()
        await top.is_told((CHILDREN, "/"))

    run(server, scenario)


def test_two_watchers_of_one_node_are_both_told_and_each_once(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        one, other, again = Heard(), Heard(), Heard()
        await client.create(path)
        await client.get(path, watch=one)
        await client.get(path, watch=one)
        await client.exists(path, watch=other)
        await client.set(path, b"1")
        await client.sync()
        await one.is_told((CHANGED, path))
        await other.is_told((CHANGED, path))
        # Each was a one-shot watch; a new one is for the caller that set it.
        await client.get(path, watch=again)
        await client.set(path, b"2")
        await client.sync()
        await again.is_told((CHANGED, path))
        assert (len(one.told), len(other.told)) == (1, 1)

    run(server, scenario)


def test_the_default_watcher_is_told_of_what_was_set_for_it_alone(
    server: Service, path: str
) -> None:
    async def main() -> None:
        default, own = Heard(), Heard()
        async with (
            asyncio.timeout(DEADLINE_S),
            client_of(server, default_watcher=default) as client,
        ):
            await client.create(path)
            await client.get(path, watch=own)
            await client.set(path, b"1")
            await client.sync()
            await own.is_told((CHANGED, path))
            await default.is_told()
            await client.get(path, watch=True)
            await client.get(path, watch=own)
            await client.set(path, b"2")
            await client.sync()
            await own.is_told((CHANGED, path), (CHANGED, path))
            await default.is_told((CHANGED, path))
            # What nobody wants to hear of any more is not his, either.
            await client.get(path, watch=own)
            client.forget_watcher(own)
            await client.set(path, b"3")
            await client.sync()
            assert (len(default.told), len(own.told)) == (1, 2)

    asyncio.run(main())


def test_a_watcher_may_ask_the_client_again(server: Service, path: str) -> None:
    """Also for the same watch, at once: then no change is missed."""

    async def scenario(client: Client) -> None:
        seen: list[asyncio.Future[Any]] = []
        is_over = asyncio.Event()

        def rearm(event: Event) -> None:
            if event.type is EventType.NONE:
                return
            if event.type is DELETED:
                is_over.set()
            else:
                seen.append(client.get(path, watch=rearm))

        await client.create(path, b"0")
        await client.get(path, watch=rearm)
        for number in range(1, 20):
            await client.set(path, b"%d" % number)
        while not seen or (await seen[-1]).data != b"19":
            await client.sync()
        await client.delete(path)
        await is_over.wait()

    run(server, scenario)


@asyncio_only
def test_a_watcher_that_fails_does_no_harm_to_the_others(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        complaints: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: complaints.append(context)
        )

        def fail(event: Event) -> None:
            raise LookupError("a watcher's own fault")

        before, after = Heard(), Heard()
        await client.create(path)
        await client.get(path, watch=before)
        await client.get(path, watch=fail)
        await client.get(path, watch=after)
        await client.set(path, b"1")
        assert (await client.get(path)).data == b"1"
        await before.is_told((CHANGED, path))
        await after.is_told((CHANGED, path))
        assert [type(one["exception"]) for one in complaints] == [LookupError]
        assert client.state is SessionState.CONNECTED
        complaints.clear()

    run(server, scenario)

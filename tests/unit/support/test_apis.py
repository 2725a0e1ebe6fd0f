"""The blocking API as tests see it from asyncio: everything comes in the form that asyncio has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any, TypeAlias

import pytest

from paddock.sync.bridge import Bridge
from paddock.sync.portal import _Call
from paddock.sync.scopes import Scope
from tests.support import apis
from tests.support.apis import Threaded
from tests.unit.tools.samples import recipes
from tests.unit.tools.samples.recipes import Form, Ticket
from tests.unit.tools.test_twin_recipes import blocking, folder

__all__ = ["blocking", "folder"]

DEADLINE_S = 30.0

Story: TypeAlias = Callable[[Any], Coroutine[Any, Any, None]]


@pytest.fixture(autouse=True)
def patched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have calls that can be given up, as the fixture for both APIs has them."""
    monkeypatch.setattr(_Call, "wait", apis._wait)


@pytest.fixture
def run(blocking: ModuleType) -> Callable[[Story], None]:
    """Return a function that plays a story with a desk on the blocking API."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Any]:
        bridge = await asyncio.to_thread(Bridge)
        inner = await asyncio.to_thread(bridge.own, recipes.Office)
        async with Threaded(blocking.Office(bridge, inner)) as office:
            yield Threaded(await asyncio.to_thread(blocking.Desk, office.twin, "ada"))

    def run(story: Story) -> None:
        async def main() -> None:
            async with asyncio.timeout(DEADLINE_S), opened() as desk:
                await story(desk)

        asyncio.run(main())

    return run


def test_results_values_and_items_with_a_twin_are_seen_through(
    run: Callable[[Story], None],
) -> None:
    async def story(desk: Any) -> None:
        first = await desk.give()
        assert isinstance(first, Threaded)
        assert (first.number, first.next.number) == (1, 2)
        assert await desk.try_give(0) is None
        assert await desk.all() == [first]
        assert (await desk.by_name())["one"] == first
        assert desk.some() == (first, first.next)
        assert [one.number async for one in desk.tickets()] == [1, 2, 3]
        assert [one.number async for one in desk] == [1, 2, 3]
        async with desk as second, desk.take() as third:
            assert (second.number, third.number) == (2, 3)
        assert await desk.total(first, second, others=[third]) == 6
        assert len(desk) == 3
        assert 3 in desk

    run(story)


def test_callbacks_run_on_the_loop_of_the_test(run: Callable[[Story], None]) -> None:
    async def story(desk: Any) -> None:
        there = asyncio.Barrier(2)

        async def handle(form: Form) -> bytes:
            # Both at once, on this loop.
            await there.wait()
            return form.text.encode()

        async def number_of(ticket: Ticket) -> int:
            assert isinstance(ticket, Threaded)
            return ticket.number

        assert await desk.work(handle, "a", "b") == [b"a", b"b"]
        assert await desk.work_on(await desk.give(), number_of) == 1
        assert await desk.update(lambda data: data + b", new") == b"old, new"

    run(story)


class Never:
    """An asyncio object whose call and whose scope wait for ever, and tell how they ended."""

    def __init__(self) -> None:
        self.log: list[str] = []

    async def wait(self) -> None:
        self.log.append("begun")
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.log.append("ended")

    async def __aenter__(self) -> None:
        await self.wait()

    async def __aexit__(self, *raised: object) -> None:
        pass


@pytest.mark.parametrize("is_scope", [True, False])
def test_a_cancelled_task_gives_its_call_up_and_others_go_on(
    run: Callable[[Story], None], is_scope: bool
) -> None:
    async def story(desk: Any) -> None:
        bridge, never = desk.twin._bridge, Never()
        waiting = apis._Work(
            Scope(bridge.portal, never).__enter__ if is_scope else lambda: bridge.call(never.wait),
            bridge,
        )
        task = asyncio.create_task(waiting.result())
        while not never.log:
            # Another task, and so another thread.
            assert await desk.all() == []
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert never.log == ["begun", "ended"]

    run(story)

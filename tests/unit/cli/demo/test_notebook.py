"""The notebook of the demo: what many write is read in one order."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from paddock.cli.demo.notebook import DEMO, Happening, Notebook, write


@asynccontextmanager
async def reading() -> AsyncIterator[Notebook]:
    notebook = Notebook()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(notebook.read())
        yield notebook
        task.cancel()


def run(test: Coroutine[Any, Any, None]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60):
            await test

    asyncio.run(main())


def test_lines_are_read_in_the_order_in_which_they_were_written() -> None:
    async def test() -> None:
        async with reading() as notebook:
            for number in range(200):
                write(notebook.file, f"worker-{number % 3}", "works", {"step": number})
            last = await notebook.write("looks", at="everything")
            assert [one.facts.get("step") for one in notebook.page[:-1]] == list(range(200))
            numbers = [one.number for one in notebook.page]
            assert numbers == sorted(set(numbers))
            assert notebook.page[-1] is last
            assert (last.who, str(last)) == (DEMO, "looks: at everything")

    run(test())


def test_whoever_waits_is_woken_by_the_line_it_waits_for() -> None:
    async def test() -> None:
        async with reading() as notebook:
            write(notebook.file, "alice", "leads", {"token": 1})
            waiting = asyncio.ensure_future(notebook.wait(lambda one: one.who == "bob"))
            await notebook.write("looks")
            assert not waiting.done()
            write(notebook.file, "bob", "leads", {"token": 2})
            assert (await waiting).facts == {"token": 2}

    run(test())


def test_a_new_page_is_empty_and_numbers_go_on() -> None:
    async def test() -> None:
        async with reading() as notebook:
            before = await notebook.write("looks")
            notebook.page.clear()
            assert notebook.page == []
            after = await notebook.write("looks again")
            assert notebook.page == [after]
            assert after.number > before.number

    run(test())


def test_a_happening_is_said_with_its_facts() -> None:
    assert str(Happening(1, 0.0, "alice", "lets go", {})) == "lets go"
    seen = Happening(1, 0.0, "web", "sees", {"instances": ["a", "b"], "of": "search"})
    assert str(seen) == "sees: instances a b, of search"
    assert str(Happening(1, 0.0, "web", "sees", {"instances": []})) == "sees: instances none"

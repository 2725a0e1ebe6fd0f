"""The reference is the one of the code, has everything public, and its examples run."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import re
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

import paddock
import paddock.recipes
import paddock.sync.recipes
from paddock import errors, otel, sync, testing
from paddock.client.client import Client
from paddock.errors import SessionExpiredError
from paddock.recipes import (
    Cache,
    DoubleBarrier,
    Election,
    Lock,
    LogRoom,
    Master,
    Membership,
    Partitioner,
    Queue,
    ServiceInstance,
    ServiceRegistry,
    TaskClient,
    Worker,
)
from paddock.sync.bridge import Twin
from paddock.testing import EmbeddedServer, FaultyServer
from tests.support.apis import Threaded, connect, recipe, using
from tests.support.documents import ROOT, Page
from tests.support.examples import run_example
from tools.reference import FOLDER, PAGES, examples, pages

# The nodes that examples take for granted, with their data; and those of recipes besides.
NODES = {"/config": b"v1"}
NODES_OF_RECIPES = {"/report": b"", "/result": b"", "/app": b"", "/app/color": b"blue"}

# At most three words.
NAME = r"[A-Z][\w-]*( [\w-]+){0,2}"

# Errors have a page of their own.
ON_ANOTHER_PAGE = {"errors", "sync", "__version__"}
# How records go over the wire: public for the rest of Paddock.
NOT_FOR_USERS = {"Stat.read", "Stat.write", "ACL.write", "Identity.write"}


@pytest.mark.source
def test_the_pages_are_those_of_the_code() -> None:
    # `python tools/reference.py` writes them.
    written = {path: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    assert written == pages()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_public_name_is_on_a_page_once(page: Any) -> None:
    module = importlib.import_module(page.module)
    public = [
        name for name in module.__all__ if name not in ON_ANOTHER_PAGE and not hasattr(errors, name)
    ]
    assert sorted(page.names()) == sorted(public)


def test_a_recipe_begins_with_its_name() -> None:
    """`Name: what it is` is how its module begins, and the name is the heading of its section."""
    [page] = [page for page in PAGES if page.module == "paddock.recipes"]
    assert [one.heading for one in page.sections if not re.fullmatch(NAME, one.heading)] == []


@pytest.mark.source
def test_everything_public_says_what_it_is() -> None:
    silent = set()
    public = [
        (name, getattr(module, name))
        for module in (paddock, paddock.recipes)
        for page in PAGES
        if page.module == module.__name__
        for name in page.names()
    ]
    for name, thing in public:
        if inspect.isclass(thing) or inspect.isfunction(thing):
            if not thing.__doc__:
                silent.add(name)
            for member, value in vars(thing).items():
                is_method = isinstance(value, property | classmethod) or inspect.isfunction(value)
                if is_method and not member.startswith("_") and not value.__doc__:
                    silent.add(f"{name}.{member}")
    assert silent == NOT_FOR_USERS


def test_every_error_says_what_to_do() -> None:
    kinds = [one for one in vars(errors).values() if inspect.isclass(one)]
    assert [kind for kind in kinds if issubclass(kind, Exception) and not kind.__doc__] == []


def blocks() -> list[Any]:
    """Return every example of the reference, and of the docstrings of the twin."""
    written = [
        pytest.param(block.text, path.stem == "sync", id=f"{path.stem}-{block}")
        for path in sorted(FOLDER.iterdir())
        for block in Page(str(path.relative_to(ROOT))).blocks("python")
    ]
    recipes = [getattr(sync.recipes, name) for name in sync.recipes.__all__]
    twins = [sync.Client, sync.Transaction, sync.MultiRead, *recipes]
    members = [
        (f"{kind.__name__}.{name}", member)
        for kind in twins
        if inspect.isclass(kind) and issubclass(kind, Twin)
        for name, member in [*vars(kind).items(), ("", kind)]
        if not name.startswith("_") and member.__doc__
    ]
    blocking = [
        pytest.param(text, True, id=f"sync-{name}-{number}")
        for name, member in members
        for number, text in enumerate(examples(member))
    ]
    assert len(blocking) > 10
    return written + blocking


async def lock(client: Client, scope: AsyncExitStack) -> object:
    return recipe(Lock)(client, "/given/lock")


async def grant(client: Client, scope: AsyncExitStack) -> object:
    return await recipe(Lock)(client, "/given/held").acquire()


async def cache(client: Client, scope: AsyncExitStack) -> Cache:
    return await scope.enter_async_context(recipe(Cache)(client, "/app"))


async def snapshot(client: Client, scope: AsyncExitStack) -> object:
    return (await cache(client, scope)).snapshot()


async def election(client: Client, scope: AsyncExitStack) -> object:
    return recipe(Election)(client, "/given/election")


async def membership(client: Client, scope: AsyncExitStack) -> object:
    return recipe(Membership)(client, "/given/members")


async def registry(client: Client, scope: AsyncExitStack) -> object:
    found = recipe(ServiceRegistry)(client, "/given/services")
    await found.register(ServiceInstance("search", "search-1"))
    return found


async def tasks(client: Client, scope: AsyncExitStack) -> TaskClient:
    async def shout(task: Any) -> bytes:
        data: bytes = task.data
        return data.upper()

    async def serve(one: Any) -> None:
        with suppress(SessionExpiredError):
            await one.serve()

    for one in (recipe(Master)(client, "/office"), recipe(Worker)(client, "/office", shout)):
        serving = asyncio.ensure_future(serve(one))
        scope.callback(serving.cancel)
    return recipe(TaskClient)(client, "/office")


async def task(client: Client, scope: AsyncExitStack) -> object:
    given = recipe(TaskClient)(client, "/office")
    name = await given.submit(b"apples")
    await (await tasks(client, scope)).result(name)
    return name


async def partitioner(client: Client, scope: AsyncExitStack) -> object:
    return await scope.enter_async_context(recipe(Partitioner)(client, "/given/shards", ["a", "b"]))


async def barrier(client: Client, scope: AsyncExitStack) -> object:
    """Let two others come to the barrier of the examples, which is for three."""

    async def come() -> None:
        async with recipe(DoubleBarrier)(client, "/barriers/step", 3):
            pass

    for _ in range(2):
        coming = asyncio.ensure_future(come())
        scope.callback(coming.cancel)
    return recipe(DoubleBarrier)(client, "/barriers/step", 3)


async def queue(client: Client, scope: AsyncExitStack) -> Queue:
    found = recipe(Queue)(client, "/given/queue")
    await found.put(b"resize 7.png")
    return found


async def item(client: Client, scope: AsyncExitStack) -> object:
    return await scope.enter_async_context((await queue(client, scope)).take())


async def room(client: Client, scope: AsyncExitStack) -> object:
    """Return a room in which channels come and go until the scope ends."""
    found = recipe(LogRoom)(client, "/given/room")

    async def write() -> None:
        with suppress(SessionExpiredError):
            while True:
                channel = await found.open_channel()
                await channel.append(b"mkdir /home")
                await channel.delete()

    writing = asyncio.ensure_future(write())
    scope.callback(writing.cancel)
    return found


# What the examples of recipes take for granted, by its name.
GIVEN = {
    one.__name__: one
    for one in (
        barrier,
        lock,
        grant,
        item,
        queue,
        room,
        cache,
        snapshot,
        election,
        membership,
        partitioner,
        registry,
        task,
        tasks,
    )
}


@pytest.mark.parametrize(("text", "is_blocking"), blocks())
def test_an_example_runs(text: str, is_blocking: bool, tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncExitStack() as scope:
            server: EmbeddedServer | FaultyServer
            if re.search(r"server\.(expire|partition|drop_reply)", text):
                server = scope.enter_context(FaultyServer())
            else:
                server = await scope.enter_async_context(EmbeddedServer())
            client = await scope.enter_async_context(connect(server.hosts))
            words = {*re.findall(r"\w+", text)}
            is_recipe = not words.isdisjoint([*paddock.recipes.__all__, *GIVEN])
            for path, data in (NODES | (NODES_OF_RECIPES if is_recipe else {})).items():
                await client.create(path, data)
            modules = (sync, sync.recipes) if is_blocking else (paddock, paddock.recipes)
            names = {
                name: getattr(one, name)
                for one in (testing, otel, *modules)
                for name in one.__all__
            }
            names.update(asyncio=asyncio, paddock=paddock, server=server, tmp_path=tmp_path)
            names["client"] = as_it_is(client)
            for word in words & {*GIVEN}:
                names[word] = as_it_is(await GIVEN[word](client, scope))
            await run_example(text.replace("2181", str(server.address[1])), names)

    with using("blocking" if is_blocking else "asyncio"):
        asyncio.run(main())


def as_it_is(value: object) -> object:
    """Return the object that an example uses, without its wrapper for asyncio."""
    return value.twin if isinstance(value, Threaded) else value

"""The reference is the one of the code, has everything public, and its examples run."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import paddock
import paddock.recipes
import paddock.sync.recipes
from paddock import errors, sync, testing
from paddock.sync.bridge import Twin
from paddock.testing import EmbeddedServer
from tests.support.documents import ROOT, Page
from tests.support.examples import run_example
from tools.reference import FOLDER, PAGES, examples, pages

# What the examples of recipes take for granted, made of the recipes and a client of either API.
GIVEN: dict[str, Callable[[Any, Any], Any]] = {
    "lock": lambda recipes, client: recipes.Lock(client, "/given/lock"),
    "grant": lambda recipes, client: recipes.Lock(client, "/given/held").acquire(),
}
# The nodes that examples take for granted, with their data.
NODES = {"/config": b"v1", "/report": b""}

# Errors have a page of their own.
ON_ANOTHER_PAGE = {"errors", "sync", "__version__"}
# How records go over the wire: public for the rest of Paddock.
NOT_FOR_USERS = {"Stat.read", "Stat.write", "ACL.write", "Identity.write"}


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
    """Give every example of the reference, and those that the twin's docstrings have."""
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


@pytest.mark.parametrize(("text", "is_blocking"), blocks())
def test_an_example_runs(text: str, is_blocking: bool, tmp_path: Path) -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, paddock.connect(server.hosts) as client:
            for path, data in NODES.items():
                await client.create(path, data)
            names = {name: getattr(testing, name) for name in testing.__all__}
            names.update(asyncio=asyncio, paddock=paddock, server=server, tmp_path=tmp_path)
            text_here = text.replace("2181", str(server.address[1]))
            if not is_blocking:
                names |= public_names(paddock, paddock.recipes)
                for name, value in given(text, paddock.recipes, client).items():
                    names[name] = await value if inspect.iscoroutine(value) else value
                await run_example(text_here, {**names, "client": client})
                return
            twin = await asyncio.to_thread(opened, server.hosts)
            names |= public_names(sync, sync.recipes)
            try:
                names |= await asyncio.to_thread(given, text, sync.recipes, twin)
                await run_example(text_here, {**names, "client": twin})
            finally:
                await asyncio.to_thread(twin.close)

    asyncio.run(main())


def public_names(*modules: ModuleType) -> dict[str, Any]:
    return {name: getattr(module, name) for module in modules for name in module.__all__}


def given(text: str, recipes: ModuleType, client: Any) -> dict[str, Any]:
    """Make what an example takes for granted."""
    words = set(re.findall(r"\w+", text))
    return {name: make(recipes, client) for name, make in GIVEN.items() if name in words}


def opened(hosts: str) -> sync.Client:
    return sync.connect(hosts).__enter__()

"""The reference is the one of the code, has everything public, and its examples run."""

from __future__ import annotations

import asyncio
import importlib
import inspect
from pathlib import Path
from typing import Any

import pytest

import paddock
from paddock import errors, testing
from paddock.testing import EmbeddedServer
from tests.support.documents import ROOT, Block, Page
from tests.support.examples import run_example
from tools.reference import FOLDER, PAGES, pages

# Errors have a page of their own.
ON_ANOTHER_PAGE = {"errors", "__version__"}
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


def test_everything_public_of_the_client_says_what_it_is() -> None:
    silent = set()
    for name in PAGES[0].names():
        thing = getattr(paddock, name)
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
    names = [path.relative_to(ROOT) for path in sorted(FOLDER.iterdir())]
    return [
        pytest.param(block, id=f"{name.stem}-{block}")
        for name in names
        for block in Page(str(name)).blocks("python")
    ]


@pytest.mark.parametrize("block", blocks())
def test_an_example_runs(block: Block, tmp_path: Path) -> None:
    async def main() -> None:
        async with EmbeddedServer() as server:
            async with paddock.connect(server.hosts) as client:
                await client.create("/config", b"v1")
                names = {name: getattr(testing, name) for name in testing.__all__}
                names.update({name: getattr(paddock, name) for name in paddock.__all__})
                names.update(asyncio=asyncio, paddock=paddock)
                names.update(client=client, server=server, tmp_path=tmp_path)
                await run_example(block.text.replace("2181", str(server.address[1])), names)

    asyncio.run(main())

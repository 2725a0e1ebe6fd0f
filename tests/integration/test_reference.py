"""The reference is the one of the code, has everything public, and its examples run."""

from __future__ import annotations

import asyncio
import importlib
import inspect
from pathlib import Path
from typing import Any

import pytest

import paddock
from paddock import errors, sync, testing
from paddock.testing import EmbeddedServer
from tests.support.documents import ROOT, Page
from tests.support.examples import run_example
from tools.reference import FOLDER, PAGES, examples, pages

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
    """Give every example of the reference, and those that the twin's docstrings have."""
    written = [
        pytest.param(block.text, path.stem == "sync", id=f"{path.stem}-{block}")
        for path in sorted(FOLDER.iterdir())
        for block in Page(str(path.relative_to(ROOT))).blocks("python")
    ]
    twins = (sync.Client, sync.Transaction, sync.MultiRead)
    members = [one for kind in twins for one in vars(kind).items()]
    blocking = [
        pytest.param(text, True, id=f"sync-{name}-{number}")
        for name, member in members
        if not name.startswith("_") and member.__doc__
        for number, text in enumerate(examples(member))
    ]
    assert len(blocking) > 10
    return written + blocking


@pytest.mark.parametrize(("text", "is_blocking"), blocks())
def test_an_example_runs(text: str, is_blocking: bool, tmp_path: Path) -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, paddock.connect(server.hosts) as client:
            await client.create("/config", b"v1")
            module = sync if is_blocking else paddock
            names = {name: getattr(module, name) for name in module.__all__}
            names.update({name: getattr(testing, name) for name in testing.__all__})
            names.update(asyncio=asyncio, paddock=paddock, server=server, tmp_path=tmp_path)
            text_here = text.replace("2181", str(server.address[1]))
            if not is_blocking:
                await run_example(text_here, {**names, "client": client})
                return
            twin = await asyncio.to_thread(opened, server.hosts)
            await run_example(text_here, {**names, "client": twin})
            await asyncio.to_thread(twin.close)

    asyncio.run(main())


def opened(hosts: str) -> sync.Client:
    return sync.connect(hosts).__enter__()

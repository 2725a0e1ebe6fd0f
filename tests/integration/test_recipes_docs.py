"""docs/tutorial/recipes.md keeps its word: typed in from top to bottom, it does what it says."""

from __future__ import annotations

import asyncio
import inspect
import re

import paddock.recipes
from paddock.testing import EmbeddedServer
from tests.support.documents import Page
from tests.support.examples import run_example

PAGE = Page("docs/tutorial/recipes.md")
# What only recipes make.
GIVEN_BY_OTHERS = {"LogChannel", "MultiGrant"}


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    assert PAGE.languages() == {"python"}


def test_the_page_can_be_typed_in_from_top_to_bottom() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server:
            names = {"asyncio": asyncio}
            for block in PAGE.blocks("python"):
                text = block.text.replace("2181", str(server.address[1]))
                await run_example(text, names, f"docs/tutorial/recipes.md, {block}")

    asyncio.run(main())


def test_the_table_names_every_recipe() -> None:
    """Whatever is made for a client is in the table, and what is in the table is there."""
    table = PAGE.text[: PAGE.text.index("To follow along")]
    named = set(re.findall(r"`(\w+)`", table)) - {"examples"}
    assert named <= set(paddock.recipes.__all__)
    kinds = {name: getattr(paddock.recipes, name) for name in paddock.recipes.__all__}
    made = {name for name, kind in kinds.items() if isinstance(kind, type) and _is_made(kind)}
    assert made - GIVEN_BY_OTHERS <= named


def _is_made(kind: type) -> bool:
    return next(iter(inspect.signature(kind).parameters), "") == "client"

"""docs/how-to/measure.md keeps its word: typed into one shell, it says these things."""

import asyncio
from pathlib import Path

from tests.support.documents import Page
from tests.support.reader import Reader
from tests.support.server import Service

PAGE = Page("docs/how-to/measure.md")


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    assert PAGE.languages() == {"console"}


def test_the_commands_say_what_the_page_says(tmp_path: Path, shared_paddock: Service) -> None:
    hosts = shared_paddock.hosts
    # A machine that stands still for some seconds is no lost connection.
    instead = {"$ paddock bench": "$ paddock bench --timeout 60", "127.0.0.1:2181": hosts}

    async def main() -> None:
        async with Reader(tmp_path, instead, {"PADDOCK_SERVER": hosts}) as reader:
            await reader.follow(PAGE)

    asyncio.run(main())


def test_every_option_of_the_page_is_one_of_the_command() -> None:
    reference = Page("docs/reference/commands.md").text
    (block,) = [part for part in reference.split("\n## ") if part.startswith("paddock bench")]
    for word in PAGE.text.replace("`", " ").split():
        if word.startswith("--") and len(word) > 2:
            assert f" {word} " in block, word

"""docs/how-to/use-in-scripts.md keeps its word: typed into one shell, it says these things."""

import asyncio
from pathlib import Path

from tests.support.documents import Page
from tests.support.paddock_server import PaddockServer
from tests.support.reader import Reader
from tests.support.server import Options

PAGE = Page("docs/how-to/use-in-scripts.md")


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    assert PAGE.languages() == {"console", "sh"}


def test_the_commands_say_what_the_page_says(tmp_path: Path) -> None:
    async def main() -> None:
        async with Reader(tmp_path, variables={"PADDOCK_SERVER": server.hosts}) as reader:
            await reader.follow(PAGE)

    only_srvr = Options(extra=(("4lw.commands.whitelist", None),))
    with PaddockServer(only_srvr) as server:
        asyncio.run(main())


def test_every_option_of_the_page_is_one_of_the_commands() -> None:
    reference = Page("docs/reference/commands.md").text
    for word in PAGE.text.replace("`", " ").split():
        option = word.rstrip(",.;:)")
        if option.startswith("--") and len(option) > 2:
            assert f" {option}" in reference, option

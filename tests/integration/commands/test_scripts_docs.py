"""docs/how-to/use-in-scripts.md keeps its word: its commands run in order, and say these things."""

from pathlib import Path

import pytest

from tests.support.documents import Page, assert_shown, run
from tests.support.paddock_server import PaddockServer
from tests.support.server import Options

PAGE = Page("docs/how-to/use-in-scripts.md")


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    assert PAGE.languages() == {"console", "sh"}


def test_the_commands_say_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_srvr = Options(extra=(("4lw.commands.whitelist", None),))
    with PaddockServer(only_srvr) as server:
        monkeypatch.setenv("PADDOCK_SERVER", server.hosts)
        blocks = sorted([*PAGE.blocks("console"), *PAGE.blocks("sh")], key=lambda block: block.line)
        for block in blocks:
            if block.language == "sh":
                run(f"set -e\n{block.text}", tmp_path)
                continue
            for command, expected in block.commands():
                output = run(command, tmp_path)
                if expected.strip():
                    # On a terminal a line break is added to data without one.
                    assert_shown(expected, output.removesuffix("\n") + "\n")
                else:
                    assert output == "", command


def test_every_option_of_the_page_is_one_of_the_commands() -> None:
    reference = Page("docs/reference/commands.md").text
    for word in PAGE.text.replace("`", " ").split():
        option = word.rstrip(",.;:)")
        if option.startswith("--") and len(option) > 2:
            assert f" {option}" in reference, option

"""The reference of the commands is what `--help` says."""

from __future__ import annotations

import re

import pytest

from tests.support.documents import Page, run
from tools.commands import PAGE as WRITTEN
from tools.commands import text

PAGE = Page("docs/reference/commands.md")
BLOCKS = PAGE.blocks("text")


def test_every_block_is_what_a_command_says() -> None:
    assert PAGE.languages() == {"text"}
    assert all(block.text.startswith("Usage: paddock ") for block in BLOCKS)


def test_the_page_is_that_of_the_code() -> None:
    # `python tools/commands.py` writes it.
    assert WRITTEN.read_text(encoding="utf-8") == text()


def test_every_command_is_on_it() -> None:
    names = set(re.findall(r"^  ([a-z]+)  +", run("paddock --help"), flags=re.MULTILINE))
    assert len(names) > 10
    assert {block.text.split()[2] for block in BLOCKS} == names


@pytest.mark.parametrize("name", ["serve", "backup"])
def test_it_is_what_a_reader_gets(name: str) -> None:
    [block] = [block for block in BLOCKS if block.text.split()[2] == name]
    # Lines are broken elsewhere, also within a word that has a hyphen.
    assert "".join(block.text.split()) == "".join(run(f"paddock {name} --help").split())

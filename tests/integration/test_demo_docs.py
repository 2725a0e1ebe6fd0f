"""docs/tutorial/demo.md keeps its word: its commands say these lines, its table has the acts."""

import re

import pytest

from paddock.cli.demo.acts import ACTS
from tests.support.documents import Block, Page, assert_shown, run

PAGE = Page("docs/tutorial/demo.md")


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    assert PAGE.languages() == {"console"}


@pytest.mark.parametrize("block", PAGE.blocks("console"), ids=str)
def test_a_command_says_what_the_page_says(block: Block) -> None:
    for command, expected in block.commands():
        assert_shown(expected, run(command))


def test_the_table_has_each_act_with_the_recipe_that_its_workers_use() -> None:
    rows = re.findall(r"^\| (\w+) \|.*\| `(\w+)` \|$", PAGE.text, flags=re.MULTILINE)
    assert [name for name, _ in rows] == [act.name for act in ACTS]
    for act, (_, recipe) in zip(ACTS, rows, strict=True):
        assert f"{recipe}(" in act.code

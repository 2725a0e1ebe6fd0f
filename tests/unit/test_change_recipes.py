"""The recipes for change in CONTRIBUTING.md name files that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### (Add [^\n]+)\n(.*?)(?=^##)", PAGE, re.MULTILINE | re.DOTALL))


def test_there_is_a_recipe_for_each_kind_of_change() -> None:
    kinds = ("an operation", "a recipe", "a setting", "a command", "a log engine")
    assert [*SECTIONS] == [f"Add {kind}" for kind in kinds]


@pytest.mark.parametrize("title", SECTIONS)
def test_every_file_that_it_names_is_there(title: str) -> None:
    named = re.findall(r"`((?:src|tests|docs|examples|tools)/[^`]+)`", SECTIONS[title])
    assert len(named) >= 4
    assert [path for path in named if not (ROOT / path).is_file()] == []

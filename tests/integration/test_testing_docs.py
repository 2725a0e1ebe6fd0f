"""docs/how-to/test.md keeps its word: its tests pass, its programs say what they should."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from paddock.testing import plugin
from tests.support.documents import DEADLINE_S, Block, Page, assert_shown
from tests.support.pytest_run import STRICT, STRICT_ASYNCIO, run_pytest

PAGE = Page("docs/how-to/test.md")
BLOCKS = PAGE.blocks("python")
TESTS = [block for block in BLOCKS if "paddock_" in block.text]
# The one that fails, to show how.
*PASSING, FAILING = TESTS
PROGRAMS = [block for block in BLOCKS if block not in TESTS]
SAID = [
    "b'blue'\n",
    "b'blue'\n",
    "b'blue'\n",
    "in doubt: request 2: create /order\ncreated: True\n",
    "cut before request 1: create_session\ncut after request 1: create_session\n...create2 /a/...",
    "none for 10.0 seconds\nthe session is over, and its node is gone\n",
]


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    assert PAGE.languages() == {"python", "text"}


@pytest.mark.parametrize("plugin_name", ["", "asyncio", "anyio"])
def test_the_tests_of_users_pass(plugin_name: str, tmp_path: Path) -> None:
    # Each block is a file of its own, as it stands there; it is run with nothing that it does not
    # ask for.
    first, *others = [block.text for block in PASSING if marked(block) == plugin_name]
    settings = STRICT_ASYNCIO if plugin_name == "asyncio" else STRICT
    plugins = ("paddock", plugin_name)
    run = run_pytest(tmp_path, first, settings=settings, plugins=plugins, others=others)
    assert run.passed == [*run.outcomes], run.output
    assert len(run.passed) == sum(text.count("def test_") for text in (first, *others))


def marked(block: Block) -> str:
    """Return the plugin that the tests of a block are marked for, or an empty string."""
    found = re.search(r"pytest\.mark\.(asyncio|anyio)", block.text)
    return found[1] if found else ""


def test_a_test_that_fails_shows_what_came_by(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, FAILING.text)
    assert run.passed == []
    [shown] = PAGE.blocks("text")
    assert_shown(shown.text, run.output)


def test_every_fixture_is_named() -> None:
    fixtures = [name for name in vars(plugin) if name.startswith("paddock_")]
    assert [name for name in fixtures if f"| `{name}` |" not in PAGE.text] == []
    assert PAGE.text.count("\n| `paddock_") == len(fixtures)


@pytest.mark.parametrize(("block", "said"), list(zip(PROGRAMS, SAID, strict=True)))
def test_a_program_says_what_it_should(block: Block, said: str) -> None:
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", block.text],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert result.returncode == 0, result.stderr
    assert_shown(said, result.stdout)

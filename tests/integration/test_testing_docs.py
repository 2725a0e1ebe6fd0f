"""docs/how-to/test.md keeps its word: each of its programs runs and says what it should."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.documents import DEADLINE_S, Block, Page, assert_shown

PAGE = Page("docs/how-to/test.md")
SAID = [
    "b'blue'\n",
    "b'blue'\n",
    "b'blue'\n",
    "in doubt: request 2: create /order\ncreated: True\n",
    "cut before request 1: create_session\ncut after request 1: create_session\n...create2 /a/...",
    "none for 10.0 seconds\nthe session is over, and its node is gone\n",
]


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    assert PAGE.languages() == {"python"}


@pytest.mark.parametrize(("block", "said"), list(zip(PAGE.blocks("python"), SAID, strict=True)))
def test_a_program_says_what_it_should(block: Block, said: str) -> None:
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", block.text],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert result.returncode == 0, result.stderr
    assert_shown(said, result.stdout)

"""Every example runs, prints what it says, can be run again, and is short."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from paddock.testing import ServerThread

EXAMPLES: Final = Path(__file__).parents[2] / "examples"
LINES_MAX: Final = 25
DEADLINE_S: Final = 60


def short_examples() -> list[Path]:
    return sorted(EXAMPLES.glob("*.py"))


def stories() -> list[Path]:
    """Return the examples of several recipes together, which may be longer."""
    return sorted((EXAMPLES / "stories").glob("*.py"))


@pytest.mark.parametrize(
    "example", [*short_examples(), *stories()], ids=lambda path: str(path.relative_to(EXAMPLES))
)
def test_an_example_prints_what_its_docstring_ends_with(example: Path) -> None:
    documented = ast.get_docstring(ast.parse(example.read_text(encoding="utf-8")))
    assert documented is not None
    _, _, expected = documented.partition("\n\n")
    with ServerThread() as server:
        done, again = (
            subprocess.run(
                [sys.executable, str(example), server.hosts],
                capture_output=True,
                text=True,
                timeout=DEADLINE_S,
                check=False,
            )
            for _ in range(2)
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert (again.returncode, again.stderr) == (0, "")
    assert expected
    # What stands before the last blank line of the docstring is about the example.
    assert done.stdout.rstrip("\n") == expected.rpartition("\n\n")[2]


@pytest.mark.parametrize("example", short_examples(), ids=lambda path: path.name)
def test_an_example_is_short(example: Path) -> None:
    assert len(example.read_text(encoding="utf-8").splitlines()) <= LINES_MAX

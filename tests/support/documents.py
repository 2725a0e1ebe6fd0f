"""The pages of the documentation: their blocks of code, and how those are run.

A page keeps its word if its blocks do what it says. Commands run in bash, with the `paddock` under
test found first; what a page shows of their output must come, in its order.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DEADLINE_S: Final = 300.0

_FENCE: Final = re.compile(
    r'^( *)```(\w*)(?: title="([^"\n]+)")?\n(.*?)^ *```$', flags=re.DOTALL | re.MULTILINE
)
# Every fence there is, so that none is overlooked because of how it is written.
_ANY_FENCE: Final = re.compile(r"^ *(```|~~~)", flags=re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, its text, the line on which it begins, and its title."""

    language: str
    text: str
    line: int
    title: str = ""

    def __str__(self) -> str:
        return f"line-{self.line}"

    def commands(self) -> list[tuple[str, str]]:
        """Each command that a console shows, and what it says then."""
        assert self.text.startswith("$ "), self.text
        parts = re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]
        return [(part.partition("\n")[0], part.partition("\n")[2]) for part in parts]


class Page:
    """A page, by its path from the root of the project."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.text = (ROOT / name).read_text(encoding="utf-8")
        self._blocks = [
            Block(
                fence[2],
                textwrap.dedent(fence[4]),
                self.text.count("\n", 0, fence.start()) + 1,
                fence[3] or "",
            )
            for fence in _FENCE.finditer(self.text)
        ]
        assert 2 * len(self._blocks) == len(_ANY_FENCE.findall(self.text)), name

    def every_block(self) -> list[Block]:
        """All blocks, in their order."""
        return self._blocks

    def languages(self) -> set[str]:
        """The languages of all blocks, so that a test can say which ones it runs."""
        return {block.language for block in self._blocks}

    def blocks(self, language: str) -> list[Block]:
        return [block for block in self._blocks if block.language == language]


def run(command: str, folder: Path = ROOT) -> str:
    """Run a command of a page, which must succeed; return its output."""
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        env=environment(),
    )
    assert result.returncode == 0, (command, result.stderr)
    return result.stdout


def environment() -> dict[str, str]:
    """Our environment, with the programs beside this Python found first."""
    paths = [str(Path(sys.executable).parent), os.environ["PATH"]]
    return {**os.environ, "PATH": os.pathsep.join(paths)}


def assert_shown(expected: str, actual: str) -> None:
    """Compare what a page shows with what came, as `is_shown` does."""
    assert is_shown(expected, actual), actual


def is_shown(expected: str, actual: str) -> bool:
    """Tell whether what a page shows is what came.

    `...` stands for anything, as in doctest; so does what stands between the lines that are shown.
    """
    wanted = "".join(f"...{line}\n" for line in expected.splitlines()) + "..."
    return doctest.OutputChecker().check_output(wanted, actual, doctest.ELLIPSIS)

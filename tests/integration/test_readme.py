"""The README keeps its word: every block of code in it runs, against a server of its own."""

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.paddock_server import PaddockServer
from tests.support.server import Server

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DEADLINE_S = 60.0


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, its text, and the line on which it begins."""

    language: str
    text: str
    line: int

    def __str__(self) -> str:
        return f"line-{self.line}"


def blocks(language: str) -> list[Block]:
    fences = re.finditer(r"^```(\w*)\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)
    found = [
        Block(fence[1], fence[2], README.count("\n", 0, fence.start()) + 1) for fence in fences
    ]
    return [block for block in found if block.language == language]


@pytest.fixture
def server() -> Iterator[Server]:
    with PaddockServer() as server:
        yield server


def run(command: list[str], server: Server) -> str:
    """Run a command with the server's port in place of the usual one; return its output."""
    paths = [str(Path(sys.executable).parent), os.environ["PATH"]]
    result = subprocess.run(
        [part.replace("2181", str(server.port)) for part in command],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        env={**os.environ, "PATH": os.pathsep.join(paths)},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    fences = re.findall(r"^```(\w*)$", README, flags=re.MULTILINE)
    assert set(fences[::2]) <= {"python", "console", "sh"}
    assert blocks("python")
    assert blocks("console")
    assert blocks("sh")


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_python_block_runs(block: Block, server: Server) -> None:
    assert run([sys.executable, "-W", "error", "-c", block.text], server)


def test_the_first_example_prints_what_it_did(server: Server) -> None:
    output = run([sys.executable, "-c", blocks("python")[0].text], server)
    assert output.splitlines()[0] == "config is blue"
    # kazoo calls back in a thread of its own, so the last two lines may come out as one.
    assert "version 1" in " ".join(output.split())


@pytest.mark.parametrize("block", blocks("console"), ids=str)
def test_console_block_prints_what_it_says(block: Block, server: Server) -> None:
    assert block.text.startswith("$ ")
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        # `...` stands for anything, as in doctest; so does what stands between the lines shown.
        wanted = "".join(f"...{line}\n" for line in expected.splitlines()) + "..."
        actual = run(["bash", "-c", command], server)
        assert doctest.OutputChecker().check_output(wanted, actual, doctest.ELLIPSIS), actual


@pytest.mark.parametrize("block", blocks("sh"), ids=str)
def test_make_command_exists(block: Block) -> None:
    for line in block.text.splitlines():
        # Only shown, not run: this test may itself be part of `make test`.
        command = ["make", "--dry-run", *line.partition("#")[0].split()[1:]]
        assert line.startswith("make ")
        assert subprocess.run(command, cwd=ROOT, capture_output=True).returncode == 0

"""The `paddock` command as its users meet it: output, and exit status."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DEADLINE_S = 60.0


def paddock(*arguments: str | Path, input: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run a command that ends by itself."""
    return subprocess.run(
        [sys.executable, "-m", "paddock", *map(str, arguments)],
        capture_output=True,
        timeout=DEADLINE_S,
        input=input,
    )


def success(*arguments: str | Path) -> str:
    """Run a command that must succeed; return what it says."""
    result = paddock(*arguments)
    assert result.returncode == 0, result.stderr.decode() + result.stdout.decode()
    return result.stdout.decode()


def refusal(*arguments: str | Path, status: int, input: bytes = b"") -> str:
    """Run a command that must fail with this status; return the one line that it says."""
    result = paddock(*arguments, input=input)
    assert (result.returncode, result.stdout) == (status, b""), result
    lines = result.stderr.decode().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("paddock: ")
    return lines[0].removeprefix("paddock: ")

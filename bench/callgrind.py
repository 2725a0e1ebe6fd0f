"""Counts the instructions of a program between its marks, by valgrind's callgrind.

The program calls a function of the C library that it has no other use for, and callgrind writes
down what it has counted each time that function is entered, and begins anew. So a program that is
long in starting is counted only where it matters, and one run counts many things.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.servers import BenchError

# It must be what `mark` of the program calls, and nothing else may.
MARK: Final = "getsid"

_OUT: Final = "out"
_TRIGGER: Final = re.compile(rf"^desc: Trigger: --dump-before={MARK}$", re.MULTILINE)
_TOTALS: Final = re.compile(r"^totals: (\d+)$", re.MULTILINE)


def is_installed() -> bool:
    return shutil.which("valgrind") is not None


def counts(parts: list[str]) -> list[int]:
    """Return what was counted up to each mark, of what callgrind wrote then, in that order."""
    found = []
    for part in parts:
        totals = _TOTALS.search(part)
        if not _TRIGGER.search(part) or totals is None:
            raise BenchError("callgrind wrote something else than expected")
        found.append(int(totals[1]))
    return found


@dataclass
class Counting:
    """A program that runs under callgrind."""

    process: subprocess.Popen[str]
    folder: Path

    def finish(self, deadline_s: float) -> tuple[str, list[int]]:
        """Wait for its end; give what it printed, and the instructions up to each of its marks."""
        try:
            output, errors = self.process.communicate(timeout=deadline_s)
        except subprocess.TimeoutExpired:
            raise BenchError(f"counting did not end within {deadline_s:.0f} s") from None
        if self.process.returncode != 0:
            raise BenchError(f"counting failed: {(errors.strip() or 'without a word')[-2000:]}")
        # The last part, up to the end of the program, has no number.
        parts = sorted(self.folder.glob(f"{_OUT}.*"), key=lambda path: int(path.suffix[1:]))
        return output, counts([path.read_text(encoding="utf-8") for path in parts])

    def stop(self) -> None:
        """End it, if it has not ended."""
        self.process.kill()
        self.process.communicate()


def start(command: list[str], environment: dict[str, str], working: Path, folder: Path) -> Counting:
    """Begin to count what runs in one folder; callgrind writes to the other, which is empty."""
    options = ["--quiet", "--tool=callgrind", f"--dump-before={MARK}"]
    process = subprocess.Popen(
        ["valgrind", *options, f"--callgrind-out-file={folder / _OUT}", *command],
        env=environment,
        cwd=working,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return Counting(process, folder)

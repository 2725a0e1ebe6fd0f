"""Count the instructions of a program between its marks, with valgrind's callgrind.

The program calls a function of the C library that nothing else in it calls. Each time that function
is entered, callgrind writes its counts and resets them. So a long start does not count, and one run
counts many things.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.servers import BenchError

# The function that `mark` of the program calls; nothing else may call it.
MARK: Final = "getsid"

_OUT: Final = "out"
_TRIGGER: Final = re.compile(rf"^desc: Trigger: --dump-before={MARK}$", re.MULTILINE)
_TOTALS: Final = re.compile(r"^totals: (\d+)$", re.MULTILINE)


def is_installed() -> bool:
    return shutil.which("valgrind") is not None


def counts(parts: list[str]) -> list[int]:
    """Return the counts up to each mark, in order, from the files that callgrind wrote."""
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
        """Wait for its end; return its output, and the instructions up to each of its marks."""
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
    """Start to count a program in one folder; callgrind writes to the other, empty one."""
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

"""A program that runs on, in the environment of its application: what it says, and its end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.applications.environment import DEADLINE_S, variables, wait_until


class Program:
    """One process with its children, in a process group of its own. `with` ends them all."""

    def __init__(self, command: list[str], programs: Path, folder: Path, name: str) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(programs / command[0]), *command[1:]],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=folder,
                env=variables(programs),
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def wait_said(self, words: str, times: int = 1) -> None:
        """Wait until it has said this, so many times."""

        def is_said() -> bool:
            assert self._process.poll() is None or words in self.said(), self.said()[-3000:]
            return self.said().count(words) >= times

        wait_until(is_said, f"{self.name} says {words!r}", self.said)

    def type(self, line: str) -> None:
        """Write a line to its standard input."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()

    def end(self, number: int) -> None:
        """Send a signal to its first process alone, and wait for its end."""
        self._process.send_signal(number)
        self._process.wait(DEADLINE_S)

    def kill(self) -> None:
        """Kill it and its children, as a machine that loses power."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(DEADLINE_S)
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

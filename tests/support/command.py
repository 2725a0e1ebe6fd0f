"""The `paddock` command as its users meet it: a process, its output, its exit status."""

from __future__ import annotations

import contextlib
import io
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from paddock.cli.main import main

DEADLINE_S = 120.0
COMMAND = [sys.executable, "-m", "paddock"]


def paddock(
    *arguments: str | Path, input: bytes = b"", cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a command that ends by itself; what goes in and comes out are bytes."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        timeout=DEADLINE_S,
        input=input,
    )


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command has ended, and what it said."""

    status: int
    output: str
    errors: str


def ended(*arguments: str | Path) -> Ended:
    """Run a command that ends by itself, in whatever way."""
    result = paddock(*arguments)
    return Ended(result.returncode, result.stdout.decode(), result.stderr.decode())


def success(*arguments: str | Path) -> str:
    """Run a command that must succeed; return what it says."""
    result = ended(*arguments)
    assert result.status == 0, result
    return result.output


def refusal(*arguments: str | Path, status: int, input: bytes = b"") -> str:
    """Run a command that must fail with this status; return the one line that it says."""
    result = paddock(*arguments, input=input)
    assert (result.returncode, result.stdout) == (status, b""), result
    lines = result.stderr.decode().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("paddock: ")
    return lines[0].removeprefix("paddock: ")


@dataclass(slots=True)
class Running:
    """A server that has said where it listens."""

    process: subprocess.Popen[str]
    greeting: list[str]

    @property
    def address(self) -> tuple[str, int]:
        match = re.search(r" listens on (.+):(\d+)$", self.greeting[0])
        assert match is not None, self.greeting
        return match[1], int(match[2])

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal; return the exit status and what stood on stderr."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, errors


@contextlib.contextmanager
def serving(*arguments: str | Path, cwd: Path | None = None) -> Iterator[Running]:
    """Start `paddock serve` and wait for the end of its greeting."""
    process = subprocess.Popen(
        [*COMMAND, "serve", *map(str, arguments)],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield Running(process, greeting_of(process))
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=DEADLINE_S)


def greeting_of(process: subprocess.Popen[str]) -> list[str]:
    """Return what it says on stdout up to the line about Ctrl-C."""
    assert process.stdout is not None
    said = b""
    limit = time.monotonic() + DEADLINE_S
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while b"Ctrl-C" not in said:
            assert selector.select(limit - time.monotonic()), f"no greeting, only {said!r}"
            chunk = os.read(process.stdout.fileno(), 65536)
            if not chunk:
                _, errors = process.communicate(timeout=DEADLINE_S)
                raise AssertionError(f"ended with {process.returncode} before it served: {errors}")
            said += chunk
    return said.decode().splitlines()


def ended_here(*arguments: str | Path) -> Ended:
    """Run a command without a process of its own: for the tenth case of the same kind."""
    output, errors = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        with pytest.raises(SystemExit) as end:
            main([*map(str, arguments)])
    status = end.value.code
    assert isinstance(status, int)
    return Ended(status, _written(output), _written(errors))


def success_here(*arguments: str | Path) -> str:
    """Do what `success` does, without a process."""
    result = ended_here(*arguments)
    assert result.status == 0, result
    return result.output


def refusal_here(*arguments: str | Path, status: int) -> str:
    """Do what `refusal` does, without a process."""
    result = ended_here(*arguments)
    assert (result.status, result.output) == (status, ""), result
    (line,) = result.errors.splitlines()
    assert line.startswith("paddock: ")
    return line.removeprefix("paddock: ")


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()


class Started:
    """A command that runs on, and what it says line by line."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._said = b""

    def line(self) -> str:
        """Wait for its next line."""
        assert self.process.stdout is not None
        limit = time.monotonic() + DEADLINE_S
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._said:
                assert selector.select(limit - time.monotonic()), f"only {self._said!r}"
                chunk = os.read(self.process.stdout.fileno(), 65536)
                assert chunk, (self._said, self.end())
                self._said += chunk
        line, _, self._said = self._said.partition(b"\n")
        return line.decode()

    def end(self, number: int | None = None) -> Ended:
        """Send it a signal, if one is given, and wait for its end; it says what it said since."""
        if number is not None:
            self.process.send_signal(number)
        output, errors = self.process.communicate(timeout=DEADLINE_S)
        whole = (self._said + output).decode()
        return Ended(self.process.returncode, whole, errors.decode())


@contextlib.contextmanager
def started(*arguments: str | Path) -> Iterator[Started]:
    """Start a command that runs until it is told to end, or has done what it was to do."""
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield Started(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=DEADLINE_S)

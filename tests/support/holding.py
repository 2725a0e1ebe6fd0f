"""`paddock lock` and `paddock elect` as processes, with commands that give evidence of their lives.

No clock says whether two commands ran at once: each takes a lock of the file system for its whole
life, which the kernel frees when it dies, and one that does not get it at once says so in a file.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.support.command import COMMAND

DEADLINE_S: Final = 60.0

# Says who it is, its token and its guard, and does what its first argument says then.
WORKER: Final = """
import fcntl, os, signal, subprocess, sys, time
folder, act = sys.argv[1], sys.argv[2]
alone = open(f"{folder}/alone", "w")
try:
    fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    open(f"{folder}/overlap", "a").write(os.environ["PADDOCK_TOKEN"] + "\\n")
    sys.exit(99)
with open(f"{folder}/tokens", "a") as tokens:
    tokens.write(os.environ["PADDOCK_TOKEN"] + "\\n")
if act == "stubborn":
    signal.signal(signal.SIGTERM, lambda *_: print("asked", flush=True))
print("runs", os.getpid(), os.environ["PADDOCK_TOKEN"], os.environ["PADDOCK_GUARD"], flush=True)
if act == "brief":
    time.sleep(0.05)
    sys.exit(0)
while True:
    time.sleep(0.01)
"""


class Wrapper:
    """A wrapper that runs, and what it and its command say, line by line."""

    def __init__(self, command: str, hosts: str, *arguments: str | Path) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, command, "--server", hosts, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Without a terminal, even if the tests run on one.
            start_new_session=True,
        )
        self.lines: list[str] = []
        self.errors: list[str] = []
        self._changed = threading.Condition()
        self._listeners = [
            threading.Thread(target=self._listen, args=(stream, lines), daemon=True)
            for stream, lines in (
                (self.process.stdout, self.lines),
                (self.process.stderr, self.errors),
            )
        ]
        for listener in self._listeners:
            listener.start()

    def wait_line(self, beginning: str, nth: int = 1) -> list[str]:
        """Wait for a line that begins so, or for a later one; give its words."""
        found: list[str] = []

        def is_said() -> bool:
            found[:] = [line for line in self.lines if line.startswith(beginning)]
            return len(found) >= nth

        with self._changed:
            assert self._changed.wait_for(is_said, DEADLINE_S), (self.lines, self.errors)
        return found[nth - 1].split()

    def wait_runs(self, nth: int = 1) -> Worker:
        """Wait until the command runs, for the nth time."""
        _, pid, token, guard = self.wait_line("runs ", nth)
        return Worker(int(pid), int(token), guard)

    def wait_end(self) -> int:
        """Wait for its end, and for all that it and its command have said; give the status."""
        status = self.process.wait(DEADLINE_S)
        for listener in self._listeners:
            # It ends when nobody is left who could say something.
            listener.join(DEADLINE_S)
            assert not listener.is_alive(), "somebody is left who could write"
        return status

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()

    def leave(self) -> None:
        """See to it that it is over, whatever it does."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.wait_end()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()

    def _listen(self, stream: Iterator[str], lines: list[str]) -> None:
        for line in stream:
            with self._changed:
                lines.append(line.rstrip("\n"))
                self._changed.notify_all()


class Worker:
    """A command that runs, or has run: a process, and what it holds."""

    def __init__(self, pid: int, token: int, guard: str) -> None:
        self.pid = pid
        self.token = token
        self.guard = guard

    @property
    def is_alive(self) -> bool:
        return is_alive(self.pid)

    @property
    def warden(self) -> int:
        """Who runs it."""
        return int(_stat(self.pid)[1])

    def wait_gone(self, seconds: float = DEADLINE_S) -> None:
        wait_dead([self.pid], seconds)


class Wrappers:
    """Starts wrappers whose commands give evidence, and judges it."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self._folder = folder
        self._stack = stack

    def start(self, command: str, hosts: str, *arguments: str | Path) -> Wrapper:
        wrapper = Wrapper(command, hosts, *arguments)
        self._stack.callback(wrapper.leave)
        return wrapper

    def worker(self, act: str = "for ever") -> list[str]:
        """Return a command that reports if it does not run alone."""
        return [sys.executable, "-IS", "-c", WORKER, str(self._folder), act]

    def tokens(self) -> list[int]:
        """Return the tokens of all commands that have begun, in order."""
        file = self._folder / "tokens"
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    def begun(self) -> int:
        """Tell how many commands have begun so far."""
        return len(self.tokens())

    def wait_begun(self, number: int) -> None:
        """Wait until so many have begun."""
        wait_until(lambda: self.begun() >= number, f"{number}th command that begins")

    def check_alone(self) -> None:
        """Raise AssertionError if ever two ran at once, or a later one had a smaller token."""
        overlap = self._folder / "overlap"
        assert not overlap.exists(), f"two ran at once: {overlap.read_text()}"
        assert self.tokens() == sorted(set(self.tokens()))


@contextlib.contextmanager
def wrappers_in(folder: Path) -> Iterator[Wrappers]:
    """Yield a starter of wrappers; at the end all are ended, and no two ran at once."""
    with contextlib.ExitStack() as stack:
        wrappers = Wrappers(folder, stack)
        yield wrappers
        wrappers.check_alone()


def is_alive(pid: int) -> bool:
    """Tell whether a process runs, or could."""
    try:
        return _stat(pid)[0] != "Z"
    except OSError:
        return False


def wait_dead(pids: Sequence[int], seconds: float = DEADLINE_S) -> None:
    """Wait until none of these processes runs."""
    wait_until(lambda: not any(map(is_alive, pids)), f"end of {pids}", seconds)


def wait_until(is_so: Callable[[], bool], what: str, seconds: float = DEADLINE_S) -> None:
    """Wait for something that nobody tells us, in another process."""
    limit = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < limit, f"no {what}"
        time.sleep(0.005)


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat, from the state on."""
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return text.rpartition(")")[2].split()


def stopped(*pids: int) -> None:
    """Stop processes, and wait until they do nothing."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: all(_stat(pid)[0] == "T" for pid in pids), f"stop of {pids}")


def resume(*pids: int) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGCONT)

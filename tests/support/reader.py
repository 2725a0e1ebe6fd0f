"""A reader who does what a page says, block by block, from top to bottom.

| block | what the reader does |
|---|---|
| `console` | types each command into a terminal, and compares what it says with what is shown |
| `sh` | runs it as a whole; it must succeed |
| `python` | types it into `python -m asyncio`: see `tests/support/examples.py` |
| any other with the name of a file as its title | saves it in the folder where the reader is |
| a `zoo.cfg`, as its first line says | looks whether the server understands it |

`title="Terminal 2"` on a console is a terminal of its own; a new one begins where the last one is.
A command that goes on after it has said what is shown is left running, as a server is: the next
one in its terminal waits until it has ended, `^C` on a line of its own interrupts it, and so does
the end of the page. A console that does not begin with a command shows what the one that runs in
its terminal says next. A command may fail only if `echo $?` is typed after it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from paddock.server.config.sources import Settings
from tests.support.documents import Block, Page, environment, is_shown
from tests.support.examples import run_example

DEADLINE_S: Final = 60.0

# How long it takes to turn to another window. What still runs then does not end by itself.
_TURNING_S: Final = 2.0
# With which status a command ends that was interrupted; celery, with 1.
_INTERRUPTED: Final = {0, 130, -signal.SIGINT}
_INTERRUPTED_CELERY: Final = {0, 1}
# Brings a terminal back to where its last command left it, and notes where this one leaves it.
_SCRIPT: Final = """\
. {state}/variables; cd "$(cat {state}/folder)"; set -o pipefail
trap 'pwd > {state}/new && mv {state}/new {state}/folder; export -p > {state}/variables' EXIT
(exit {status})
{command}
"""


class Reader:
    """Follows a page in a folder, with other words in place of some, such as ports."""

    def __init__(
        self,
        folder: Path,
        instead: Mapping[str, str] = {},
        variables: Mapping[str, str] = {},
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self._folder = folder
        self._instead = instead
        self._deadline_s = deadline_s
        self._environment = {**environment(), "PYTHONUNBUFFERED": "1", **variables}
        self._scope = ExitStack()
        self._terminals: dict[str, _Terminal] = {}
        self._last: _Terminal | None = None
        self._names: dict[str, Any] = {"asyncio": asyncio}

    async def __aenter__(self) -> Reader:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            for terminal in reversed(self._terminals.values()):
                await asyncio.to_thread(terminal.leave)
        finally:
            self._scope.close()

    async def follow(self, page: Page) -> None:
        """Do all that a page says."""
        for block in page.every_block():
            try:
                await self.do(block, page.name)
            except AssertionError as error:
                raise AssertionError(f"{page.name}, {block}: {error}") from error

    async def do(self, block: Block, where: str = "") -> None:
        """Do what one block says. Raises LookupError for one that nobody knows what to do with."""
        text = block.text
        for word, other in self._instead.items():
            text = text.replace(word, other)
        if block.language == "console":
            more, *commands = re.split(r"^\$ ", text, flags=re.MULTILINE)
            terminal = self._terminal(block.title)
            if more:
                if more.startswith("^C\n"):
                    for beside in self._terminals.values():
                        if beside is not terminal:
                            await asyncio.to_thread(beside.let_end)
                await asyncio.to_thread(terminal.watch, more)
            for line in commands:
                command, _, shown = line.partition("\n")
                await asyncio.to_thread(terminal.type, command, shown)
        elif is_file_name(block.title):
            path = (self._last.folder if self._last else self._folder) / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif text.startswith("# zoo.cfg"):
            _understand(text)
        elif block.language == "sh":
            await asyncio.to_thread(self._terminal(block.title).type, f"set -e\n{text}", "")
        elif block.language == "python":
            await run_example(text, self._names, f"{where}, {block}")
        else:
            raise LookupError(f"nobody runs {block.language!r}")

    def _terminal(self, title: str) -> _Terminal:
        if title not in self._terminals:
            folder = self._last.folder if self._last else self._folder
            state = Path(self._scope.enter_context(tempfile.TemporaryDirectory()))
            self._terminals[title] = _Terminal(folder, state, self._environment, self._deadline_s)
            self._scope.callback(self._terminals[title].kill)
        self._last = self._terminals[title]
        return self._last


def is_file_name(title: str) -> bool:
    """Tell whether the title of a block is the name of a file, and not of a terminal."""
    return re.fullmatch(r"[\w./-]*\w+\.\w+|Makefile", title) is not None


def _understand(text: str) -> None:
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        settings = Settings()
        settings.read_file(Path(file.name))
    assert settings.warnings == []
    settings.config()


class _Terminal:
    """Runs one command after the other; each begins with the folder and variables of the last."""

    def __init__(
        self, folder: Path, state: Path, environment: Mapping[str, str], deadline_s: float
    ) -> None:
        self._state = state
        self._deadline_s = deadline_s
        self._environment = environment
        self._status = 0
        self._command: _Command | None = None
        # What the page shows of what it says.
        self._shown = ""
        (state / "folder").write_text(f"{folder}\n", encoding="utf-8")
        (state / "variables").write_text("", encoding="utf-8")

    @property
    def folder(self) -> Path:
        return Path((self._state / "folder").read_text(encoding="utf-8").removesuffix("\n"))

    def type(self, command: str, shown: str) -> None:
        """Run a command until it has said what is shown, or has ended."""
        self._finish(may_fail=command.startswith("echo $?"))
        script = _SCRIPT.format(state=self._state, status=self._status, command=command)
        self._command = _Command(command, script, self._environment, self._deadline_s)
        self._shown = ""
        self.watch(shown)

    def watch(self, shown: str) -> None:
        """See what the present command says next, and interrupt it where that is shown."""
        assert self._command is not None, f"no command could say this: {shown}"
        before, is_interrupted, after = shown.partition("^C\n")
        self._shown += before
        self._command.wait_for(self._shown)
        if is_interrupted:
            self._command.interrupt()
            self._shown += after
            self._command.wait_for(self._shown, is_ended=True)

    def let_end(self) -> None:
        """Give a command that has shown all time to end: one turns to another window."""
        if self._command is not None:
            self._command.let_end()

    def leave(self) -> None:
        """Interrupt what still runs; what has ended must have succeeded."""
        if self._command is not None and self._command.is_running():
            self._command.interrupt()
        self._finish(may_fail=False)

    def kill(self) -> None:
        if self._command is not None:
            self._command.kill()

    def _finish(self, may_fail: bool) -> None:
        if self._command is None:
            return
        self._status = self._command.wait()
        assert may_fail or self._status in self._command.fine(), self._command.told()
        self._command = None


class _Command:
    """A running command, and what it has said so far on either stream."""

    def __init__(
        self, command: str, script: str, environment: Mapping[str, str], deadline_s: float
    ) -> None:
        self._deadline_s = deadline_s
        self._said = ""
        self._text = command
        self._changed = threading.Condition()
        self._is_ended = False
        self.is_interrupted = False
        self._process = subprocess.Popen(
            ["bash", "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def wait_for(self, shown: str, is_ended: bool = False) -> None:
        """Wait until this was said, in its order; if nothing is shown, until it has ended."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_ended or (shown and not is_ended and is_shown(shown, self._said)),
                self._deadline_s,
            )
            assert is_shown(shown, self._said), self.told()
            assert self._is_ended or (shown and not is_ended), f"still running: {self.told()}"

    def wait(self) -> int:
        status = self._process.wait(self._deadline_s)
        self._listener.join(self._deadline_s)
        return status

    def let_end(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_TURNING_S)

    def is_running(self) -> bool:
        return self._process.poll() is None

    def interrupt(self) -> None:
        """Do what Ctrl-C does: the signal goes to all that the command has started."""
        self.is_interrupted = True
        os.killpg(self._process.pid, signal.SIGINT)

    def kill(self) -> None:
        if self.is_running():
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(self._deadline_s)
        self._listener.join(self._deadline_s)

    def fine(self) -> set[int]:
        """Return the exit statuses that are accepted."""
        if not self.is_interrupted:
            return {0}
        return _INTERRUPTED_CELERY if self._text.startswith("celery ") else _INTERRUPTED

    def told(self) -> str:
        return f"$ {self._text}\n{self._said}(status {self._process.poll()})"

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stream:
            for line in stream:
                with self._changed:
                    self._said += line.decode(errors="replace")
                    self._changed.notify_all()
        with self._changed:
            if self._said and not self._said.endswith("\n"):
                # On a terminal a line break is added to data without one.
                self._said += "\n"
            self._is_ended = True
            self._changed.notify_all()

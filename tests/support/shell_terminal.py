"""`paddock shell` on a terminal, and the text in its input line."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.command import COMMAND, Running
from tests.support.terminal import ENTER, Terminal, terminal


@contextlib.contextmanager
def shell(
    hosts: str, home: Path, *options: str, columns: int = 80, rows: int = 24, **variables: str
) -> Iterator[Terminal]:
    """Start the shell and wait until it is connected."""
    environment = {"XDG_STATE_HOME": str(home), "PADDOCK_SERVER": None, **variables}
    command = [*COMMAND, "shell", "-server", hosts, *options]
    with terminal(command, columns=columns, rows=rows, environment=environment) as seen:
        seen.wait_for("(CONNECTED)")
        yield seen


def hosts_of(server: Running) -> str:
    """Return the address of a server as a connect string."""
    host, port = server.address
    return f"{host}:{port}"


def typed(seen: Terminal) -> str:
    """Return the text behind the prompt in the line with the cursor."""
    return re.sub(r"^\[zk: \S+ \d+\] ?", "", seen.line)


def wait_for_typed(seen: Terminal, text: str) -> None:
    """Wait until this stands behind the prompt."""
    seen.wait_until(lambda: typed(seen) == text, f"line with {text!r} typed")


def run_line(seen: Terminal, line: str) -> None:
    """Type a command, and wait until the next prompt is there."""
    seen.wait_until(lambda: number_of(seen) >= 0, "prompt")
    number = number_of(seen)
    seen.type(line + ENTER)
    seen.wait_until(lambda: number_of(seen) == number + 1, f"end of {line!r}")


def number_of(seen: Terminal) -> int:
    """Return the number in the prompt at the cursor; -1 if no prompt is there."""
    match = re.match(r"\[zk: \S+ (\d+)\]", seen.line)
    return -1 if match is None else int(match[1])

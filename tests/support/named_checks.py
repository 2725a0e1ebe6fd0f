"""Foreign programs that judge a server: each runs named checks and prints a line for every one.

The line is `ok NAME` or `failed NAME: why`. The names are read from the program's source, so that
there is a test for each of them, also for one that the program forgets to run. A check that needs
something done to the server asks for it with a line `please WHAT`, and goes on when it reads `done`
or an answer.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

#: For a whole program; each check has a deadline of its own.
DEADLINE_S: Final = 240.0

_OUTCOME: Final = re.compile(r"(ok|failed) ([\w.]+)(?:: (.*))?")
_REQUEST: Final = "please "


@dataclass(slots=True)
class Report:
    """What a program said."""

    #: For each check that came to an end, what was wrong, or an empty string.
    outcomes: dict[str, str] = field(default_factory=dict)
    #: Everything else, for the reader of a failure.
    noise: list[str] = field(default_factory=list)
    #: What was answered to its handshakes, for those who ask.
    handshakes: list[bytes] = field(default_factory=list)

    def demand(self, name: str) -> None:
        """Fail unless the check ran and all was well."""
        if name not in self.outcomes:
            said = "\n".join(self.noise[-40:])
            pytest.fail(f"the check did not run; the program said:\n{said}", pytrace=False)
        if self.outcomes[name]:
            pytest.fail(self.outcomes[name], pytrace=False)


def names(sources: Iterable[Path], pattern: str) -> list[str]:
    """Find the names of the checks; the pattern's first group is one."""
    return [
        name for source in sources for name in re.findall(pattern, source.read_text(), re.MULTILINE)
    ]


def run(command: Sequence[str | Path], requests: Mapping[str, Callable[[], str | None]]) -> Report:
    """Run the program to its end, and do what it asks for."""
    report = Report()
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        late = threading.Timer(DEADLINE_S, program.kill)
        late.start()
        try:
            for line in program.stdout:
                line = line.rstrip("\n")
                if outcome := _OUTCOME.fullmatch(line):
                    kind, name, why = outcome.groups()
                    report.outcomes[name] = "" if kind == "ok" else why or "no reason was given"
                elif line.startswith(_REQUEST):
                    answer = requests[line.removeprefix(_REQUEST)]() or "done"
                    # A program that has died meanwhile is told by the checks that did not run.
                    with contextlib.suppress(BrokenPipeError):
                        program.stdin.write(f"{answer}\n")
                        program.stdin.flush()
                else:
                    report.noise.append(line)
        finally:
            late.cancel()
            program.kill()
    return report

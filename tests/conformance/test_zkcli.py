"""Apache's shell, `zkCli`, prints what `zkcli.txt` has written down, whichever server it talks to.

One shell for each server runs all commands of that file. A line of it is `# ` and the name of a
section, `> ` and a command, `! ` and an event that follows, or else what the command prints, with
`#` in place of ids and times.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from tests.support import zkcli
from tests.support.server import Server, ServerMissingError


@dataclass(frozen=True, slots=True)
class Step:
    """One command and what is to follow."""

    section: str
    command: str
    output: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)


def read_steps(path: Path) -> list[Step]:
    steps: list[Step] = []
    section = ""
    for line in path.read_text().splitlines():
        mark, text = line[:2], line[2:]
        if mark == "# ":
            section = text
        elif mark == "> ":
            steps.append(Step(section, text))
        elif mark == "! ":
            steps[-1].events.append(text)
        elif line:
            steps[-1].output.append(line)
    return steps


STEPS: Final = read_steps(Path(__file__).with_name("zkcli.txt"))
SECTIONS: Final = tuple(dict.fromkeys(step.section for step in STEPS))

#: Apache prints these in the order of a hash table, we in the order they were made: only what is
#: in them is compared.
UNORDERED: Final = ("getEphemerals", "whoami")


def comparable(command: str, output: list[str]) -> list[str]:
    """Return what must be equal; an event may break a line of the shell anywhere."""
    if not command.startswith(UNORDERED):
        return ["".join(output)]
    return sorted(item for line in output for item in line.strip("[]").split(", "))


@pytest.fixture(scope="module")
def transcript(server: Server) -> zkcli.Transcript:
    """What the shell printed for all the steps."""
    address = f"{server.host}:{server.port}"
    commands = [step.command.replace("ADDRESS", address) for step in STEPS]
    try:
        return zkcli.run(server.address, commands)
    except ServerMissingError as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("section", SECTIONS)
def test_the_shell_prints_what_it_should(transcript: zkcli.Transcript, section: str) -> None:
    for step, output in zip(STEPS, transcript.outputs, strict=True):
        if step.section == section:
            expected = comparable(step.command, step.output)
            assert comparable(step.command, output) == expected, f"after: {step.command}"


def test_the_shell_is_told_of_events_in_their_order(transcript: zkcli.Transcript) -> None:
    assert transcript.events == [event for step in STEPS for event in step.events]

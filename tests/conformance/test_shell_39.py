"""`paddock shell` prints what Apache's `zkCli` 3.9 prints, as `zkcli_39.txt` has it.

These are the commands in which 3.9 differs from 3.8. Upstream's words were written down with 3.9.5;
where Debian's shell is of 3.9.3 or later, it is asked as well. Ours says the same on any server,
since its watches of several modes do not depend on it. The file is read as `zkcli.txt` is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.conformance.test_zkcli import read_steps
from tests.support import zkcli
from tests.support.server import Server, ServerMissingError
from tests.support.shells import has_flags_of_data, paddock_shell
from tests.support.zkcli import Transcript, run_shell

STEPS: Final = read_steps(Path(__file__).with_name("zkcli_39.txt"))
SECTIONS: Final = tuple(dict.fromkeys(step.section for step in STEPS))


def shells() -> list[str]:
    """Return whose shells know these commands."""
    try:
        return ["ours", "upstreams"] if has_flags_of_data() else ["ours"]
    except ServerMissingError:
        return ["ours"]


@pytest.fixture(scope="module", params=shells())
def said(server: Server, request: pytest.FixtureRequest) -> Transcript:
    """What a shell printed for all the steps."""
    commands = [step.command for step in STEPS]
    if request.param == "upstreams":
        return zkcli.run(server.address, commands)
    return run_shell(paddock_shell("-server", server.hosts), commands)


@pytest.mark.parametrize("section", SECTIONS)
def test_a_shell_prints_what_upstreams_did(said: Transcript, section: str) -> None:
    for step, output in zip(STEPS, said.outputs, strict=True):
        if step.section == section:
            assert output == step.output, f"after: {step.command}"


def test_a_shell_is_told_of_the_events_that_upstreams_was_told_of(said: Transcript) -> None:
    assert said.events == [event for step in STEPS for event in step.events]

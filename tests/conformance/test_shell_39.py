"""`paddock shell` prints what Apache's `zkCli` 3.9.5 has printed, as `zkcli_39.txt` has it.

These are the commands in which 3.9 differs from 3.8, with which all others are compared. Upstream's
words were written down on a server of 3.9; ours are the same on any, since its watches of several
modes do not depend on the server. The file is read as `zkcli.txt` is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.conformance.test_zkcli import read_steps
from tests.support.server import Server
from tests.support.shells import paddock_shell
from tests.support.zkcli import Transcript, run_shell

STEPS: Final = read_steps(Path(__file__).with_name("zkcli_39.txt"))
SECTIONS: Final = tuple(dict.fromkeys(step.section for step in STEPS))


@pytest.fixture(scope="module")
def said(server: Server) -> Transcript:
    """What our shell printed for all the steps."""
    shell = paddock_shell("-server", f"{server.host}:{server.port}")
    return run_shell(shell, [step.command for step in STEPS])


@pytest.mark.parametrize("section", SECTIONS)
def test_our_shell_prints_what_upstreams_did(said: Transcript, section: str) -> None:
    for step, output in zip(STEPS, said.outputs, strict=True):
        if step.section == section:
            assert output == step.output, f"after: {step.command}"


def test_our_shell_is_told_of_the_events_that_upstreams_was_told_of(said: Transcript) -> None:
    assert said.events == [event for step in STEPS for event in step.events]

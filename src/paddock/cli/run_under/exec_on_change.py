"""A command that is run for each change of a node: `paddock watch --exec`.

One runs at a time, and the next change waits for it: the stream of changes folds what happens
meanwhile, so nothing piles up, and the last state of every node always comes. The command ends with
us, as one under a lock does (`warden`).
"""

import json
import os
import tempfile
from typing import Final

import click

from paddock.cli.node_changes import NodeChange
from paddock.cli.run_under.child_process import ChildProcess
from paddock.cli.run_under.signals import Signals
from paddock.cli.run_under.terminal import Terminal
from paddock.cli.service import ServiceOptions

# What a command has to end in when we are killed.
_GRACE_S: Final = 1.0


class ExecOnChange:
    """What is done with changes."""

    def __init__(
        self, script: str, service: ServiceOptions, signals: Signals, *, as_json: bool
    ) -> None:
        self._script = script
        self._service = service
        self._signals = signals
        self._as_json = as_json
        # How the last command ended.
        self.status = 0

    async def run(self, change: NodeChange) -> None:
        """Run the command for a change; ends when it has, with all that it has started."""
        terminal = Terminal()
        with tempfile.TemporaryFile() as stdin:
            stdin.write(self._input(change))
            stdin.seek(0)
            command = ChildProcess(
                ["sh", "-c", self._script],
                self._environment(change),
                grace=_GRACE_S,
                group=os.getpgrp() if terminal.is_there else 0,
                stdin=stdin,
            )
        with self._signals.passed_on_to(command, shares_terminal=terminal.is_there):
            command.live()
            self.status = (await command.wait()).status
        terminal.close()
        if self.status:
            what = f"{change.path}: {change.kind}: the command ended with status {self.status}"
            click.echo(f"paddock: {what}", err=True)
        if self._signals.asked_to_end is not None:
            raise click.exceptions.Exit(128 + self._signals.asked_to_end)

    def _input(self, change: NodeChange) -> bytes:
        if self._as_json:
            return json.dumps(change.fields()).encode() + b"\n"
        return change.data or b""

    def _environment(self, change: NodeChange) -> dict[str, str]:
        variables = {
            **os.environ,
            "PADDOCK_SERVER": self._service.hosts,
            "PADDOCK_PATH": change.path,
            "PADDOCK_CHANGE": change.kind,
        }
        if change.stat is not None:
            variables["PADDOCK_VERSION"] = str(change.stat.version)
            variables["PADDOCK_ZXID"] = str(change.stat.mzxid)
        return variables

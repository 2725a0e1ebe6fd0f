"""`paddock watch`: a line for every change, as it comes, or a command that is run for it.

A change is `created`, `changed` (its data were written) or `deleted`. Before the first one, if that
is wanted, comes what is there already: `present`, or `absent` for a watched node that is not there.
"""

import json
import math
import os
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import click

from paddock.cli.arguments import JSON_LINES, WholeNumber, recursive_option
from paddock.cli.closed_stdout import until_stdout_closes
from paddock.cli.output import data_fields, preview, print_json, stat_fields, time_text
from paddock.cli.run_under.child_process import ChildProcess
from paddock.cli.run_under.signals import Signals, Terminal, run_with_signals
from paddock.cli.service import (
    NODE_PATH,
    ServiceOptions,
    run,
    service_options,
    tell_states,
)
from paddock.client.client import Client
from paddock.protocol.records import Stat

_COLOURS: Final = {"created": "green", "changed": "yellow", "deleted": "red"}
# What a command has to end in when we are killed.
_GRACE_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class NodeChange:
    """One thing that has happened to a node."""

    kind: str
    path: str
    data: bytes | None
    stat: Stat | None
    # When we heard of it, in milliseconds since 1970.
    time_ms: int

    def fields(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return {
            "time": self.time_ms,
            "change": self.kind,
            "path": self.path,
            **data_fields(self.data),
            **stat_fields(self.stat),
        }


async def node_changes(
    client: Client, path: str, *, recursive: bool = False, initially: bool = False
) -> AsyncGenerator[NodeChange, None]:
    """Yield the changes of a node, or of a tree, without end.

    Nothing is missed over lost connections, though changes in quick succession may come as one; it
    raises SessionExpiredError when the session is over.
    """
    # What is newer was written since we began, also if we meet it in the first pass.
    await client.sync(path)
    began = client.last_zxid
    # The zxid with which each node was created that is there, as far as we have told.
    born: dict[str, int] = {}
    async with aclosing(client.watch(path, recursive=recursive)) as changes:
        async for node, data, stat in changes:
            if stat is None:
                change = "absent" if born.pop(node, None) is None else "deleted"
            else:
                before, born[node] = born.get(node), stat.czxid
                if max(stat.czxid, stat.mzxid) <= began:
                    change = "present"
                elif before == stat.czxid or (before is None and stat.czxid <= began):
                    change = "changed"
                else:
                    change = "created"
            if initially or change not in ("present", "absent"):
                yield NodeChange(change, node, data, stat, time.time_ns() // 1_000_000)


@dataclass(slots=True)
class ExecOnChange:
    """What is done with changes.

    One command runs at a time, and the next change waits for it: the stream of changes folds what
    happens meanwhile, so nothing piles up, and the last state of every node always comes. The
    command ends with us, as one under a lock does (`warden`).
    """

    _script: str
    _service: ServiceOptions
    _signals: Signals
    _as_json: bool
    status: int = 0

    async def run(self, change: NodeChange) -> None:
        """Run the command for a change; ends when it has, with all that it has started."""
        terminal = Terminal()
        with tempfile.TemporaryFile() as stdin:
            in_json = json.dumps(change.fields()).encode() + b"\n"
            stdin.write(in_json if self._as_json else change.data or b"")
            stdin.seek(0)
            command = ChildProcess(
                ["sh", "-c", self._script],
                self._environment(change),
                grace=_GRACE_S,
                group=os.getpgrp() if terminal.is_there else 0,
                stdin=stdin,
            )
        with self._signals.passed_on_to(command, shares_terminal=terminal.is_there):
            # As long as we do.
            command.live_until(math.inf)
            self.status = (await command.wait()).status
        terminal.close()
        if self.status:
            what = f"{change.path}: {change.kind}: the command ended with status {self.status}"
            click.echo(f"paddock: {what}", err=True)
        if self._signals.asked_to_end is not None:
            raise click.exceptions.Exit(128 + self._signals.asked_to_end)

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


# What is done with each change; the next one waits until it is done.
Telling: TypeAlias = Callable[[NodeChange], Awaitable[None]]


@click.command()
@click.argument("path", type=NODE_PATH)
@recursive_option(help="Also everything below it.")
@click.option("--initial", is_flag=True, help="First say what is there now.")
@click.option(
    "--count", "-n", metavar="N", type=WholeNumber(min=1), help="End after so many lines."
)
@JSON_LINES
@click.option(
    "--exec",
    "script",
    metavar="COMMAND",
    help="Run this with sh for each change instead: PADDOCK_PATH and PADDOCK_CHANGE in its"
    " environment, the data on its stdin, or with --json the object.",
)
@service_options
def command(
    service: ServiceOptions,
    path: str,
    recursive: bool,
    initial: bool,
    count: int | None,
    as_json: bool,
    script: str | None,
) -> int:
    """Print a line when a node is created, changed or deleted.

    PATH need not be there yet. It goes on, over lost connections as well, until Ctrl-C ends it
    (status 130), or the session is over (status 1): then changes may have been missed. Changes in
    quick succession may come as one, with the last state.

    With --exec one command runs at a time. What changes meanwhile comes when it has ended, each
    node once, as it is by then. One that fails is named on stderr; after --count of them the status
    is that of the last one.
    """

    async def watching(client: Client, tell: Telling) -> None:
        tell_states(client)
        told = 0
        changes = node_changes(client, path, recursive=recursive, initially=initial)
        async with aclosing(changes):
            async for change in changes:
                await tell(change)
                told += 1
                if told == count:
                    return

    async def printing(client: Client) -> None:
        async with until_stdout_closes():
            await watching(client, _print_json if as_json else _print_line)

    if script is None:
        service.run(printing)
        return 0

    async def executing(signals: Signals) -> int:
        executor = ExecOnChange(script, service, signals, as_json)
        async with service.connect() as client:
            await watching(client, executor.run)
        return executor.status

    return run(lambda: run_with_signals(executing))


async def _print_json(change: NodeChange) -> None:
    print_json(change.fields())


async def _print_line(change: NodeChange) -> None:
    kind = click.style(f"{change.kind:7}", fg=_COLOURS.get(change.kind))
    line = f"{time_text(change.time_ms)}  {kind}  {change.path}"
    if change.stat is not None and change.data is not None:
        line += f"  version {change.stat.version}  {preview(change.data)}"
    click.echo(line.rstrip())

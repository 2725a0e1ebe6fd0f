"""`paddock watch`: a line for every change, as it comes, or a command that is run for it."""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import TypeAlias

import click

from paddock.cli.arguments import JSON_LINES, WholeNumber, recursive_option
from paddock.cli.describe import preview, print_json, time_text
from paddock.cli.node_changes import NodeChange, node_changes
from paddock.cli.run_under.exec_on_change import ExecOnChange
from paddock.cli.run_under.signals import Signals, run_with_signals
from paddock.cli.service import NODE_PATH, ServiceOptions, run, service_options, tell_states
from paddock.client.client import Client

# What is done with each change; the next one waits until it is done.
Telling: TypeAlias = Callable[[NodeChange], Awaitable[None]]

_COLOURS = {"created": "green", "changed": "yellow", "deleted": "red"}


@click.command()
@click.argument("path", type=NODE_PATH)
@recursive_option("Also everything below it.")
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
        await watch(client, path, tell, recursive=recursive, initial=initial, count=count)

    async def printing(client: Client) -> None:
        async with _until_stdout_closes():
            await watching(client, _print_json if as_json else _print_line)

    if script is None:
        service.run(printing)
        return 0

    async def executing(signals: Signals) -> int:
        executor = ExecOnChange(script, service, signals, as_json=as_json)
        async with service.connect() as client:
            await watching(client, executor.run)
        return executor.status

    return run(lambda: run_with_signals(executing))


async def watch(
    client: Client,
    path: str,
    tell: Telling,
    *,
    recursive: bool = False,
    initial: bool = False,
    count: int | None = None,
) -> None:
    """Report changes, `count` of them or without end."""
    told = 0
    async with aclosing(
        node_changes(client, path, recursive=recursive, initially=initial)
    ) as stream:
        async for change in stream:
            await tell(change)
            told += 1
            if told == count:
                return


@asynccontextmanager
async def _until_stdout_closes() -> AsyncIterator[None]:
    """Raise BrokenPipeError in this scope when stdout is a pipe and its reader has gone.

    For commands that may print nothing for hours.
    """
    number = _pipe()
    if number is None:
        yield
        return
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    has_left = False

    def leave() -> None:
        nonlocal has_left
        has_left = True
        loop.remove_reader(number)
        task.cancel()

    # Nothing can be read from our end of a pipe, so this is called for an error, and there is one.
    loop.add_reader(number, leave)
    try:
        yield
    except asyncio.CancelledError:
        if has_left and task.uncancel() == 0:
            raise BrokenPipeError from None
        raise
    finally:
        loop.remove_reader(number)


def _pipe() -> int | None:
    """Return the file descriptor of stdout if it is a pipe."""
    try:
        number = sys.stdout.fileno()
        return number if stat.S_ISFIFO(os.fstat(number).st_mode) else None
    except (OSError, ValueError):
        return None


async def _print_json(change: NodeChange) -> None:
    print_json(change.fields())


async def _print_line(change: NodeChange) -> None:
    kind = click.style(f"{change.kind:7}", fg=_COLOURS.get(change.kind))
    line = f"{time_text(change.time_ms)}  {kind}  {change.path}"
    if change.stat is not None and change.data is not None:
        line += f"  version {change.stat.version}  {preview(change.data)}"
    click.echo(line.rstrip())

"""`paddock export`: write a tree of a service to a file, or to stdout."""

import asyncio
import contextlib
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any, Final

import click

from paddock.cli.arguments import PATH_OR_DASH, check_output_file, output_file
from paddock.cli.output import CannotBeDone, counted, is_watched, line_about, progress
from paddock.cli.past.options import at_options
from paddock.cli.service import NODE_PATH, Past, ServiceOptions, service_options
from paddock.cli.transfer.tree_reader import ReadOptions, TreeReader, watched
from paddock.cli.transfer.writing import LineWriter, PartWriter, part_of, part_writer
from paddock.client.client import Client
from paddock.client.states import SessionState
from paddock.errors import PaddockError, RequestError

_ON: Final = "what was read is kept, and --resume goes on"


@click.command("export")
@click.argument("path", type=NODE_PATH)
@click.argument("file", type=PATH_OR_DASH)
@click.option("--overwrite", is_flag=True, help="Replace a FILE that exists.")
@click.option("--resume", is_flag=True, help="Go on with an export that was interrupted.")
@click.option("--no-acls", is_flag=True, help="Leave out who may do what.")
@click.option("--keep-ephemerals", is_flag=True, help="Keep ephemeral nodes, as persistent ones.")
@click.option(
    "--skip-unreadable", is_flag=True, help="Leave out what we may not read, with all below it."
)
@click.option("--json", "as_json", is_flag=True, help="Say what was done as JSON.")
@at_options
@service_options
def export(
    service: ServiceOptions,
    past: Past | None,
    path: str,
    file: Path,
    overwrite: bool,
    resume: bool,
    no_acls: bool,
    keep_ephemerals: bool,
    skip_unreadable: bool,
    as_json: bool,
) -> None:
    """Write the tree at PATH, with data and ACLs, to FILE, or to stdout if that is "-".

    A FILE that ends with .gz is compressed. Ephemeral nodes are left out, and so is what a service
    keeps for itself below /zookeeper, unless that is PATH. What is written meanwhile may be in the
    export or not; that something was is told.
    """
    service, root = dataclasses.replace(service, past=past).resolved(path)
    target = output_file(file)
    options = ReadOptions(
        acls=not no_acls, keeps_ephemerals=keep_ephemerals, skips_unreadable=skip_unreadable
    )
    if target is None:
        if resume:
            raise click.UsageError("what has gone to stdout cannot be resumed")
    else:
        check_output_file(target, overwrite)
        if part_of(target).exists() and not (resume or overwrite):
            raise CannotBeDone(
                f"{part_of(target)}: an export was interrupted; --resume goes on with it,"
                " --overwrite begins anew"
            )
    request = {"path": root, "acls": options.acls, "ephemerals": options.keeps_ephemerals}

    async def exporting(client: Client) -> dict[str, Any]:
        if target is None:
            lines = LineWriter(sys.stdout.buffer, acls=options.acls)
            return await _export(client, root, options, lines)
        with part_writer(target, request, resume=resume) as part:
            try:
                return await _export(client, root, options, part)
            except asyncio.CancelledError:
                if part.nodes:
                    click.echo(f"paddock: interrupted; {_ON}", err=True)
                raise
            except PaddockError as error:
                raise CannotBeDone(line_about(error, _ON if part.nodes else "")) from None

    _say(target, service.run(exporting), as_json)


async def _export(
    client: Client, root: str, options: ReadOptions, writer: LineWriter | PartWriter
) -> dict[str, Any]:
    """Export a tree; return the fields of the summary."""
    reader = TreeReader(client, root, options)
    resumed = writer.nodes
    if client.state is not SessionState.CONNECTED_READ_ONLY:
        # A server of an ensemble may be behind what others have written.
        await client.sync(root)
    async with watched(client, root) as changes:
        total = None
        if is_watched():
            # Servers before 3.6 do not count.
            with contextlib.suppress(RequestError):
                total = 1 + await client.count_descendants(root)
        with progress(f"export {root}", total) as advance:
            advance(resumed)
            async for node in reader.nodes(after=writer.last):
                writer.write(node)
                advance(1)
        writer.finish()
        said = changes.say(root, was_interrupted=bool(resumed))
    return {
        "nodes": writer.nodes,
        "left_out": dataclasses.asdict(reader.left_out),
        "resumed": resumed > 0,
        "warning": said or None,
    }


def _say(target: Path | None, done: dict[str, Any], as_json: bool) -> None:
    """Print a summary; to stderr if stdout has the export."""
    to_stdout = target is None
    name = str(target or "stdout")
    if done["warning"]:
        click.echo(f"paddock: warning: {done['warning']}", err=True)
    if as_json:
        click.echo(json.dumps({"file": name, **done}), err=to_stdout)
        return
    since = " since it was resumed" if done["resumed"] else ""
    left_out = "".join(
        f", {counted(number, f'{kind} node')} left out{since}"
        for kind, number in done["left_out"].items()
        if number
    )
    click.echo(f"{name}: {counted(done['nodes'], 'node')}{left_out}", err=to_stdout)

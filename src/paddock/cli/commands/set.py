"""`paddock set`: write the data of a node that is there."""

from pathlib import Path

import click

from paddock.cli.data import given_data
from paddock.cli.describe import print_json, stat_fields
from paddock.cli.guard import GUARD, committed, guarded
from paddock.cli.node_path import NODE_PATH
from paddock.cli.options import DATA_FILE, VERSION
from paddock.cli.service import ServiceOptions, service_options
from paddock.client.client import Client


@click.command()
@click.argument("path", type=NODE_PATH)
@click.argument("data", required=False)
@DATA_FILE
@VERSION
@GUARD
@click.option("--json", "as_json", is_flag=True, help="Say what became of the node, in JSON.")
@service_options
def command(
    service: ServiceOptions,
    path: str,
    data: str | None,
    file: Path | None,
    version: int,
    guard: str | None,
    as_json: bool,
) -> None:
    """Replace the data of a node.

    "-" as DATA stands for stdin. The bytes are taken as they are: what `echo` says has a line break
    at its end, what `printf` says has not. DATA that begins with a hyphen stands behind "--".
    """
    content = given_data(data, file)
    if content is None:
        raise click.UsageError('expected DATA, "-" for stdin, or --file')

    async def setting(client: Client) -> None:
        if guard is None:
            stat = await client.set(path, content, version=version)
        else:
            write = guarded(client, guard).set(path, content, version=version)
            stat = await committed(write, guard)
        if as_json:
            print_json({"path": path, **stat_fields(stat)})

    service.run(setting)

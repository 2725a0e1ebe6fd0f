"""`paddock get`: the data of a node, raw in a pipe, escaped on a terminal."""

import sys

import click

from paddock.cli.describe import data_fields, print_json, shown_data, stat_fields, stat_lines
from paddock.cli.node_path import NODE_PATH
from paddock.cli.service import ServiceOptions, service_options
from paddock.client.client import Client


@click.command()
@click.argument("path", type=NODE_PATH)
@click.option("--stat", "with_stat", is_flag=True, help="Behind the data, what is known of them.")
@click.option("--json", "as_json", is_flag=True, help="Data and stat as JSON, for programs.")
@service_options
def command(service: ServiceOptions, path: str, with_stat: bool, as_json: bool) -> None:
    """Write the data of a node to stdout.

    Into a pipe or a file go the bytes as they are, and nothing else: no line break is added. With
    --json, "encoding" says whether "data" is the text ("utf-8") or "base64".
    """

    async def getting(client: Client) -> None:
        data, stat = await client.get(path)
        if as_json:
            print_json({"path": path, **data_fields(data), **stat_fields(stat)})
            return
        if sys.stdout.isatty():
            sys.stdout.write(shown_data(data))
        else:
            sys.stdout.buffer.write(data)
            if with_stat and data and not data.endswith(b"\n"):
                sys.stdout.buffer.write(b"\n")
            sys.stdout.buffer.flush()
        if with_stat:
            print("\n".join(stat_lines(stat)))

    service.run(getting)

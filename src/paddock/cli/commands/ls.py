"""`paddock ls`: the children of a node, or everything below it."""

from contextlib import aclosing

import click

from paddock.cli.describe import long_line, print_json, stat_fields, tell_problem
from paddock.cli.node_path import NODE_PATH
from paddock.cli.options import JSON_LINES, recursive_option
from paddock.cli.service import ServiceOptions, service_options
from paddock.client.client import Client
from paddock.client.operations.walk import WalkedNode


@click.command()
@click.argument("path", default="/", type=NODE_PATH)
@click.option(
    "--long",
    "-l",
    "is_long",
    is_flag=True,
    help="With version, bytes, number of children, time of the last write, owner.",
)
@recursive_option("Everything below it, as whole paths.")
@JSON_LINES
@service_options
def command(
    service: ServiceOptions, path: str, is_long: bool, recursive: bool, as_json: bool
) -> int:
    """List the children of a node by name, or with -R everything below it.

    PATH is the root unless it is given. Status 1 says that something could not be read.
    """

    def show(found: WalkedNode) -> None:
        name = found.path if recursive else found.name
        if as_json:
            print_json({"path": found.path, "name": found.name, **stat_fields(found.stat)})
        else:
            print(long_line(found.stat, name) if is_long else name)

    async def listing(client: Client) -> int:
        if not (recursive or is_long or as_json):
            # The plain names take one request, however many they are.
            for name in sorted(await client.children(path)):
                print(name)
            return 0
        status = 0
        async with aclosing(client.walk(path, depth=None if recursive else 1)) as nodes:
            async for found in nodes:
                if found.error is not None:
                    status = tell_problem(found.error)
                if found.depth:
                    show(found)
        return status

    return service.run(listing)

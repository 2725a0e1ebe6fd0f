"""`paddock stat`: what the service keeps about a node beside its data."""

import click

from paddock.cli.describe import print_json, stat_fields, stat_lines
from paddock.cli.node_path import NODE_PATH
from paddock.cli.service import ServiceOptions, service_options
from paddock.client.client import Client
from paddock.errors import NoNodeError
from paddock.protocol.acl import format_acl


@click.command()
@click.argument("path", type=NODE_PATH)
@click.option("--acl", "with_acl", is_flag=True, help="Also say who may do what with it.")
@click.option("--json", "as_json", is_flag=True, help="Say it in JSON, for programs.")
@service_options
def command(service: ServiceOptions, path: str, with_acl: bool, as_json: bool) -> None:
    """Print the stat of a node: times, versions, size, owner.

    It needs no permission of the node, but --acl does.
    """

    async def looking(client: Client) -> None:
        stat = await client.exists(path)
        if stat is None:
            raise NoNodeError("stat", path)
        acl: list[str] = []
        if with_acl:
            # The stat that comes with it is of the same moment.
            entries, stat = await client.get_acl(path)
            acl = [format_acl(one) for one in entries]
        if as_json:
            fields = {"path": path, **stat_fields(stat)}
            print_json({**fields, "acl": acl} if with_acl else fields)
            return
        print("\n".join([*stat_lines(stat), *(f"{'acl':15}  {one}" for one in acl)]))

    service.run(looking)

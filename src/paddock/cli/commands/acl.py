"""`paddock acl`: show and replace the ACL of a node."""

import functools
from contextlib import aclosing

import click

from paddock.cli.arguments import acl_hint, given_acl, recursive_option, version_option
from paddock.cli.commands.writing import each
from paddock.cli.output import print_json, stat_fields, tell_problem
from paddock.cli.service import NODE_PATH, ServiceOptions, client_command, service_options
from paddock.client.client import Client
from paddock.errors import RequestError
from paddock.protocol.acl import format_acl


@click.group()
def acl() -> None:
    """Show or replace the ACL of a node: who may do what with it."""


@acl.command("get")
@click.argument("path", type=NODE_PATH)
@click.option("--json", "as_json", is_flag=True, help="ACL and stat as JSON, for programs.")
@client_command
async def get(client: Client, path: str, as_json: bool) -> None:
    """Print the ACL of a node, one SCHEME:ID:PERMISSIONS a line.

    Digests are masked unless we may ADMIN the node.
    """
    entries, stat = await client.get_acl(path)
    shown = [format_acl(one) for one in entries]
    if as_json:
        print_json({"path": path, "acl": shown, **stat_fields(stat)})
    else:
        print("\n".join(shown))


@acl.command("set")
@click.argument("path", type=NODE_PATH)
@click.argument("entries", metavar="ACL...", nargs=-1, required=True)
@recursive_option(help="Also the ACLs of everything below it, the deepest nodes first.")
@version_option(help="Only if the ACL has this version: `aversion` in the stat.")
@click.option("--json", "as_json", is_flag=True, help="An object for each node, with its stat.")
@service_options
def set_(
    service: ServiceOptions,
    path: str,
    entries: tuple[str, ...],
    recursive: bool,
    version: int,
    as_json: bool,
) -> int:
    """Replace the ACL of a node by one or more SCHEME:ID:PERMISSIONS.

    Permissions are c (create), d (delete), r (read), w (write), a (admin), such as
    world:anyone:r, auth::cdrwa or digest:user:password:cdrwa. A password is stored as its hash.
    """
    wanted = [given_acl(one, service.has_identity) for one in entries]
    if recursive and version >= 0:
        raise click.UsageError("--version is of one node, and --recursive changes many")

    async def setting(client: Client) -> int:
        status = 0
        paths = [path]
        if recursive:
            async with aclosing(client.walk(path)) as nodes:
                paths = [node.path async for node in nodes]
            paths.reverse()
        ask = functools.partial(client.set_acl, acl=wanted, version=version)
        async for one, answer in each(paths, ask):
            if isinstance(answer, RequestError):
                status = tell_problem(answer, acl_hint(answer, wanted))
            elif as_json:
                print_json({"path": one, **stat_fields(answer)})
        return status

    return service.run(setting)

"""`paddock acl`: show and replace the ACL of a node."""

import asyncio
from contextlib import aclosing

import click

from paddock.cli.arguments import given_acl, recursive_option, version_option
from paddock.cli.describe import print_json, stat_fields, tell_problem
from paddock.cli.service import NODE_PATH, ServiceOptions, service_options
from paddock.client.client import Client
from paddock.errors import RequestError
from paddock.protocol.acl import format_acl

# How many requests are in flight.
_BATCH = 256


@click.group()
def acl() -> None:
    """Show or replace the ACL of a node: who may do what with it."""


@acl.command("get")
@click.argument("path", type=NODE_PATH)
@click.option("--json", "as_json", is_flag=True, help="ACL and stat as JSON, for programs.")
@service_options
def get(service: ServiceOptions, path: str, as_json: bool) -> None:
    """Print the ACL of a node, one SCHEME:ID:PERMISSIONS a line.

    Digests are masked unless we may ADMIN the node.
    """

    async def getting(client: Client) -> None:
        entries, stat = await client.get_acl(path)
        shown = [format_acl(one) for one in entries]
        if as_json:
            print_json({"path": path, "acl": shown, **stat_fields(stat)})
        else:
            print("\n".join(shown))

    service.run(getting)


@acl.command("set")
@click.argument("path", type=NODE_PATH)
@click.argument("entries", metavar="ACL...", nargs=-1, required=True)
@recursive_option("Also the ACLs of everything below it, the deepest nodes first.")
@version_option("Only if the ACL has this version: `aversion` in the stat.")
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
    wanted = [given_acl(one) for one in entries]
    if recursive and version >= 0:
        raise click.UsageError("--version is of one node, and --recursive changes many")

    async def setting(client: Client) -> int:
        status = 0
        paths = [path]
        if recursive:
            async with aclosing(client.walk(path)) as nodes:
                paths = [node.path async for node in nodes]
            paths.reverse()
        for start in range(0, len(paths), _BATCH):
            some = paths[start : start + _BATCH]
            answers = await asyncio.gather(
                *(client.set_acl(one, wanted, version=version) for one in some),
                return_exceptions=True,
            )
            for one, answer in zip(some, answers, strict=True):
                if isinstance(answer, RequestError):
                    status = tell_problem(answer)
                elif isinstance(answer, BaseException):
                    raise answer
                elif as_json:
                    print_json({"path": one, **stat_fields(answer)})
        return status

    return service.run(setting)

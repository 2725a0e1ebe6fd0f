"""`paddock delete`: delete nodes or trees, without a question."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import aclosing

import click

from paddock.cli.describe import print_json, tell_problem
from paddock.cli.guard import GUARD, committed, guarded
from paddock.cli.node_path import NODE_PATH
from paddock.cli.options import VERSION, recursive_option
from paddock.cli.service import ServiceOptions, service_options
from paddock.client.client import Client
from paddock.client.session.hosts import parse_hosts
from paddock.errors import NoNodeError, NotEmptyError, RequestError

# How many deletes are under way at once.
_BATCH = 256


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=NODE_PATH)
@recursive_option("With everything below it.")
@VERSION
@GUARD
@click.option("--missing-ok", is_flag=True, help="That a node is not there is fine.")
@click.option("--dry-run", is_flag=True, help="Delete nothing, print what would go.")
@click.option("--json", "as_json", is_flag=True, help="An object for each PATH, with the count.")
@service_options
def command(
    service: ServiceOptions,
    paths: tuple[str, ...],
    recursive: bool,
    version: int,
    guard: str | None,
    missing_ok: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Delete nodes, in the order in which they are given.

    A node with children is refused, unless with --recursive. A node that cannot be deleted is named
    on stderr, the others go, and the status is 1.
    """
    _check(service, paths, recursive, version)
    if recursive and guard is not None:
        raise click.UsageError("--guard is of one write, and --recursive makes many")

    async def deleting(client: Client) -> int:
        status = 0
        if dry_run:
            outcomes = _would_go(client, paths, recursive, silent=as_json)
        elif recursive:
            outcomes = _trees(client, paths)
        else:
            outcomes = _nodes(client, paths, version, guard)
        async for path, outcome in outcomes:
            if isinstance(outcome, NoNodeError) and missing_ok:
                outcome = 0
            if isinstance(outcome, RequestError):
                can_be_recursive = isinstance(outcome, NotEmptyError) and guard is None
                hint = "--recursive deletes them as well" if can_be_recursive else ""
                status = tell_problem(outcome, hint)
            elif as_json:
                print_json({"path": path, "deleted": outcome})
        return status

    return service.run(deleting)


def _check(service: ServiceOptions, paths: tuple[str, ...], recursive: bool, version: int) -> None:
    """Refuse all of them before any of them is deleted."""
    kept = {"/"} if parse_hosts(service.hosts)[1] else {"/", "/zookeeper"}
    for path in paths:
        if path in kept:
            raise click.UsageError(f"{path} is not deleted; name what is below it")
    if recursive and version >= 0:
        raise click.UsageError("--version is of one node, and --recursive deletes many")


async def _nodes(
    client: Client, paths: tuple[str, ...], version: int, guard: str | None
) -> AsyncIterator[tuple[str, int | RequestError]]:
    def delete(path: str) -> Awaitable[None]:
        if guard is None:
            return client.delete(path, version=version)
        return committed(guarded(client, guard).delete(path, version=version), guard)

    for start in range(0, len(paths), _BATCH):
        some = paths[start : start + _BATCH]
        answers = await asyncio.gather(*(delete(path) for path in some), return_exceptions=True)
        for path, answer in zip(some, answers, strict=True):
            if answer is not None and not isinstance(answer, RequestError):
                raise answer
            yield path, 1 if answer is None else answer


async def _trees(
    client: Client, paths: tuple[str, ...]
) -> AsyncIterator[tuple[str, int | RequestError]]:
    for path in paths:
        try:
            if await client.exists(path) is None:
                yield path, NoNodeError("delete", path)
            else:
                yield path, await client.delete_tree(path)
        except RequestError as error:
            yield path, error


async def _would_go(
    client: Client, paths: tuple[str, ...], recursive: bool, *, silent: bool
) -> AsyncIterator[tuple[str, int | RequestError]]:
    for path in paths:
        count = 0
        try:
            async with aclosing(client.walk(path, depth=None if recursive else 0)) as nodes:
                async for found in nodes:
                    if found.omitted:
                        raise NotEmptyError("delete", path)
                    if found.error is not None:
                        raise found.error
                    count += 1
                    if not silent:
                        print(found.path)
            yield path, count
        except RequestError as error:
            yield path, error

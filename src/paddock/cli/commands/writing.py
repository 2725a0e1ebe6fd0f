"""`paddock set`, `create` and `delete`, and writes that only succeed while something is held.

    paddock lock /locks/report -- sh -c 'paddock set /report done --guard "$PADDOCK_GUARD"'

The guard is the node of the grant. Its name is never used twice, and the service checks it and
writes in one transaction. A write without a guard may come late: see `paddock.recipes.locks.grant`.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeVar

import click

from paddock.cli.arguments import (
    DATA_FILE,
    VERSION,
    NumberRange,
    acl_hint,
    given_acl,
    given_data,
    recursive_option,
)
from paddock.cli.output import CannotBeDone, line_about, print_json, stat_fields, tell_problem
from paddock.cli.service import NODE_PATH, ServiceOptions, service_options, tell_states
from paddock.client.client import Client
from paddock.client.session.hosts import parse_hosts
from paddock.client.states import SessionState
from paddock.client.transaction import Transaction
from paddock.errors import (
    InvalidACLError,
    NoNodeError,
    NotEmptyError,
    RequestError,
    SessionExpiredError,
    TransactionFailedError,
)
from paddock.protocol.acl import OPEN
from paddock.protocol.records import Stat

T = TypeVar("T")

GUARD = click.option(
    "--guard",
    metavar="NODE",
    type=NODE_PATH,
    help="Only while this node is there, as $PADDOCK_GUARD under `paddock lock`; else status 76.",
)

# The status if what was held is held no more.
_LOST = 76
_BATCH = 256


@click.command()
@click.argument("path", type=NODE_PATH)
@click.argument("data", required=False)
@DATA_FILE
@VERSION
@GUARD
@click.option("--json", "as_json", is_flag=True, help="Say what became of the node, in JSON.")
@service_options
def set_(
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
            write = client.transaction().check(guard).set(path, content, version=version)
            stat = await committed(write, guard)
        if as_json:
            print_json({"path": path, **stat_fields(stat)})

    service.run(setting)


@click.command()
@click.argument("path", type=NODE_PATH)
@click.argument("data", required=False)
@DATA_FILE
@click.option("--parents", "-p", is_flag=True, help="Make the nodes above it, if they are missing.")
@click.option("--sequential", is_flag=True, help="Have the service append a number to the name.")
@click.option("--container", is_flag=True, help="It goes when its last child has gone.")
@click.option(
    "--ttl",
    metavar="SECONDS",
    type=NumberRange(min=0.001, max=2**40 // 1000),
    help="It goes when it was not written for so long and has no children.",
)
@click.option(
    "--ephemeral",
    is_flag=True,
    help="Hold the node, and run until Ctrl-C or SIGTERM: it goes when the command ends.",
)
@click.option(
    "--acl",
    metavar="SCHEME:ID:PERMISSIONS",
    multiple=True,
    help="Who may do what, such as world:anyone:r or auth::cdrwa; may be given several times."
    "  [default: world:anyone:cdrwa]",
)
@GUARD
@click.option("--json", "as_json", is_flag=True, help="Path and stat as JSON, for programs.")
@service_options
def create(
    service: ServiceOptions,
    path: str,
    data: str | None,
    file: Path | None,
    parents: bool,
    sequential: bool,
    container: bool,
    ttl: float | None,
    ephemeral: bool,
    acl: tuple[str, ...],
    guard: str | None,
    as_json: bool,
) -> None:
    """Create a node and print its path, which is a new one if it is sequential.

    It has no data unless there are DATA, "-" for stdin, or --file.
    """
    if guard is not None and parents:
        raise click.UsageError("--guard is for one node, and --parents makes several")
    if ephemeral + container + (ttl is not None) > 1 or (container and sequential):
        raise click.UsageError(
            "--ephemeral, --container and --ttl exclude each other; --container excludes"
            " --sequential"
        )
    kind: dict[str, Any] = {
        "acl": [given_acl(one, service.has_identity) for one in acl] or OPEN,
        "ephemeral": ephemeral,
        "sequential": sequential,
        "container": container,
        "ttl": ttl,
    }
    content = given_data(data, file) or b""

    async def creating(client: Client) -> None:
        # Before the node can be seen, and a signal sent.
        over = _end(client) if ephemeral else None
        stat: Stat | None
        if guard is None:
            try:
                made, stat = await client.create_with_stat(
                    path, content, make_parents=parents, **kind
                )
            except NoNodeError as error:
                raise CannotBeDone(line_about(error, "--parents creates it")) from None
            except InvalidACLError as error:
                raise CannotBeDone(line_about(error, acl_hint(error, kind["acl"]))) from None
        else:
            write = client.transaction().check(guard).create(path, content, **kind)
            made = await committed(write, guard)
            # It may be gone already.
            stat = await client.exists(made) if as_json else None
        if as_json:
            print_json({"path": made, **stat_fields(stat)})
        else:
            click.echo(made)
        if over is not None:
            tell_states(client)
            await over.wait()
            if client.state.is_final:
                raise SessionExpiredError("hold", made)

    service.run(creating)


def _end(client: Client) -> asyncio.Event:
    """Return what is set when we are told to end, or the session is over."""
    over = asyncio.Event()

    def listen(state: SessionState) -> None:
        if state.is_final:
            over.set()

    client.add_listener(listen)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    return over


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=NODE_PATH)
@recursive_option(help="With everything below it.")
@VERSION
@GUARD
@click.option("--missing-ok", is_flag=True, help="That a node is not there is fine.")
@click.option("--dry-run", is_flag=True, help="Delete nothing, print what would go.")
@click.option("--json", "as_json", is_flag=True, help="An object for each PATH, with the count.")
@service_options
def delete(
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
    # All of them are refused before any of them is deleted.
    kept = {"/"} if parse_hosts(service.hosts)[1] else {"/", "/zookeeper"}
    for path in paths:
        if path in kept:
            raise click.UsageError(f"{path} is not deleted; name what is below it")
    if recursive and version >= 0:
        raise click.UsageError("--version is of one node, and --recursive deletes many")
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


async def _nodes(
    client: Client, paths: tuple[str, ...], version: int, guard: str | None
) -> AsyncIterator[tuple[str, int | RequestError]]:
    def delete(path: str) -> Awaitable[None]:
        if guard is None:
            return client.delete(path, version=version)
        return committed(client.transaction().check(guard).delete(path, version=version), guard)

    async for path, answer in each(paths, delete):
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


async def each(
    paths: Sequence[str], ask: Callable[[str], Awaitable[T]]
) -> AsyncIterator[tuple[str, T | RequestError]]:
    """Make a request for each path, many at once; yield the results, or why one was refused."""
    for start in range(0, len(paths), _BATCH):
        some = paths[start : start + _BATCH]
        answers = await asyncio.gather(*map(ask, some), return_exceptions=True)
        for path, answer in zip(some, answers, strict=True):
            if isinstance(answer, BaseException) and not isinstance(answer, RequestError):
                raise answer
            yield path, answer


async def committed(transaction: Transaction, guard: str) -> Any:
    """Commit a check of the guard and a write; return its result."""
    try:
        return (await transaction.commit())[1]
    except TransactionFailedError as error:
        if isinstance(error.results[0], NoNodeError):
            raise CannotBeDone(f"{guard}: held no more, so nothing was written", _LOST) from None
        raise error.cause or error from None

"""`paddock lock`: a command that runs while a lock is held."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import click

from paddock.cli.node_path import NODE_PATH
from paddock.cli.options import CONTENDER_NAME, GRACE
from paddock.cli.quantities import NumberRange
from paddock.cli.run_under.run_while_held import Plan, check, execute, name_data
from paddock.cli.service import ServiceOptions, service_options
from paddock.client.client import Client
from paddock.recipes.locks.grant import Grant
from paddock.recipes.locks.lock import Lock


@click.command()
@click.argument("path", type=NODE_PATH)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option(
    "--wait",
    metavar="SECONDS",
    type=NumberRange(min=0, min_open=True),
    help="How long to wait for the lock at most; without end unless given.",
)
@click.option("--no-wait", is_flag=True, help="Do not wait if the lock is held.")
@GRACE
@CONTENDER_NAME
@service_options
def command(
    service: ServiceOptions,
    path: str,
    command: tuple[str, ...],
    wait: float | None,
    no_wait: bool,
    grace: float | None,
    name: str | None,
) -> int:
    """Run a command while holding the lock at PATH, and release it then.

    When it is not sure any more that we hold the lock, the command gets SIGTERM and then SIGKILL,
    with all its children, before another contender can have the lock. In its environment are
    PADDOCK_TOKEN, a number that is larger for every later holder, and PADDOCK_GUARD, for the
    --guard of other commands. Put -- before a command that has options.

    The status is the command's; 75 if the lock was not obtained, 76 if it was lost.
    """
    if no_wait and wait is not None:
        raise click.UsageError("--wait and --no-wait exclude each other")
    check(command, grace, service)

    @asynccontextmanager
    async def contend(client: Client) -> AsyncIterator[Grant | None]:
        lock = Lock(client, path, data=name_data(name))
        grant = await lock.try_acquire() if no_wait else await lock.acquire()
        try:
            yield grant
        finally:
            if grant is not None:
                await grant.release()

    return execute(
        Plan(service, contend, command, path, "PADDOCK_LOCK_PATH", "the lock", wait, grace)
    )

"""`paddock lock` and `paddock elect`: a command that runs while we hold a lock, or lead."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import click

from paddock.cli.arguments import NumberRange
from paddock.cli.run_under.run_while_held import Plan, check, execute, name_data
from paddock.cli.service import NODE_PATH, ServiceOptions, service_options
from paddock.client.client import Client
from paddock.recipes.locks.election import Election
from paddock.recipes.locks.grant import Grant
from paddock.recipes.locks.lock import Lock

_GRACE = click.option(
    "--grace",
    metavar="SECONDS",
    type=NumberRange(min=0),
    help="How long before its time is over the command is asked to end (SIGTERM), before it is"
    " killed; a sixth of the session timeout unless given.",
)
_NAME = click.option("--name", help="Who we are, for those who look; host:pid unless given.")


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
@_GRACE
@_NAME
@service_options
def lock(
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
        contended = Lock(client, path, data=name_data(name))
        grant = await (contended.try_acquire() if no_wait else contended.acquire())
        try:
            yield grant
        finally:
            if grant is not None:
                await grant.release()

    return execute(
        Plan(service, contend, command, path, "PADDOCK_LOCK_PATH", "the lock", wait, grace)
    )


@click.command()
@click.argument("path", type=NODE_PATH)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option(
    "--restart",
    is_flag=True,
    help="When the command has ended by itself, step down and stand again, for another to lead.",
)
@_GRACE
@_NAME
@service_options
def elect(
    service: ServiceOptions,
    path: str,
    command: tuple[str, ...],
    restart: bool,
    grace: float | None,
    name: str | None,
) -> int:
    """Stand for election at PATH, and run a command while we lead.

    When it is not sure any more that we lead, the command gets SIGTERM and then SIGKILL, with all
    that it has started, in time before another can lead; then we stand again. In its
    environment are PADDOCK_TOKEN, a number that is larger for every later leader, and
    PADDOCK_GUARD, for the --guard of other commands. Put -- before a command that has options.

    The status is the command's, when it has ended by itself.
    """
    check(command, grace, service)

    @asynccontextmanager
    async def contend(client: Client) -> AsyncIterator[Grant]:
        async with Election(client, path, data=name_data(name)) as election:
            yield await election.wait_leader()

    return execute(
        Plan(
            *(service, contend, command, path, "PADDOCK_ELECTION_PATH", "the leadership"),
            grace=grace,
            again_if_lost=True,
            again=restart,
        )
    )

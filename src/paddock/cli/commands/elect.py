"""`paddock elect`: a command that runs while we lead."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import click

from paddock.cli.node_path import NODE_PATH
from paddock.cli.options import CONTENDER_NAME, GRACE
from paddock.cli.run_under.run_while_held import Plan, check, execute, name_data
from paddock.cli.service import ServiceOptions, service_options
from paddock.client.client import Client
from paddock.recipes.locks.election import Election
from paddock.recipes.locks.grant import Grant


@click.command()
@click.argument("path", type=NODE_PATH)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option(
    "--restart",
    is_flag=True,
    help="When the command has ended by itself, step down and stand again, for another to lead.",
)
@GRACE
@CONTENDER_NAME
@service_options
def command(
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

"""`paddock create`: create a node and print its path; hold it if it is ephemeral."""

import asyncio
import signal
from pathlib import Path
from typing import TypedDict

import click

from paddock.cli.acls import given_acl
from paddock.cli.data import given_data
from paddock.cli.describe import print_json, stat_fields
from paddock.cli.failure import CannotBeDone, line_about
from paddock.cli.guard import GUARD, committed, guarded
from paddock.cli.node_path import NODE_PATH
from paddock.cli.options import DATA_FILE
from paddock.cli.quantities import NumberRange
from paddock.cli.service import ServiceOptions, service_options, tell_states
from paddock.client.client import Client
from paddock.client.states import SessionState
from paddock.errors import NoNodeError, SessionExpiredError
from paddock.protocol.acl import OPEN
from paddock.protocol.records import Stat


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
    type=NumberRange(min=0, min_open=True),
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
def command(
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
    allowed = [given_acl(one) for one in acl] or OPEN
    content = given_data(data, file) or b""

    async def creating(client: Client) -> None:
        # Before the node can be seen, and a signal sent.
        hold = _Hold(client) if ephemeral else None
        stat: Stat | None
        kind = _Kind(ephemeral=ephemeral, sequential=sequential, container=container, ttl=ttl)
        if guard is None:
            try:
                made, stat = await client.create_with_stat(
                    path, content, acl=allowed, make_parents=parents, **kind
                )
            except NoNodeError as error:
                raise CannotBeDone(f"{line_about(error)}; --parents creates it") from None
        else:
            write = guarded(client, guard).create(path, content, acl=allowed, **kind)
            made = await committed(write, guard)
            # It may be gone already.
            stat = await client.exists(made) if as_json else None
        if as_json:
            print_json({"path": made, **stat_fields(stat)})
        else:
            click.echo(made)
        if hold is not None:
            tell_states(client)
            await hold.wait(made)

    service.run(creating)


class _Kind(TypedDict):
    """What sort of node is made."""

    ephemeral: bool
    sequential: bool
    container: bool
    ttl: float | None


class _Hold:
    """What keeps an ephemeral node: we stay until we are told to end, or the session is over."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._over = asyncio.Event()
        client.add_listener(self._listen)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._over.set)

    def _listen(self, state: SessionState) -> None:
        if state.is_final:
            self._over.set()

    async def wait(self, path: str) -> None:
        await self._over.wait()
        if self._client.state.is_final:
            raise SessionExpiredError("hold", path)

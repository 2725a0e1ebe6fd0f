"""`paddock cluster`: several servers that share a log.

`up` runs a cluster to try; the other commands ask etcd itself, whether servers run or not.
"""

import gc
import secrets
from pathlib import Path
from typing import Any

import click

from paddock.cli.arguments import PATH, NumberRange, WholeNumber, check_is_folder
from paddock.cli.cluster.log_options import SharedLogOptions, check_grpc, shared_log_options
from paddock.cli.output import counted, one_line, own_command, print_json
from paddock.cli.service import run
from paddock.server.config.log_url import parse_endpoint
from paddock.server.config.parsers import ExplainedError


class Address(click.types.StringParamType):
    """Where clients reach a server, as --advertise takes it: for the type of an argument."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return parse_endpoint(value)
        except ExplainedError as error:
            raise click.UsageError(str(error)) from None


_JSON = click.option("--json", "as_json", is_flag=True, help="Say it in JSON, for programs.")


@click.group()
def cluster() -> None:
    """Run several servers as one service, on a log in etcd."""


@cluster.command()
@click.argument("folder", metavar="[DIR]", type=PATH, default=Path("cluster"))
@click.option(
    "--port",
    metavar="PORT",
    type=WholeNumber(1, 65000),
    help="The port of the first server; the others follow it.  [default: free ones]",
)
@click.option(
    "--servers",
    metavar="COUNT",
    type=WholeNumber(1, 20),
    default=3,
    show_default=True,
    help="How many servers to run.",
)
@click.option("--config", metavar="FILE", type=PATH, help="A zoo.cfg for each server.")
def up(folder: Path, port: int | None, servers: int, config: Path | None) -> None:
    """Try a cluster on this machine: three etcd, three servers, one DIR.

    It runs until Ctrl-C, and can be started again on the same DIR. Ports are chosen the first time,
    and kept. It needs etcd on the PATH.
    """
    # Imported now, not above: `--help` needs none of it.
    from paddock.cli.cluster.folder import opened
    from paddock.cli.cluster.processes import find_etcd
    from paddock.cli.cluster.up import run_cluster
    from paddock.cli.run_under.signals import Signals, run_with_signals

    find_etcd()
    check_grpc()
    with one_line(), opened(folder, servers, port) as cluster_folder:

        async def work(_: Signals) -> int:
            await run_cluster(cluster_folder, config, own_command())
            return 0

        # Stopped by a signal, as it is meant to be.
        run(lambda: run_with_signals(work))


@cluster.command()
@shared_log_options
@click.option("--quick", is_flag=True, help="Without what takes reading the state: the members.")
@_JSON
def status(log: SharedLogOptions, quick: bool, as_json: bool) -> int:
    """Show a service in etcd: its log, its members, and how etcd is.

    Servers need not run. Those that advertise an address, and have mntr in their
    4lw.commands.whitelist, are asked for their lease. Status 1 says that there is a problem: a
    member of etcd does not answer, or is full, or the service cannot be read.
    """
    from paddock.cli.cluster.status import cluster_status, status_lines

    found = run(lambda: cluster_status(log, quick=quick))
    if as_json:
        print_json(found)
    else:
        click.echo("\n".join(status_lines(found)))
    return int(any(one["problem"] is not None for one in (found, *found["etcd"])))


@cluster.command()
@click.argument("address", metavar="HOST:PORT", type=Address())
@shared_log_options
def forget(address: str, log: SharedLogOptions) -> None:
    """Remove a server that is gone for good from /zookeeper/config.

    Servers that stop or fail stay listed there, so that clients find them when they are back.
    """
    from paddock.storage.cluster import operations

    async def work() -> None:
        async with log.store() as store:
            await operations.forget(store, log.keys, log.caller("forget"), address)

    run(work)
    click.echo(f"{address} is forgotten")


@cluster.command()
@shared_log_options
def finalize(log: SharedLogOptions) -> None:
    """End an upgrade: allow what only the new version knows.

    It is refused while a server of an older version runs; after it, none can join any more.
    """
    from paddock.storage.cluster import operations

    async def work() -> tuple[int, int]:
        async with log.store() as store:
            return await operations.finalize(store, log.keys, log.caller("finalize"))

    former, rules = run(work)
    if former == rules:
        click.echo(f"rules {rules}: nothing to finalize")
    else:
        click.echo(f"rules {rules}, {former} before")


@cluster.command()
@shared_log_options
@click.option(
    "--wait",
    "wait_seconds",
    metavar="SECONDS",
    type=NumberRange(min=0, max=3600),
    help="How long servers that have not left must be silent.  [default: their lease]",
)
def epoch(log: SharedLogOptions, wait_seconds: float | None) -> None:
    """Begin a new epoch of zxids, after a restore of etcd itself.

    It must be run before a server is started: without it, zxids that clients have seen would be
    used again. No server may run.
    """
    from paddock.server.cluster.shared_settings import lease_seconds
    from paddock.server.config.config import LEASE_SECONDS_MIN
    from paddock.state.roster import Member
    from paddock.storage.cluster import operations

    def wait(member: Member) -> float:
        if wait_seconds is not None:
            return wait_seconds
        return lease_seconds(member.settings, LEASE_SECONDS_MIN)

    async def work() -> int:
        async with log.store() as store:
            return await operations.begin_epoch(store, log.keys, log.caller("epoch"), wait)

    click.echo(f"the service goes on at zxid 0x{run(work):x}")


@cluster.command()
@click.argument("index", type=WholeNumber(min=1))
@shared_log_options
def skip(index: int, log: SharedLogOptions) -> None:
    """Pass over a batch of the log that no server survives.

    The last way out: what the batch holds is lost. It is refused if a server has applied it.
    """
    from paddock.storage.cluster import operations

    async def work() -> None:
        async with log.store() as store:
            await operations.skip(store, log.keys, index)

    run(work)
    click.echo(f"batch {index} is skipped; start the servers again")


@cluster.command("import")
@click.argument("data", type=PATH)
@click.option(
    "--log-dir", metavar="DIR", type=PATH, help="Of Apache's data: its dataLogDir, if it has one."
)
@shared_log_options
@_JSON
def import_(data: Path, log_dir: Path | None, log: SharedLogOptions, as_json: bool) -> None:
    """Begin a service with the data of one server, Paddock's or Apache's.

    DATA is its data folder, which is only read; its server must be stopped. Nodes, sessions and
    zxids are kept, so clients move to the new servers with their sessions.
    """
    from paddock.cli.cluster.source import read_source
    from paddock.storage.cluster.shared_state import create_service

    # Nodes are in no cycles, and collections over a million of them take longer than the rest.
    gc.disable()
    try:
        with one_line():
            check_is_folder(data)
            machine, warnings = read_source(data, log_dir)
        for warning in warnings:
            click.echo(f"paddock: warning: {warning}", err=True)

        async def work() -> None:
            async with log.store() as store:
                await create_service(store, log.keys, machine, secrets.token_bytes)

        run(work)
    finally:
        gc.enable()
    nodes, sessions = len(machine.tree), len(machine.sessions.by_id)
    if as_json:
        told = {"name": log.url.name, "nodes": nodes, "sessions": sessions}
        print_json({**told, "zxid": machine.zxid})
        return
    click.echo(
        f"{data}: {counted(nodes, 'node')}, {counted(sessions, 'session')} are in"
        f" etcd now; it goes on at zxid 0x{machine.zxid:x}\n"
        f"Start servers with --log {log.url}, and none on {data} any more"
    )

"""`paddock cluster`: several servers that share a log."""

from pathlib import Path

import click

from paddock.cli.arguments import PATH, WholeNumber
from paddock.cli.output import CannotBeDone, one_line, own_command
from paddock.cli.service import run


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
    """Try a cluster on this machine: three etcd and three servers, all in DIR.

    It runs until Ctrl-C, and can be started again on the same DIR. Ports are chosen the first time,
    and kept. It needs etcd on the PATH.
    """
    # Imported now, not above: `--help` needs none of it.
    from importlib.util import find_spec

    from paddock.cli.cluster.folder import opened
    from paddock.cli.cluster.processes import find_etcd
    from paddock.cli.cluster.up import run_cluster
    from paddock.cli.run_under.signals import Signals, run_with_signals

    find_etcd()
    if find_spec("grpc") is None:
        raise CannotBeDone("a log in etcd needs grpcio: pip install 'paddock[etcd]'")
    with one_line(), opened(folder, servers, port) as cluster_folder:

        async def work(_: Signals) -> int:
            await run_cluster(cluster_folder, config, own_command())
            return 0

        # Stopped by a signal, as it is meant to be.
        run(lambda: run_with_signals(work))

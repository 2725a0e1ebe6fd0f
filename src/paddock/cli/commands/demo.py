"""`paddock demo`: live on a terminal until it is ended; once, as lines, in a pipe."""

import itertools
from typing import Final

import click

from paddock.cli.arguments import NumberRange, default_option
from paddock.cli.service import run

# A pipe needs no time to look.
_SPEED_IN_A_PIPE: Final = 10.0
_SPEED_ON_A_SCREEN: Final = 1.0
_CLUSTER_TITLE: Final = (
    "three servers and three etcd, of which some are killed while a client counts"
)


@click.command()
@click.argument("names", metavar="[ACT]...", nargs=-1)
@click.option("--list", "is_list", is_flag=True, help="List the acts, and play none.")
@click.option("--once", is_flag=True, help="End after the last act, also on a terminal.")
@click.option(
    "--speed",
    metavar="FACTOR",
    type=NumberRange(min=0.1, max=100),
    help="How fast the acts are played; 2 is twice as fast.  [default: 1, in a pipe 10]",
)
@click.option(
    "--kill",
    "kills",
    metavar="WHAT",
    type=click.Choice(["server", "etcd"]),
    multiple=True,
    help="In the act cluster, what is killed, in this order: server, etcd.  [default: both]",
)
@default_option(
    "--timeout",
    "SECONDS",
    NumberRange(min=0.5, max=60),
    1.5,
    "The session timeout of the workers: how long a killed one is waited for, at most.",
)
def demo(
    names: tuple[str, ...],
    is_list: bool,
    once: bool,
    speed: float | None,
    kills: tuple[str, ...],
    timeout: float,
) -> None:
    """Show what coordination is good for, with a server and processes of its own.

    ACT is one of election, lock, discovery, queue, barrier; without any, all of them are played.
    Leaders and workers are really killed. Everything is in memory, and nothing is left of it.

    The act cluster is played alone: three etcd and three servers, of which some are killed while a
    client counts. It needs etcd on the PATH, and takes a minute.
    """
    if "cluster" in names:
        _play_cluster(names, is_list, kills)
        return
    if kills:
        raise click.UsageError("--kill is for the act cluster")
    # Imported now, not above: `--help` needs none of it.
    from rich.console import Console

    from paddock.cli.demo.acts import ACTS
    from paddock.cli.demo.director import View, perform
    from paddock.cli.demo.screen import ScreenView

    by_name = {act.name: act for act in ACTS}
    for name in names:
        if name not in by_name:
            raise click.BadParameter(
                f"there is no act {name!r}; there are {', '.join(by_name)}", param_hint="ACT"
            )
    acts = tuple(by_name[name] for name in names) or ACTS
    if is_list:
        for act in acts:
            click.echo(f"{act.name:<10} {act.title}")
        return
    console = Console()
    on_screen = console.is_terminal and not console.is_dumb_terminal
    view = ScreenView(console, acts) if on_screen else View()
    played = itertools.cycle(acts) if on_screen and not once else acts
    factor = speed or (_SPEED_ON_A_SCREEN if on_screen else _SPEED_IN_A_PIPE)
    try:
        run(lambda: perform(played, view, timeout, factor))
    finally:
        view.sum_up()


def _play_cluster(names: tuple[str, ...], is_list: bool, kills: tuple[str, ...]) -> None:
    # Imported now, not above: `--help` needs none of it.
    from paddock.cli.cluster.log_options import check_grpc
    from paddock.cli.cluster.processes import find_etcd
    from paddock.cli.demo.cluster_scenes import SCENES, play_cluster
    from paddock.cli.run_under.signals import Signals, run_with_signals

    if len(names) > 1:
        raise click.UsageError("the act cluster is played alone")
    if is_list:
        click.echo(f"{'cluster':<10} {_CLUSTER_TITLE}")
        return
    find_etcd()
    check_grpc()

    async def work(_: Signals) -> int:
        await play_cluster(kills or SCENES)
        return 0

    status = run(lambda: run_with_signals(work))
    if status:
        raise click.exceptions.Exit(status)

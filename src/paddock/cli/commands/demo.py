"""`paddock demo`: live on a terminal until it is ended; once, as lines, in a pipe."""

import itertools
from typing import Final

import click

from paddock.cli.arguments import NumberRange, default_option
from paddock.cli.service import run

# A pipe needs no time to look.
_SPEED_IN_A_PIPE: Final = 10.0
_SPEED_ON_A_SCREEN: Final = 1.0


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
@default_option(
    "--timeout",
    "SECONDS",
    NumberRange(min=0.5, max=60),
    1.5,
    "The session timeout of the workers: how long a killed one is waited for, at most.",
)
def demo(
    names: tuple[str, ...], is_list: bool, once: bool, speed: float | None, timeout: float
) -> None:
    """Show what coordination is good for, with a server and processes of its own.

    ACT is one of election, lock, discovery, queue, barrier; without any, all of them are played.
    Leaders and workers are really killed. Everything is in memory, and nothing is left of it.
    """
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

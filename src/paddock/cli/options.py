"""Options that several commands have."""

from collections.abc import Callable
from typing import Any

import click

from paddock.cli.paths import PATH_OR_DASH
from paddock.cli.quantities import WholeNumber

DATA_FILE = click.option(
    "--file", "-f", metavar="FILE", type=PATH_OR_DASH, help="Take the data from a file."
)

VERSION = click.option(
    "--version",
    metavar="N",
    type=WholeNumber(-1, 2**31 - 1),
    # Which stands for any.
    default=-1,
    help="Only if the node has this version, so that nobody else's write is lost.",
)


def recursive_option(says: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Have a command take the nodes below one as well; both letters do, as in `rm` and in `ls`."""
    return click.option("--recursive", "-r", "-R", is_flag=True, help=says)

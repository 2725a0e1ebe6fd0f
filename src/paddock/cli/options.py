"""Options that several commands have."""

from collections.abc import Callable
from typing import Any

import click

from paddock.cli.paths import PATH_OR_DASH
from paddock.cli.quantities import NumberRange, WholeNumber

DATA_FILE = click.option(
    "--file", "-f", metavar="FILE", type=PATH_OR_DASH, help="Take the data from a file."
)


def version_option(says: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add `--version`; -1, the default, stands for any."""
    return click.option(
        "--version", metavar="N", type=WholeNumber(-1, 2**31 - 1), default=-1, help=says
    )


VERSION = version_option("Only if the node has this version, so that no other write is lost.")

JSON_LINES = click.option(
    "--json", "as_json", is_flag=True, help="One JSON object a line, for programs."
)

GRACE = click.option(
    "--grace",
    metavar="SECONDS",
    type=NumberRange(min=0),
    help="How long before its time is over the command is asked to end (SIGTERM), before it is"
    " killed; a sixth of the session timeout unless given.",
)

CONTENDER_NAME = click.option(
    "--name", help="Who we are, for those who look; host:pid unless given."
)


def recursive_option(says: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add `--recursive`, with both letters, as in `rm` and in `ls`."""
    return click.option("--recursive", "-r", "-R", is_flag=True, help=says)


def default_option(
    name: str, metavar: str, type: Any, default: object, says: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add an option whose help shows its default."""
    return click.option(
        name, metavar=metavar, type=type, default=default, show_default=True, help=says
    )

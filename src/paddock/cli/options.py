"""Options that several commands have."""

import click

from paddock.cli.paths import PATH_OR_DASH

DATA_FILE = click.option(
    "--file", "-f", metavar="FILE", type=PATH_OR_DASH, help="Take the data from a file."
)

VERSION = click.option(
    "--version",
    metavar="N",
    type=click.IntRange(-1, 2**31 - 1),
    # Which stands for any.
    default=-1,
    help="Only if the node has this version, so that nobody else's write is lost.",
)

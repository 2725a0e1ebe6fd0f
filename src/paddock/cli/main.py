"""The `paddock` command: it finds the subcommand and makes a failure one line and a status.

Status 2 means that the command was given wrongly, an option or a `zoo.cfg`; 1 that it could not be
done. Nothing heavy is imported here: a subcommand imports what it needs when it runs.
"""

import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from paddock import __version__
from paddock.cli.serve import serve


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="paddock", message="%(prog)s %(version)s")
def paddock() -> None:
    """ZooKeeper for Python: a durable server that any ZooKeeper client can use."""


paddock.add_command(serve)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command and leave with its status; a failure is one line on stderr."""
    try:
        status = paddock.main(arguments, prog_name="paddock", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as shown:
        # Without a subcommand the help is what was asked for, but it is not what was to be done.
        click.echo(shown.format_message(), err=True)
        sys.exit(shown.exit_code)
    except click.ClickException as error:
        click.echo(f"paddock: {' '.join(error.format_message().split())}", err=True)
        sys.exit(error.exit_code)
    except click.Abort:
        # Ctrl-C before there was anything to stop.
        sys.exit(130)
    sys.exit(status if isinstance(status, int) else 0)

"""Where a history is: the options of a command for it."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from paddock.cli.arguments import PATH

if TYPE_CHECKING:
    from paddock.history.past import Source
    from paddock.storage.events import Event

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a history is kept."""

    path: Path
    # The folder of Apache's transaction log, if it is not in the same.
    log: Path | None = None

    def open(self) -> "Source":
        """Open it. Raises HistoryError."""
        # Imported here: without a place, nothing that reads files is needed.
        from paddock.history.source import open_source

        return open_source(self.path, self.log)

    def events(self) -> "Iterator[Event]":
        """Yield what the server has written beside its log, as far as it is there.

        Those that cannot be read are told on stderr.
        """
        from paddock.storage.events import FOLDER, read_events

        folder = self.path / FOLDER

        def tell(error: OSError) -> None:
            place, reason = error.filename or folder, error.strerror or error
            click.echo(f"paddock: {place}: some events cannot be read: {reason}", err=True)

        return read_events(folder, on_unreadable=tell)


def place_options(is_required: bool) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Add the options of a place; the command receives them as `place`, which may be None.

    If a server is named instead, the command is run there. If no place is required, that counts
    only with --at.
    """

    def decorate(command: Callable[..., T]) -> Callable[..., T]:
        @click.option(
            "--data",
            metavar="PLACE",
            type=PATH,
            envvar="PADDOCK_DATA",
            show_envvar=True,
            help="Where the history is: the data folder of a server, which may run, a backup, or"
            " the dataDir of Apache ZooKeeper.",
        )
        @click.option(
            "--log-dir", metavar="FOLDER", type=PATH, help="Apache's dataLogDir, if it has one."
        )
        @click.option(
            "--admin",
            metavar="URL",
            envvar="PADDOCK_ADMIN",
            show_envvar=True,
            help="Or the admin server of a running server, such as http://127.0.0.1:8080.",
        )
        @click.option(
            "--admin-auth",
            metavar="SCHEME:CREDENTIALS",
            envvar="PADDOCK_ADMIN_AUTH",
            show_envvar=True,
            help="Who asks it, such as digest:super:password.",
        )
        @functools.wraps(command)
        def wrapped(
            *arguments: object,
            data: Path | None,
            log_dir: Path | None,
            admin: str | None,
            admin_auth: str | None,
            **others: object,
        ) -> T:
            if data is None and log_dir is not None:
                raise click.UsageError("--log-dir needs --data")
            if data is None and admin is not None and (is_required or others.get("at")):
                from paddock.cli.past.remote import ask, check_url

                check_url(admin)
                raise click.exceptions.Exit(ask(admin, admin_auth or ""))
            if data is None and is_required:
                raise click.UsageError("--data or --admin says where the history is")
            others["place"] = None if data is None else Place(data, log_dir)
            return command(*arguments, **others)

        return wrapped

    return decorate

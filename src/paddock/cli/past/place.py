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
        """Yield what the server has written beside its log, as far as it is there."""
        from paddock.storage.events import FOLDER, read_events

        return read_events(self.path / FOLDER)


def place_options(is_required: bool) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Add the options of a place; the command receives them as `place`, which may be None."""

    def decorate(command: Callable[..., T]) -> Callable[..., T]:
        @click.option(
            "--data",
            metavar="PLACE",
            type=PATH,
            required=is_required,
            envvar="PADDOCK_DATA",
            show_envvar=True,
            help="Where the history is: the data folder of a server, which may run, a backup, or"
            " the dataDir of Apache ZooKeeper.",
        )
        @click.option(
            "--log-dir", metavar="FOLDER", type=PATH, help="Apache's dataLogDir, if it has one."
        )
        @functools.wraps(command)
        def wrapped(
            *arguments: object, data: Path | None, log_dir: Path | None, **others: object
        ) -> T:
            if data is None and log_dir is not None:
                raise click.UsageError("--log-dir needs --data")
            others["place"] = None if data is None else Place(data, log_dir)
            return command(*arguments, **others)

        return wrapped

    return decorate

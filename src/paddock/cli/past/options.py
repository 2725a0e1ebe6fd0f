"""Options of commands that look at the past: a moment, and where the history is."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import click

from paddock.cli.arguments import PATH
from paddock.history.moment import Moment, parse_moment
from paddock.history.past import Source
from paddock.history.source import open_source

T = TypeVar("T")


def given_moment(text: str) -> Moment:
    """Read a moment; for the type of an option."""
    try:
        return parse_moment(text, datetime.now(UTC).astimezone())
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a history is kept."""

    path: Path
    # The folder of Apache's transaction log, if it is not in the same.
    log: Path | None = None

    def open(self) -> Source:
        """Open it. Raises HistoryError."""
        return open_source(self.path, self.log)


def at_options(command: Callable[..., T]) -> Callable[..., T]:
    """Add --at and the place; the command receives `past`, which opens a client, or None."""

    @click.option(
        "--at",
        metavar="MOMENT",
        type=given_moment,
        help="As it was then: a time, such as 03:12, '2026-11-17 03:12' or 15m for 15 minutes ago,"
        " or a zxid, such as 0x1a3. Needs --data.",
    )
    @place_options(is_required=False)
    @functools.wraps(command)
    def wrapped(*arguments: object, at: Moment | None, place: Place | None, **others: object) -> T:
        if at is not None and place is None:
            raise click.UsageError("--at needs --data, which says where the history is")
        # The variable alone asks for nothing.
        others["past"] = None
        if at is not None and place is not None:
            from paddock.cli.past.serving import past_service

            others["past"] = functools.partial(past_service, place, at)
        return command(*arguments, **others)

    return wrapped


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

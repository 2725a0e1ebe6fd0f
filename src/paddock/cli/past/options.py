"""A moment of the past, and `--at`: the options of a command for them."""

import functools
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

import click

from paddock.cli.past.place import Place, place_options
from paddock.history.moment import Moment, parse_moment

T = TypeVar("T")


def given_moment(text: str) -> Moment:
    """Read a moment; for the type of an option."""
    try:
        return parse_moment(text, datetime.now(UTC).astimezone())
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


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
            # Imported here: without a moment, no server is needed.
            from paddock.cli.past.serving import past_service

            others["past"] = functools.partial(past_service, place, at)
        return command(*arguments, **others)

    return wrapped

"""What a command says when something cannot be done: one line."""

import contextlib
from collections.abc import Iterator

import click

from paddock.errors import PaddockError


class CannotBeDone(click.ClickException):
    """Status 1: the command was given rightly, and it did not succeed."""

    exit_code = 1


@contextlib.contextmanager
def one_line() -> Iterator[None]:
    """Turn what our code and the system refuse into one line and status 1."""
    try:
        yield
    except PaddockError as error:
        raise CannotBeDone(str(error)) from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise CannotBeDone(
            reason if error.filename is None else f"{error.filename}: {reason}"
        ) from None

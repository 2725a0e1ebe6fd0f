"""Failures of commands, as one line and a status."""

import contextlib
from collections.abc import Iterator

import click

from paddock.errors import InvalidArgumentError, PaddockError, RequestError


class CannotBeDone(click.ClickException):
    """Status 1: the arguments are right, and the command failed."""

    exit_code = 1


def line_about(error: PaddockError) -> str:
    """Return one line about an error: the path of the node, and the reason.

    The operation is left out: `paddock tree` would report that `exists` failed.
    """
    text = str(error)
    if isinstance(error, RequestError) and text.startswith(f"{error.operation} {error.path}: "):
        # A hint names an option of Python's.
        return text.removeprefix(f"{error.operation} ").removesuffix(f"; {error.hint}")
    return text


@contextlib.contextmanager
def one_line() -> Iterator[None]:
    """Turn errors of ours and of the system into one line and a status."""
    try:
        yield
    except InvalidArgumentError as error:
        # Refused by the client before a request: an argument is wrong.
        raise click.UsageError(str(error)) from None
    except PaddockError as error:
        raise CannotBeDone(line_about(error)) from None
    except BrokenPipeError:
        # stdout is closed: main.py handles it.
        raise
    except TimeoutError as error:
        raise CannotBeDone(error.strerror or str(error) or "it took too long") from None
    except MemoryError:
        raise CannotBeDone("this takes more memory than there is, or than a limit allows") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise CannotBeDone(
            reason if error.filename is None else f"{error.filename}: {reason}"
        ) from None

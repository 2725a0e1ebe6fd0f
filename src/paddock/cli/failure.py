"""What a command says when something cannot be done: one line."""

import contextlib
from collections.abc import Iterator

import click

from paddock.errors import InvalidArgumentError, PaddockError, RequestError


class CannotBeDone(click.ClickException):
    """Status 1: the command was given rightly, and it did not succeed."""

    exit_code = 1


def line_about(error: PaddockError) -> str:
    """Say why something could not be done: of a node that was named, its path and what is so.

    Which operation was refused is for programs: `paddock tree` asks whether a node exists, and a
    line that begins with that would seem to contradict itself.
    """
    text = str(error)
    if isinstance(error, RequestError) and text.startswith(f"{error.operation} {error.path}: "):
        # A hint names an option of Python's.
        return text.removeprefix(f"{error.operation} ").removesuffix(f"; {error.hint}")
    return text


@contextlib.contextmanager
def one_line() -> Iterator[None]:
    """Turn what our code and the system refuse into one line and a status."""
    try:
        yield
    except InvalidArgumentError as error:
        # What the client refuses before anything is sent was given wrongly: a path, for one.
        raise click.UsageError(str(error)) from None
    except PaddockError as error:
        raise CannotBeDone(line_about(error)) from None
    except BrokenPipeError:
        # Nobody reads our output any more: main.py knows what to do.
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

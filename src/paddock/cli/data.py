"""Data on the command line: the argument itself, stdin, or a file; always the bytes as they are."""

import os
import sys
from pathlib import Path
from typing import BinaryIO

import click

from paddock.cli.failure import one_line
from paddock.client.requests.encoder import REQUEST_BYTES_MAX


def given_data(argument: str | None, file: Path | None) -> bytes | None:
    """Return the data of an argument or a file; None if neither is given."""
    if argument is not None and file is not None:
        raise click.UsageError("DATA and --file were both given")
    if file is not None and str(file) != "-":
        with one_line(), file.open("rb") as opened:
            return _read(opened, str(file))
    if file is not None or argument == "-":
        return _read(sys.stdin.buffer, "stdin")
    return None if argument is None else os.fsencode(argument)


def _read(stream: BinaryIO, name: str) -> bytes:
    """Read everything, or as much as shows that no server would take it."""
    data = stream.read(REQUEST_BYTES_MAX + 1)
    if len(data) > REQUEST_BYTES_MAX:
        raise click.UsageError(f"{name}: servers take {REQUEST_BYTES_MAX} bytes, and this is more")
    return data

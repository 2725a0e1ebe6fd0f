"""Paths of files and folders on the command line.

They are checked by the command that needs them: click would test whether they can be read, in words
of its own.
"""

import os
from pathlib import Path
from typing import Final

import click

from paddock.cli.failure import CannotBeDone

PATH: Final = click.Path(readable=False, path_type=Path)
PATH_OR_DASH: Final = click.Path(readable=False, path_type=Path, allow_dash=True)


def check_is_folder(path: Path) -> None:
    """Raise UsageError for anything that is not a folder."""
    if not path.is_dir():
        raise click.UsageError(
            f"{path}: is not a folder" if path.exists() else f"{path}: there is no such folder"
        )


def check_output_file(file: Path) -> None:
    """Raise CannotBeDone if a file cannot be written or replaced."""
    folder = file.absolute().parent
    if not folder.is_dir():
        raise CannotBeDone(f"{file}: there is no folder {folder}")
    if os.path.lexists(file) and not file.is_file():
        # A device would be replaced by a file.
        raise CannotBeDone(f"{file}: is not a file")

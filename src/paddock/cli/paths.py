"""Paths on the command line: taken as they are, and looked at by the command that needs them.

Click would look whether it may read what is there, and say so in words of its own.
"""

from pathlib import Path

import click

PATH = click.Path(readable=False, path_type=Path)
PATH_OR_DASH = click.Path(readable=False, path_type=Path, allow_dash=True)


def check_is_folder(path: Path) -> None:
    """Refuse what is not a folder, and say what it is instead."""
    if not path.is_dir():
        raise click.UsageError(
            f"{path}: is not a folder" if path.exists() else f"{path}: there is no such folder"
        )

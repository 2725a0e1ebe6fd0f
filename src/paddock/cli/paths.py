"""Paths on the command line: of files and folders, and of nodes.

Files are checked by the command that needs them: click would test whether they can be read, in
words of its own. Paths of nodes are checked here, before a server is looked for, and completed.
"""

import os
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from paddock.cli.failure import CannotBeDone

PATH: Final = click.Path(readable=False, path_type=Path)
PATH_OR_DASH: Final = click.Path(readable=False, path_type=Path, allow_dash=True)


class NodePath(click.types.StringParamType):
    """The path of a node, for the type of an argument."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from paddock.client.requests.arguments import checked_path
        from paddock.errors import InvalidArgumentError

        try:
            checked_path(value)
        except InvalidArgumentError as error:
            raise click.UsageError(str(error)) from None
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from paddock.cli.node_completion import matching_paths

        return [CompletionItem(path) for path in matching_paths(ctx.params, incomplete)]


NODE_PATH: Final = NodePath()


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

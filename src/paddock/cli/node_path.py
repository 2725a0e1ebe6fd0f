"""Paths of nodes on the command line: checked before a server is looked for, and completed."""

from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from paddock.errors import InvalidArgumentError


class NodePath(click.types.StringParamType):
    """The path of a node, for the type of an argument."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from paddock.client.requests.arguments import checked_path

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

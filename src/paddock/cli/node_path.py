"""Paths of nodes on the command line: checked before a server is looked for, and completed.

Completion in bash, zsh and fish asks the server, with a short deadline. Without a server, a
permission or an answer in time there is nothing to complete, and no message.
"""

import asyncio
import logging
import os
from collections.abc import Mapping
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from paddock.cli.service import DEFAULT_HOSTS, ServiceOptions, identity_of, tls_of
from paddock.client.requests.arguments import checked_path
from paddock.errors import InvalidArgumentError, PaddockError, RequestError
from paddock.protocol.paths import child_path

# The variable is for slow machines.
_DEADLINE_S: Final = float(os.environ.get("PADDOCK_COMPLETION_SECONDS", "0.8"))
# The names of more children are megabytes.
_CHILDREN_MAX: Final = 10_000


class NodePath(click.types.StringParamType):
    """The path of a node, for the type of an argument."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            checked_path(value)
        except InvalidArgumentError as error:
            raise click.UsageError(str(error)) from None
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(path) for path in _completions(ctx.params, incomplete)]


NODE_PATH: Final = NodePath()


def _completions(options: Mapping[str, Any], incomplete: str) -> list[str]:
    """Return the paths of nodes that begin with a text; of a single one, also its children.

    `options` are those of the command line so far, with the names that `service_options` has.
    """
    logging.getLogger("paddock").addHandler(logging.NullHandler())
    try:
        service = ServiceOptions(
            options.get("server") or DEFAULT_HOSTS,
            identities=tuple(identity_of(one, "--auth") for one in options.get("auth") or ()),
            tls=tls_of(
                bool(options.get("tls")),
                options.get("tls_ca"),
                options.get("tls_cert"),
                options.get("tls_key"),
            ),
        )
        return asyncio.run(_matching_paths(service, incomplete or "/"))
    except (PaddockError, click.ClickException, OSError, ValueError):
        return []


async def _matching_paths(service: ServiceOptions, incomplete: str) -> list[str]:
    above, slash, beginning = incomplete.rpartition("/")
    async with asyncio.timeout(_DEADLINE_S), service.connect() as client:

        async def children(path: str) -> list[str]:
            try:
                stat = await client.exists(path)
                if stat is None or not 0 < stat.num_children <= _CHILDREN_MAX:
                    return []
                names = sorted(await client.children(path))
            except RequestError:
                return []
            return [child_path(path, name) for name in names if name.isprintable()]

        if not slash:
            return []
        found = await children(above or "/")
        found = [path for path in found if path.rpartition("/")[2].startswith(beginning)]
        # With its children there are several, and the shell adds no space behind the path.
        return found + await children(found[0]) if len(found) == 1 else found

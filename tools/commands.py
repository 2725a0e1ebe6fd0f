"""Write the reference of the commands from `--help`; the tests compare the two.

    python tools/commands.py            write the page
    python tools/commands.py --check    fail if the page is not current

The texts are in the commands, and only there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from paddock.cli.main import paddock

PAGE: Final = Path(__file__).parents[1] / "docs" / "reference" / "commands.md"

# The width that fits beside the table of contents of the site.
_WIDTH: Final = 82
_OPENING: Final = """\
# Commands

What `--help` says of each. A command that was given wrongly says so in one line and ends with
status 2; one that could not do what was asked, with status 1. `paddock`, `paddock acl` and
`paddock cluster` without arguments print their help, and end with status 2.
"""


def text() -> str:
    """Return the text of the page."""
    commands = list(_commands(paddock, ["paddock"]))
    table = ["| command | what it does |", "|---|---|"]
    table += [
        f"| [`{' '.join(names)}`](#{'-'.join(names)}) | {command.get_short_help_str(limit=120)} |"
        for names, command in commands
    ]
    parts = [_OPENING, "\n".join(table) + "\n"]
    parts += [f"## {' '.join(names)}\n\n{_help(names, command)}" for names, command in commands]
    return "\n".join(parts)


def _commands(group: click.Group, names: list[str]) -> Iterator[tuple[list[str], click.Command]]:
    context = click.Context(group, info_name=names[-1])
    for name in sorted(group.list_commands(context)):
        command = group.get_command(context, name)
        assert command is not None
        yield [*names, name], command
        if isinstance(command, click.Group):
            yield from _commands(command, [*names, name])


def _help(names: list[str], command: click.Command) -> str:
    context = click.Context(
        command,
        info_name=" ".join(names),
        terminal_width=_WIDTH,
        max_content_width=_WIDTH,
        # Options of the group, which all of its commands share.
        help_option_names=paddock.context_settings["help_option_names"],
    )
    return f"```text\n{command.get_help(context)}\n```\n"


def main() -> int:
    written = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    if written == text():
        return 0
    if "--check" in sys.argv[1:]:
        print(f"{PAGE}: not as tools/commands.py would write it")
        return 1
    PAGE.write_text(text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`paddock tree`: a node and what is below it, drawn.

It is drawn while it is walked, so a large tree takes little memory. A line that is too long for a
terminal goes on below itself, within the lines of the tree.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass

import click

from paddock.cli.describe import owner_text, stat_fields
from paddock.cli.failure import line_about
from paddock.cli.node_path import NODE_PATH
from paddock.cli.quantities import WholeNumber, size_text
from paddock.cli.service import ServiceOptions, service_options
from paddock.cli.wording import counted
from paddock.client.client import Client
from paddock.client.operations.walk import WalkedNode
from paddock.protocol.records import Stat


@click.command()
@click.argument("path", default="/", type=NODE_PATH)
@click.option("--depth", "-d", metavar="N", type=WholeNumber(min=0), help="So many levels.")
@click.option(
    "--limit", "-n", metavar="N", type=WholeNumber(min=1), help="So many children of each node."
)
@click.option("--long", "-l", "is_long", is_flag=True, help="With sizes, versions and owners.")
@click.option("--json", "as_json", is_flag=True, help="One nested JSON object, for programs.")
@service_options
def command(
    service: ServiceOptions,
    path: str,
    depth: int | None,
    limit: int | None,
    is_long: bool,
    as_json: bool,
) -> int:
    """Draw a node and everything below it.

    PATH is the root unless it is given. Status 1 says that something could not be read, which is
    said where it stands.
    """

    async def drawing(client: Client) -> int:
        status = 0
        picture = _Document() if as_json else _Drawing(is_long)
        async with aclosing(client.walk(path, depth=depth, max_children=limit)) as nodes:
            async for found in nodes:
                status = status if found.error is None else 1
                picture.add(found)
        picture.finish()
        return status

    return service.run(drawing)


class _Document:
    """A tree as JSON, written piece by piece."""

    def __init__(self) -> None:
        # How deep the node is that was written last; its children may follow.
        self._depth = -1

    def add(self, found: WalkedNode) -> None:
        is_first = found.depth == self._depth + 1
        self._close(found.depth)
        fields = {"path": found.path, "name": found.name, **stat_fields(found.stat)}
        if found.omitted:
            fields["omitted"] = found.omitted
        if found.error is not None:
            fields["problem"] = line_about(found.error)
        written = json.dumps(fields).removesuffix("}")
        sys.stdout.write(f'{"" if is_first else ", "}{written}, "children": [')
        self._depth = found.depth

    def finish(self) -> None:
        self._close(0)
        sys.stdout.write("\n")

    def _close(self, depth: int) -> None:
        """End the nodes that are as deep, or deeper."""
        while self._depth >= depth:
            sys.stdout.write("]}")
            self._depth -= 1


@dataclass(frozen=True, slots=True)
class _Guides:
    """What leads from a node to those below it."""

    branch: str
    last: str
    along: str
    beyond: str = "    "


_LINES = _Guides("├── ", "└── ", "│   ")
_ASCII = _Guides("|-- ", "`-- ", "|   ")


class _Drawing:
    """A tree as lines."""

    def __init__(self, is_long: bool) -> None:
        from rich.console import Console

        self._is_long = is_long
        self._console: Console | None = Console() if sys.stdout.isatty() else None
        self._guides = _LINES if _can_be_written("├└│─…") else _ASCII
        # What stands before the children of each node from the root down to where we are, and how
        # many of them are not shown, which is said behind the last of them.
        self._above: list[tuple[str, int]] = []
        self._nodes = 0
        self._bytes = 0
        self._is_whole = True

    def add(self, found: WalkedNode) -> None:
        self._leave(found.depth)
        self._nodes += 1
        self._is_whole &= not found.omitted
        self._bytes += 0 if found.stat is None else found.stat.data_length
        # Children of which none is shown are only counted.
        hides_some = bool(found.omitted) and not found.is_leaf
        if found.depth == 0:
            self._line("", "", found.path, found)
            self._above.append(("", found.omitted if hides_some else 0))
            return
        before, hidden = self._above[-1]
        ends = found.is_last and not hidden
        guides = self._guides
        self._line(
            before + (guides.last if ends else guides.branch),
            before + (guides.beyond if ends else guides.along),
            found.name,
            found,
        )
        below = before + (guides.beyond if ends else guides.along)
        self._above.append((below, found.omitted if hides_some else 0))

    def finish(self) -> None:
        self._leave(0)
        shown = "" if self._is_whole else " shown"
        print(f"\n{counted(self._nodes, 'node')}{shown}, {size_text(self._bytes)}")

    def _leave(self, depth: int) -> None:
        """Come back up to where a node of this depth stands below the last of these."""
        while len(self._above) > depth:
            before, hidden = self._above.pop()
            if hidden:
                self._print(before + self._guides.last, before, f"({hidden} more)", "bright_black")

    def _line(self, first: str, further: str, name: str, found: WalkedNode) -> None:
        notes = ", ".join(self._notes(found))
        style = _style(found.stat)
        self._print(first, further, name, style, f"  {notes}" if notes else "")

    def _notes(self, found: WalkedNode) -> Iterator[str]:
        stat = found.stat
        if self._is_long and stat is not None:
            yield size_text(stat.data_length)
            yield f"version {stat.version}"
            if stat.ephemeral_owner:
                yield f"of {owner_text(stat)}"
        if found.error is not None:
            yield "may not be read"
        elif found.omitted and found.is_leaf:
            yield f"({counted(found.omitted, 'child', 'children')})"

    def _print(self, first: str, further: str, name: str, style: str, notes: str = "") -> None:
        if self._console is None:
            print(f"{first}{name}{notes}")
            return
        from rich.text import Text

        text = Text.assemble((name, style), (notes, "bright_black"))
        width = max(10, self._console.width - len(first))
        for number, line in enumerate(text.wrap(self._console, width)):
            guide = further if number else first
            self._console.print(Text.assemble((guide, "bright_black"), line), soft_wrap=True)


def _can_be_written(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _style(stat: Stat | None) -> str:
    if stat is None:
        return ""
    return "cyan" if stat.ephemeral_owner else "bold" if stat.num_children else ""

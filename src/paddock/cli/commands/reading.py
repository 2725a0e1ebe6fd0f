"""`paddock ls`, `get`, `stat` and `tree`: what nodes hold, as text and as JSON."""

import json
import sys
from collections.abc import Iterator
from contextlib import aclosing

import click

from paddock.cli.arguments import JSON_LINES, WholeNumber, recursive_option
from paddock.cli.output import (
    counted,
    data_fields,
    line_about,
    long_line,
    owner_text,
    print_json,
    shown_data,
    size_text,
    stat_fields,
    stat_lines,
    tell_problem,
)
from paddock.cli.service import NODE_PATH, past_command
from paddock.client.client import Client
from paddock.client.operations.walk import WalkedNode
from paddock.errors import NoNodeError
from paddock.protocol.acl import format_acl

_LINES = ("├── ", "└── ", "│   ")
_ASCII = ("|-- ", "`-- ", "|   ")


def print_node(found: WalkedNode, name: str, is_long: bool, as_json: bool) -> None:
    """Print a node by name, as a line of a long list, or as a JSON object."""
    if as_json:
        print_json({"path": found.path, "name": found.name, **stat_fields(found.stat)})
    else:
        print(long_line(found.stat, name) if is_long else name)


@click.command()
@click.argument("path", default="/", type=NODE_PATH)
@click.option(
    "--long",
    "-l",
    "is_long",
    is_flag=True,
    help="With version, bytes, number of children, time of the last write, owner.",
)
@recursive_option(help="Everything below it, as whole paths.")
@JSON_LINES
@past_command
async def ls(client: Client, path: str, is_long: bool, recursive: bool, as_json: bool) -> int:
    """List the children of a node by name, or with -R everything below it.

    PATH is the root unless it is given. Status 1 says that something could not be read.
    """
    if not (recursive or is_long or as_json):
        # The plain names take one request, however many they are.
        for name in sorted(await client.children(path)):
            print(name)
        return 0
    status = 0
    async with aclosing(client.walk(path, depth=None if recursive else 1)) as nodes:
        async for found in nodes:
            if found.error is not None:
                status = tell_problem(found.error)
            if found.depth:
                print_node(found, found.path if recursive else found.name, is_long, as_json)
    return status


@click.command()
@click.argument("path", type=NODE_PATH)
@click.option("--stat", "with_stat", is_flag=True, help="Behind the data, what is known of them.")
@click.option("--json", "as_json", is_flag=True, help="Data and stat as JSON, for programs.")
@past_command
async def get(client: Client, path: str, with_stat: bool, as_json: bool) -> None:
    """Write the data of a node to stdout.

    Into a pipe or a file go the bytes as they are, and nothing else: no line break is added. With
    --json, "encoding" says whether "data" is the text ("utf-8") or "base64".
    """
    data, stat = await client.get(path)
    if as_json:
        print_json({"path": path, **data_fields(data), **stat_fields(stat)})
        return
    if sys.stdout.isatty():
        sys.stdout.write(shown_data(data))
    else:
        sys.stdout.buffer.write(data)
        if with_stat and data and not data.endswith(b"\n"):
            sys.stdout.buffer.write(b"\n")
        sys.stdout.buffer.flush()
    if with_stat:
        print("\n".join(stat_lines(stat)))


@click.command()
@click.argument("path", type=NODE_PATH)
@click.option("--acl", "with_acl", is_flag=True, help="Also say who may do what with it.")
@click.option("--json", "as_json", is_flag=True, help="Say it in JSON, for programs.")
@past_command
async def stat(client: Client, path: str, with_acl: bool, as_json: bool) -> None:
    """Print the stat of a node: times, versions, size, owner.

    It needs the permission to read the node.
    """
    found = await client.exists(path)
    if found is None:
        raise NoNodeError("stat", path)
    acl: list[str] = []
    if with_acl:
        # The stat that comes with it is of the same moment.
        entries, found = await client.get_acl(path)
        acl = [format_acl(one) for one in entries]
    if as_json:
        fields = {"path": path, **stat_fields(found)}
        print_json({**fields, "acl": acl} if with_acl else fields)
    else:
        print("\n".join([*stat_lines(found), *(f"{'acl':15}  {one}" for one in acl)]))


@click.command()
@click.argument("path", default="/", type=NODE_PATH)
@click.option("--depth", "-d", metavar="N", type=WholeNumber(min=0), help="So many levels.")
@click.option(
    "--limit", "-n", metavar="N", type=WholeNumber(min=1), help="So many children of each node."
)
@click.option("--long", "-l", "is_long", is_flag=True, help="With sizes, versions and owners.")
@click.option("--json", "as_json", is_flag=True, help="One nested JSON object, for programs.")
@past_command
async def tree(
    client: Client, path: str, depth: int | None, limit: int | None, is_long: bool, as_json: bool
) -> int:
    """Draw a node and everything below it.

    PATH is the root unless it is given. Status 1 says that something could not be read, which is
    said where it stands.
    """
    status = 0
    # Drawn while it is walked, so a large tree takes little memory.
    picture = _Document() if as_json else _Drawing(is_long)
    async with aclosing(client.walk(path, depth=depth, max_children=limit)) as nodes:
        async for found in nodes:
            status = status if found.error is None else 1
            picture.add(found)
    picture.finish()
    return status


class _Document:
    """A tree as JSON, written piece by piece."""

    # How deep the node is that was written last; its children may follow.
    _depth = -1

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


class _Drawing:
    """A tree as lines; one that is too long for a terminal goes on below itself."""

    def __init__(self, is_long: bool) -> None:
        from rich.console import Console

        self._is_long = is_long
        self._console: Console | None = Console() if sys.stdout.isatty() else None
        # What leads from a node to a child, to the last one, and past what is below a child.
        self._branch, self._last, self._along = _LINES if _can_be_written("├└│─…") else _ASCII
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
        first = below = ""
        if found.depth:
            before, hidden = self._above[-1]
            ends = found.is_last and not hidden
            first = before + (self._last if ends else self._branch)
            below = before + ("    " if ends else self._along)
        notes = ", ".join(self._notes(found))
        name = found.name if found.depth else found.path
        style = ""
        if (stat := found.stat) is not None:
            style = "cyan" if stat.ephemeral_owner else "bold" if stat.num_children else ""
        self._print(first, below, name, style, f"  {notes}" if notes else "")
        # Children of which none is shown are only counted.
        self._above.append((below, 0 if found.is_leaf else found.omitted))

    def finish(self) -> None:
        self._leave(0)
        shown = "" if self._is_whole else " shown"
        print(f"\n{counted(self._nodes, 'node')}{shown}, {size_text(self._bytes)}")

    def _leave(self, depth: int) -> None:
        """Come back up to where a node of this depth stands below the last of these."""
        while len(self._above) > depth:
            before, hidden = self._above.pop()
            if hidden:
                self._print(before + self._last, before, f"({hidden} more)", "bright_black")

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

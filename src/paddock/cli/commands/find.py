"""`paddock find`: the nodes of a tree that fit a description, as soon as they are found."""

import os
import re
import time
from contextlib import aclosing
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import click

from paddock.cli.arguments import JSON_LINES, WholeNumber, parse_age, parse_size
from paddock.cli.commands.reading import print_node
from paddock.cli.output import tell_problem
from paddock.cli.service import NODE_PATH, client_command
from paddock.client.client import Client
from paddock.protocol.records import Stat
from paddock.server.config.expressions import possessive_group


@dataclass(frozen=True, slots=True)
class Criteria:
    """Conditions on a node; None or empty: no condition. Of several globs one has to match."""

    # Of the last part of the path, and of the whole of it, in which * goes over slashes.
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    regex: re.Pattern[str] | None = None
    ephemeral: bool = False
    owner: int | None = None
    childless: bool = False
    larger: int | None = None
    smaller: int | None = None
    # Times in milliseconds since 1970, of the last write.
    written_before_ms: float | None = None
    written_after_ms: float | None = None
    data: bytes | None = None
    data_regex: re.Pattern[bytes] | None = None

    @property
    def needs_data(self) -> bool:
        return self.data is not None or self.data_regex is not None

    def fits(self, path: str, stat: Stat) -> bool:
        """Return whether path and stat match."""
        name = path.rpartition("/")[2]
        return (
            (not self.names or any(fnmatchcase(name, one) for one in self.names))
            and (not self.paths or any(fnmatchcase(path, one) for one in self.paths))
            and (self.regex is None or self.regex.search(path) is not None)
            and not (self.ephemeral and not stat.ephemeral_owner)
            and (self.owner is None or stat.ephemeral_owner == self.owner)
            and not (self.childless and stat.num_children)
            and (self.larger is None or stat.data_length > self.larger)
            and (self.smaller is None or stat.data_length < self.smaller)
            and (self.written_before_ms is None or stat.mtime < self.written_before_ms)
            and (self.written_after_ms is None or stat.mtime > self.written_after_ms)
        )

    def fits_data(self, data: bytes | None) -> bool:
        """Return whether the data match; None stands for data that could not be read."""
        if not self.needs_data or data is None:
            return not self.needs_data
        return (self.data is None or self.data in data) and (
            self.data_regex is None or self.data_regex.search(data) is not None
        )


def parse_session(text: str) -> int:
    """Parse a session id in hexadecimal."""
    try:
        number = int(text, 16)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no session, such as 0x1000a2b3c4d0001") from None
    # Its sign is the first of 64 bits.
    return number - (1 << 64) if number >> 63 else number


def parse_regex(text: str) -> "re.Pattern[str]":
    """Compile a regular expression; raises BadParameter."""
    possessive = possessive_group(text)
    if possessive is not None:
        why = "not every Python matches it rightly"
        raise click.BadParameter(f"{possessive!r}: {why}; write (?>…)")
    try:
        return re.compile(text)
    except re.error as error:
        raise click.BadParameter(str(error)) from None


def parse_data_regex(text: str) -> "re.Pattern[bytes]":
    """Compile a regular expression for bytes; raises BadParameter."""
    parse_regex(text)
    return re.compile(os.fsencode(text))


def parse_past(text: str) -> float:
    """Return the time of an age, in milliseconds since 1970."""
    return (time.time() - parse_age(text)) * 1000


@click.command()
@click.argument("path", default="/", type=NODE_PATH)
@click.option("--name", "names", metavar="GLOB", multiple=True, help="The name: 'worker-*'.")
@click.option(
    "--path", "paths", metavar="GLOB", multiple=True, help="The whole path, as in '*/a/*'."
)
@click.option("--regex", metavar="REGEX", type=parse_regex, help="A match in the path.")
@click.option("--data", metavar="TEXT", type=os.fsencode, help="A text in the data.")
@click.option("--data-regex", metavar="REGEX", type=parse_data_regex, help="A match in the data.")
@click.option("--ephemeral", is_flag=True, help="Ephemeral nodes alone.")
@click.option(
    "--owner", metavar="SESSION", type=parse_session, help="Ephemeral nodes of a session."
)
@click.option("--no-children", "childless", is_flag=True, help="Nodes with nothing below them.")
@click.option(
    "--older",
    "written_before_ms",
    metavar="AGE",
    type=parse_past,
    help="Not written for so long: 30s, 12h, 7d.",
)
@click.option(
    "--newer",
    "written_after_ms",
    metavar="AGE",
    type=parse_past,
    help="Written since, by this machine's clock.",
)
@click.option("--larger", metavar="SIZE", type=parse_size, help="With more data: 0, 10k, 1M.")
@click.option("--smaller", metavar="SIZE", type=parse_size, help="With less data.")
@click.option("--depth", metavar="N", type=WholeNumber(min=0), help="At most so far below PATH.")
@click.option("--limit", "-n", metavar="N", type=WholeNumber(min=1), help="End after so many.")
@click.option("--long", "-l", "is_long", is_flag=True, help="With what `ls -l` says of them.")
@JSON_LINES
@client_command
async def command(
    client: Client,
    path: str,
    depth: int | None,
    limit: int | None,
    is_long: bool,
    as_json: bool,
    **conditions: Any,
) -> int:
    """Print the paths of all nodes at and below PATH that match every condition.

    Of several --name, or --path, one has to match. Memory is bounded, whatever the size of the
    tree, and the result is no snapshot: nodes that are created or deleted meanwhile may be missing.
    Status 1: a node could not be read.
    """
    criteria = Criteria(**conditions)

    def wants_data(path: str, stat: Stat) -> bool:
        return criteria.needs_data and criteria.fits(path, stat)

    status = printed = 0
    async with aclosing(client.walk(path, depth=depth, data=wants_data)) as nodes:
        async for found in nodes:
            if found.error is not None:
                status = tell_problem(found.error)
            if (
                found.stat is not None
                and criteria.fits(found.path, found.stat)
                and criteria.fits_data(found.data)
            ):
                print_node(found, found.path, is_long, as_json)
                printed += 1
                if printed == limit:
                    break
    return status

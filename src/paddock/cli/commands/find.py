"""`paddock find`: the nodes of a tree that fit a description, as soon as they are found."""

import os
import re
import time
from contextlib import aclosing
from typing import Any

import click

from paddock.cli.criteria import Criteria
from paddock.cli.describe import long_line, print_json, stat_fields, tell_problem
from paddock.cli.node_path import NODE_PATH
from paddock.cli.options import JSON_LINES
from paddock.cli.quantities import WholeNumber, parse_age, parse_size
from paddock.cli.service import ServiceOptions, service_options
from paddock.client.client import Client
from paddock.protocol.records import Stat


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
@service_options
def command(
    service: ServiceOptions,
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

    async def finding(client: Client) -> int:
        status = printed = 0
        nodes = client.walk(path, depth=depth, data=wants_data)
        async with aclosing(nodes):
            async for found in nodes:
                if found.error is not None:
                    status = tell_problem(found.error)
                if found.stat is None or not criteria.fits(found.path, found.stat):
                    continue
                if criteria.needs_data and not (
                    found.data is not None and criteria.fits_data(found.data)
                ):
                    continue
                if as_json:
                    print_json({"path": found.path, "name": found.name, **stat_fields(found.stat)})
                else:
                    click.echo(long_line(found.stat, found.path) if is_long else found.path)
                printed += 1
                if printed == limit:
                    break
        return status

    return service.run(finding)

"""`paddock find`: the nodes of a tree that fit a description, as soon as they are found."""

import os
import re
import time
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeVar

import click

from paddock.cli.criteria import Criteria
from paddock.cli.describe import long_line, print_json, stat_fields, tell_problem
from paddock.cli.options import JSON_LINES
from paddock.cli.paths import NODE_PATH
from paddock.cli.quantities import WholeNumber, parse_age, parse_size
from paddock.cli.service import ServiceOptions, service_options

if TYPE_CHECKING:
    from paddock.client.client import Client
    from paddock.protocol.records import Stat

_AnyText = TypeVar("_AnyText", str, bytes)


def parse_session(text: str) -> int:
    """Parse a session id in hexadecimal."""
    try:
        number = int(text, 16)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no session, such as 0x1000a2b3c4d0001") from None
    # Its sign is the first of 64 bits.
    return number - (1 << 64) if number >> 63 else number


@click.command()
@click.argument("path", default="/", type=NODE_PATH)
@click.option("--name", metavar="GLOB", multiple=True, help="The name, as in 'worker-*'.")
@click.option(
    "--path", "paths", metavar="GLOB", multiple=True, help="The whole path, as in '*/a/*'."
)
@click.option("--regex", metavar="REGEX", help="Something in the path.")
@click.option("--data", metavar="TEXT", help="Something in the data.")
@click.option("--data-regex", metavar="REGEX", help="Something in the data, as an expression.")
@click.option("--ephemeral", is_flag=True, help="Ephemeral nodes alone.")
@click.option(
    "--owner", metavar="SESSION", type=parse_session, help="Ephemeral nodes of a session."
)
@click.option("--no-children", is_flag=True, help="Nodes with nothing below them.")
@click.option(
    "--older", metavar="AGE", type=parse_age, help="Not written for so long: 30s, 12h, 7d."
)
@click.option(
    "--newer", metavar="AGE", type=parse_age, help="Written since, by this machine's clock."
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
    name: tuple[str, ...],
    paths: tuple[str, ...],
    regex: str | None,
    data: str | None,
    data_regex: str | None,
    ephemeral: bool,
    owner: int | None,
    no_children: bool,
    older: float | None,
    newer: float | None,
    larger: int | None,
    smaller: int | None,
    depth: int | None,
    limit: int | None,
    is_long: bool,
    as_json: bool,
) -> int:
    """Print the paths of all nodes at and below PATH that match every condition.

    Of several --name, or --path, one has to match. Memory is bounded, whatever the size of the
    tree, and the result is no snapshot: nodes that are created or deleted meanwhile may be missing.
    Status 1: a node could not be read.
    """
    now_ms = time.time() * 1000
    criteria = Criteria(
        names=name,
        paths=paths,
        regex=_compiled("--regex", regex),
        ephemeral=ephemeral,
        owner=owner,
        childless=no_children,
        larger=larger,
        smaller=smaller,
        written_before_ms=None if older is None else now_ms - older * 1000,
        written_after_ms=None if newer is None else now_ms - newer * 1000,
        data=None if data is None else os.fsencode(data),
        data_regex=_compiled(
            "--data-regex", None if data_regex is None else os.fsencode(data_regex)
        ),
    )

    def wants_data(path: str, stat: "Stat") -> bool:
        return criteria.needs_data and criteria.fits(path, stat)

    async def finding(client: "Client") -> int:
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


def _compiled(option: str, expression: _AnyText | None) -> "re.Pattern[_AnyText] | None":
    try:
        return None if expression is None else re.compile(expression)
    except re.error as error:
        raise click.BadParameter(f"{error}", param_hint=option) from None

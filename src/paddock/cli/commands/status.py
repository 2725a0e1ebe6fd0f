"""`paddock status`: metrics of servers, a card for one server, a table for several.

They are asked with four-letter words, without a session. On a terminal that is drawn and renewed;
in a pipe it is plain text, the same lines every time.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import click

from paddock.cli.arguments import NumberRange, default_option
from paddock.cli.monitor import Figures, look
from paddock.cli.output import duration_text, print_json, size_text
from paddock.cli.service import ServiceOptions, run, service_options
from paddock.client.session.hosts import Host, parse_hosts

if TYPE_CHECKING:
    from rich.console import RenderableType

_T = TypeVar("_T")

# A server that does not answer must not hold up those that do for long.
_TIMEOUT_MAX: Final = 5.0
_BARS: Final = "▁▂▃▄▅▆▇█"
_HISTORY: Final = 60


@click.command()
@click.option("--once", is_flag=True, help="Say it once, also on a terminal.")
@default_option(
    "--interval", "SECONDS", NumberRange(min=0.1, max=3600), 1.0, "How often it is renewed."
)
@click.option("--json", "as_json", is_flag=True, help="Once, as one JSON document.")
@service_options
def command(service: ServiceOptions, once: bool, interval: float, as_json: bool) -> int:
    """Show how servers are: mode, version, load, clients, nodes.

    All servers that --server names are asked. Status 1 says that one of them did not answer. More
    is shown of servers whose 4lw.commands.whitelist has mntr.
    """
    hosts, _ = parse_hosts(service.hosts)
    if as_json or once or not sys.stdout.isatty():
        return run(lambda: _say(service, hosts, as_json))
    return run(lambda: _show(service, hosts, interval))


async def _look(service: ServiceOptions, hosts: tuple[Host, ...]) -> list[Figures]:
    timeout = min(service.session_timeout, _TIMEOUT_MAX)
    return await asyncio.gather(*(look(host, service.tls, timeout) for host in hosts))


async def _say(service: ServiceOptions, hosts: tuple[Host, ...], as_json: bool) -> int:
    several = await _look(service, hosts)
    if as_json:
        print_json({"servers": [one.fields() for one in several]})
    elif sys.stdout.isatty():
        from rich.console import Console

        console = Console()
        console.print(drawn(several, Histories(), console.width, ""))
    else:
        print(plain(several))
    return int(any(one.problem is not None for one in several))


async def _show(service: ServiceOptions, hosts: tuple[Host, ...], interval: float) -> int:
    from rich.console import Console
    from rich.live import Live

    histories = Histories()
    before: dict[str, Figures] = {}
    footer = f"Every {interval:g} s. Ctrl-C ends it."
    console = Console()
    with Live(console=console, auto_refresh=False) as live:
        while True:
            several = await _look(service, hosts)
            for one in several:
                one.compare(before.get(one.server))
                histories.add(one)
                before[one.server] = one
            live.update(drawn(several, histories, console.width, footer), refresh=True)
            await asyncio.sleep(interval)


class Histories:
    """How many requests each server had lately, look by look."""

    def __init__(self) -> None:
        self._rates: dict[str, deque[float]] = {}

    def add(self, figures: Figures) -> None:
        if figures.requests_per_s is not None:
            rates = self._rates.setdefault(figures.server, deque(maxlen=_HISTORY))
            rates.append(figures.requests_per_s)

    def bars(self, server: str, width: int) -> str:
        """Draw the last of them, the highest one as a full bar."""
        rates = [*self._rates.get(server, ())][-width:] if width > 0 else []
        highest = max(rates, default=0.0)
        if not highest:
            return _BARS[0] * len(rates)
        return "".join(_BARS[round(rate / highest * (len(_BARS) - 1))] for rate in rates)


def card_lines(figures: Figures) -> list[tuple[str, str]]:
    """Name and value of everything that is known of a server."""
    if figures.problem is not None:
        return [("server", figures.server), ("problem", figures.problem)]
    lines = {
        "server": figures.server,
        "mode": figures.mode,
        "version": figures.version,
        "uptime": _or_none(duration_text, figures.uptime_s),
        "requests/s": _or_none(_rate, figures.requests_per_s),
        "latency ms": _latency(figures),
        "outstanding": _or_none(_count, figures.outstanding),
        "clients": _or_none(_count, figures.clients),
        "sessions": _or_none(_count, figures.sessions),
        "nodes": _or_none(_count, figures.nodes),
        "ephemerals": _or_none(_count, figures.ephemerals),
        "watches": _or_none(_count, figures.watches),
        "data": _or_none(size_text, figures.data_bytes),
        "open files": _or_none(_count, figures.open_files),
        "received": _or_none(_count, figures.received),
        "zxid": figures.zxid,
    }
    return [(name, value) for name, value in lines.items() if value]


def table_rows(several: Sequence[Figures], width: int | None = None) -> list[list[str]]:
    """Return a row of titles and one for each server, with the columns that fit into a width."""
    columns = [column for column in _COLUMNS if any(column.value(one) for one in several)]
    rows = _rows(several, columns)
    # What matters least goes first, and server and mode stay.
    for unimportant in sorted(columns, key=lambda column: -column.rank):
        if width is None or unimportant.rank < 2 or _width(rows) <= width:
            break
        columns.remove(unimportant)
        rows = _rows(several, columns)
    return rows


def plain(several: Sequence[Figures]) -> str:
    """Write them for a pipe."""
    if len(several) == 1:
        return "\n".join(f"{name:12}  {value}" for name, value in card_lines(several[0]))
    rows = table_rows(several)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def drawn(
    several: Sequence[Figures], histories: Histories, width: int, footer: str
) -> RenderableType:
    """Draw them for a terminal of a width."""
    from rich.console import Group
    from rich.text import Text

    body = _card(several[0], histories, width) if len(several) == 1 else _table(several, width)
    notes = [Text(footer, "bright_black")] if footer else []
    if any(one.problem is None and not one.has_details for one in several):
        note = "A server says more if its 4lw.commands.whitelist has mntr."
        notes.insert(0, Text(note, "bright_black"))
    return Group(body, *notes)


def _card(figures: Figures, histories: Histories, width: int) -> RenderableType:
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bright_black", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in card_lines(figures):
        if name == "server":
            continue
        text = Text(value, _style(name, value))
        if name == "requests/s":
            # Within the frame, behind the name and the number.
            room = width - 20 - len(value)
            text.append(f"  {histories.bars(figures.server, min(room, _HISTORY))}", "cyan")
        grid.add_row(name, text)
    colour = "red" if figures.problem is not None else "green"
    return Panel(grid, title=figures.server, title_align="left", border_style=colour, expand=False)


def _table(several: Sequence[Figures], width: int) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    # Two columns of space between columns, and one at each side.
    titles, *rows = table_rows(several, width - 2)
    table = Table(box=None, padding=(0, 1), header_style="bright_black")
    for title in titles:
        is_text = title in ("server", "mode", "version")
        table.add_column(title, justify="left" if is_text else "right", no_wrap=True)
    for row in rows:
        table.add_row(
            *(
                Text(cell, _style(title, cell), overflow="ellipsis")
                for title, cell in zip(titles, row, strict=True)
            )
        )
    return table


class _Column(NamedTuple):
    """A column of the table; the larger its rank, the sooner it is left out."""

    title: str
    rank: int
    value: Callable[[Figures], str | None]


def _count(number: int) -> str:
    return f"{number:,}"


def _rate(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.1f}"


def _latency(figures: Figures) -> str:
    shown = {
        "min": figures.latency_min_ms,
        "avg": figures.latency_avg_ms,
        "max": figures.latency_max_ms,
    }
    return ", ".join(f"{value:.4g} {name}" for name, value in shown.items() if value is not None)


def _or_none(text: Callable[[_T], str], value: _T | None) -> str | None:
    return None if value is None else text(value)


_COLUMNS: Final = (
    _Column("server", 0, lambda one: one.server),
    _Column("mode", 1, lambda one: one.mode or one.problem),
    _Column("version", 7, lambda one: one.version),
    _Column("req/s", 2, lambda one: _or_none(_rate, one.requests_per_s)),
    _Column("avg ms", 3, lambda one: _or_none("{:.4g}".format, one.latency_avg_ms)),
    _Column("max ms", 9, lambda one: _or_none("{:.4g}".format, one.latency_max_ms)),
    _Column("clients", 4, lambda one: _or_none(_count, one.clients)),
    _Column("sessions", 6, lambda one: _or_none(_count, one.sessions)),
    _Column("nodes", 5, lambda one: _or_none(_count, one.nodes)),
    _Column("queued", 10, lambda one: _or_none(_count, one.outstanding)),
    _Column("zxid", 8, lambda one: one.zxid),
)


def _rows(several: Sequence[Figures], columns: Sequence[_Column]) -> list[list[str]]:
    titles = [column.title for column in columns]
    return [titles, *([column.value(one) or "-" for column in columns] for one in several)]


def _width(rows: Sequence[Sequence[str]]) -> int:
    columns = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return sum(columns) + 2 * (len(columns) - 1)


def _style(name: str, value: str) -> str:
    if name == "problem":
        return "bold red"
    if name != "mode":
        return ""
    good = {"leader": "bold green", "standalone": "green", "follower": "", "observer": "cyan"}
    # What is no mode is a problem.
    return good.get(value, "yellow" if value.startswith("read-only") else "bold red")

"""`paddock status`: metrics of servers, a card for one server, a table for several.

They are asked with four-letter words, without a session. On a terminal that is drawn and renewed;
in a pipe it is plain text, the same lines every time.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import click

from paddock.cli.arguments import NumberRange, default_option
from paddock.cli.output import duration_text, print_json, size_text
from paddock.cli.service import ServiceOptions, run, server_options
from paddock.client.session.hosts import Host, parse_hosts
from paddock.monitor import Figures, look

if TYPE_CHECKING:
    from rich.console import RenderableType

_T = TypeVar("_T")

# The columns of the table by title: their rank, and what is in them. The larger the rank, the
# sooner a column is left out.
_COLUMNS: Final = {
    "server": (0, "server"),
    "mode": (1, "mode"),
    "version": (7, "version"),
    "req/s": (2, "requests/s"),
    "avg ms": (3, "average ms"),
    "max ms": (9, "slowest ms"),
    "clients": (4, "clients"),
    "sessions": (6, "sessions"),
    "nodes": (5, "nodes"),
    "queued": (10, "outstanding"),
    "zxid": (8, "zxid"),
}
# What the card has in one line.
_IN_TABLE: Final = ("average ms", "slowest ms")
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
@server_options
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
    """Return name and value of everything that is known of a server."""
    if figures.problem is not None:
        return [("server", figures.server), ("problem", figures.problem)]
    return [(name, value) for name, value in _texts(figures).items() if name not in _IN_TABLE]


def table_rows(several: Sequence[Figures], width: int | None = None) -> list[list[str]]:
    """Return a row of titles and one for each server, with the columns that fit into a width."""
    texts = [_texts(one) for one in several]
    titles = [title for title, (_, name) in _COLUMNS.items() if any(name in one for one in texts)]
    # What matters least goes first, and server and mode stay.
    by_rank = sorted(titles, key=lambda title: -_COLUMNS[title][0])
    while True:
        rows = [titles, *([one.get(_COLUMNS[title][1], "-") for title in titles] for one in texts)]
        if width is None or len(by_rank) <= 2 or _width(rows) <= width:
            return rows
        titles = [title for title in titles if title != by_rank[0]]
        del by_rank[0]


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


def _texts(figures: Figures) -> dict[str, str]:
    """Return what is known of a server, by the names of the card."""
    texts = {
        "server": figures.server,
        "mode": figures.mode or figures.problem,
        "version": figures.version,
        "uptime": _or_none(duration_text, figures.uptime_s),
        "requests/s": _or_none(_rate, figures.requests_per_s),
        "latency ms": _latency(figures),
        "average ms": _or_none("{:.4g}".format, figures.latency_avg_ms),
        "slowest ms": _or_none("{:.4g}".format, figures.latency_max_ms),
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
    return {name: value for name, value in texts.items() if value}


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

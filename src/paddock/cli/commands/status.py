"""`paddock status`: metrics of servers, asked with four-letter words, without a session."""

import asyncio
import sys
from typing import TYPE_CHECKING

import click

from paddock.cli.arguments import NumberRange, default_option
from paddock.cli.describe import print_json
from paddock.cli.service import ServiceOptions, run, service_options
from paddock.client.session.hosts import parse_hosts

if TYPE_CHECKING:
    from paddock.cli.monitor import Figures
    from paddock.client.session.hosts import Host

# A server that does not answer must not hold up those that do for long.
_TIMEOUT_MAX = 5.0


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


async def _look(service: ServiceOptions, hosts: "tuple[Host, ...]") -> "list[Figures]":
    from paddock.cli.monitor import look

    timeout = min(service.session_timeout, _TIMEOUT_MAX)
    return await asyncio.gather(*(look(host, service.tls, timeout) for host in hosts))


async def _say(service: ServiceOptions, hosts: "tuple[Host, ...]", as_json: bool) -> int:
    from paddock.cli.dashboard import Histories, drawn, plain

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


async def _show(service: ServiceOptions, hosts: "tuple[Host, ...]", interval: float) -> int:
    from rich.console import Console
    from rich.live import Live

    from paddock.cli.dashboard import Histories, drawn

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

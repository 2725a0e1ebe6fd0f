"""`paddock bench`: measure a service with a bounded load, and remove every trace."""

import secrets
import sys
from typing import Final

import click

from paddock.cli.arguments import NumberRange, WholeNumber, default_option, parse_size
from paddock.cli.bench.plan import OPERATIONS, Plan
from paddock.cli.run_under.signals import Signals, run_with_signals
from paddock.cli.service import NODE_PATH, ServiceOptions, run, service_options
from paddock.client.requests.encoder import REQUEST_BYTES_MAX

# What a request has beside its data and the path of the folder; less than that, in truth.
_BESIDE_DATA_BYTES: Final = 256


@click.command()
@default_option(
    "--ops", "NAMES", str, ",".join(OPERATIONS), "What is measured, with commas between."
)
@default_option(
    "--seconds",
    "SECONDS",
    NumberRange(min=0.01, max=60),
    0.5,
    "How long each line of the table is measured.",
)
@default_option(
    "--clients",
    "N",
    WholeNumber(1, 100),
    4,
    "How many connections ask at the same time, each with its session.",
)
@default_option(
    "--window", "N", WholeNumber(1, 1000), 100, "How many requests each of them has under way."
)
@default_option("--size", "SIZE", parse_size, "100", "The data of a node: 100, 10k.")
@default_option(
    "--watchers", "N", WholeNumber(1, 1000), 40, "How many sessions are told of a write."
)
@click.option(
    "--path",
    metavar="PATH",
    type=NODE_PATH,
    help="Below which everything is made; it must not be there yet.  [default: /paddock-bench-...]",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document, at the end.")
@service_options
def command(
    service: ServiceOptions,
    ops: str,
    seconds: float,
    clients: int,
    window: int,
    size: int,
    watchers: int,
    path: str | None,
    as_json: bool,
) -> int:
    """Measure how fast a service is, for about 15 seconds.

    Each operation is measured one at a time, then by several clients, then with many requests of
    each under way: operations in a second, and the latencies in ms, from the call to its result:
    the median, those that 99% and 99.9% did not exceed, and the longest. CPU is how busy this
    client was, which is Python in one process: near 100%, the client is the limit and not the
    server.

    Everything is made below one path and removed at the end, also after Ctrl-C. Status 1 says that
    something was refused, or a connection lost.
    """
    # Imported now, not above: `--help` needs none of it.
    from paddock.cli.bench.report import PlainReport, Report, TerminalReport
    from paddock.cli.bench.run import measure

    names = tuple(dict.fromkeys(name.strip() for name in ops.split(",")))
    for name in names:
        if name not in OPERATIONS:
            raise click.BadParameter(
                f"there is no {name!r}; there are {', '.join(OPERATIONS)}", param_hint="--ops"
            )
    plan = Plan(names, seconds, clients, window, size, watchers)
    if path == "/":
        raise click.BadParameter("the root is there already", param_hint="--path")
    folder = path or f"/paddock-bench-{secrets.token_hex(4)}"
    if size + len(folder.encode()) + _BESIDE_DATA_BYTES > REQUEST_BYTES_MAX:
        raise click.BadParameter(
            f"{size} bytes are too many: servers take requests of {REQUEST_BYTES_MAX},"
            " with all that is in them (jute.maxbuffer)",
            param_hint="--size",
        )
    problem = plan.problem()
    if problem is not None:
        raise click.UsageError(problem)

    async def measuring(_: Signals) -> int:
        kind = Report if as_json else TerminalReport if sys.stdout.isatty() else PlainReport
        return await measure(service, plan, folder, kind())

    return run(lambda: run_with_signals(measuring))

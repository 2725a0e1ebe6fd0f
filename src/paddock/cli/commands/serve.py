"""`paddock serve`: run a server until a signal stops it.

Each setting is an option, a variable and a key of a `zoo.cfg` (`paddock.server.config.settings`).
What cannot be used ends with status 2, what cannot be done (a port that is taken, a data folder in
use) with status 1, each with one line. The few lines about where to find the server go to stdout,
the log goes to stderr.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import logging
import os
import secrets
import shlex
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from paddock import __version__
from paddock.cli.arguments import PATH, WholeNumber
from paddock.cli.output import CannotBeDone, one_line, own_command
from paddock.server.config.config import ConfigError, ServerConfig
from paddock.server.config.settings import SETTINGS
from paddock.server.config.sources import Settings

if TYPE_CHECKING:
    from paddock.server.supervisor import Supervisor

logger: Final = logging.getLogger(__name__)

DEFAULT_DATA = Path("data")
# Made now: when it is needed there is no memory.
_NO_MEMORY = (
    b"paddock: there is no memory left, and the server ends. All that was acknowledged is in its"
    b" log: start it again with more memory\n"
)


class _Serve(click.Command):
    """Takes one option for each setting, and lists them by sections."""

    def __init__(self, *arguments: object, **keywords: object) -> None:
        super().__init__(*arguments, **keywords)  # type: ignore[arg-type]
        for setting in SETTINGS:
            option = setting.option
            if not option:
                continue
            names = f"{option}/--no-{option[2:]}" if setting.is_switch else option
            default = setting.default_text
            self.params.append(
                click.Option(
                    [names],
                    metavar=setting.parser.metavar or None,
                    default=None,
                    help=setting.help + (f"  [default: {default}]" if default else ""),
                )
            )

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        by_option = {setting.option: setting.section for setting in SETTINGS}
        for parameter in self.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None:
                section = by_option.get(parameter.opts[0], "Options")
                sections.setdefault(section, []).append(record)
        for section, records in sections.items():
            with formatter.section(section):
                formatter.write_dl(records)


@click.command(cls=_Serve)
@click.option(
    "--config",
    metavar="FILE",
    envvar="PADDOCK_CONFIG",
    type=PATH,
    help="A zoo.cfg. Options and variables beat what it says.",
)
@click.option("--memory", is_flag=True, help="Keep everything in memory, nothing on disk.")
@click.option(
    "--dashboard",
    metavar="PORT",
    envvar="PADDOCK_DASHBOARD",
    type=WholeNumber(min=0, max=65_535),
    help="Show it in browsers as well, at this port of 127.0.0.1: see `paddock dashboard`.",
)
def serve(config: Path | None, memory: bool, dashboard: int | None, **given: object) -> None:
    """Run a server. Ctrl-C or SIGTERM stops it; nothing that was acknowledged is lost.

    Each option but --memory may be given by an environment variable too (--tick-time-ms by
    PADDOCK_TICK_TIME_MS), and each setting by a key of a zoo.cfg. Options beat variables, which
    beat the file.
    """
    options = _given_options(given)
    if memory and ("--data" in options or "--data-log" in options):
        raise click.UsageError("--data and --memory exclude each other")

    def read() -> tuple[ServerConfig, list[str]]:
        return _server_config(config, options, memory=memory)

    try:
        settings, warnings = read()
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    if dashboard is not None:
        from paddock.cli.dashboard_process import check_installed

        check_installed()
        if settings.port is None:
            raise click.UsageError(
                "--dashboard needs a port without TLS; with TLS, start `paddock dashboard` beside"
            )
    # Options and variables stay what they are.
    _run(settings, warnings, None if config is None else lambda: read()[0], dashboard)


def _given_options(given: dict[str, object]) -> dict[str, str]:
    """Return the options of the command line as text."""
    options: dict[str, str] = {}
    for setting in SETTINGS:
        if not setting.option:
            continue
        value = given[setting.option[2:].replace("-", "_")]
        if isinstance(value, bool):
            options[setting.option] = "true" if value else "false"
        elif value is not None:
            options[setting.option] = str(value)
    return options


def _server_config(
    file: Path | None, options: dict[str, str], *, memory: bool
) -> tuple[ServerConfig, list[str]]:
    """Put the settings together; give them, and a line for each thing to warn of.

    Raises ConfigError.
    """
    settings = Settings()
    if file is not None:
        settings.read_file(file)
    settings.read_environment(os.environ)
    settings.read_options(options)
    if memory:
        settings.set("data_directory", None)
    config = settings.config()
    # Servers that share a log need no folder, and several of them may run in this one.
    if config.data_directory is None and config.shared_log is None and not memory:
        config = dataclasses.replace(config, data_directory=DEFAULT_DATA)
    config = dataclasses.replace(
        config,
        data_directory=_without_dots(config.data_directory),
        data_log_directory=_without_dots(config.data_log_directory),
    )
    return config, settings.warnings


def _without_dots(path: Path | None) -> Path | None:
    # Links stay as they were given, unless a ".." goes up from one.
    return path if path is None or ".." not in path.parts else Path(os.path.realpath(path))


def _run(
    config: ServerConfig,
    warnings: list[str],
    read_again: Callable[[], ServerConfig] | None,
    dashboard: int | None,
) -> None:
    # Imported now, not above: `--help` needs none of it.
    from paddock._loops import run
    from paddock.storage.layout import FolderInUseError

    _raise_file_limit()
    _tune_interpreter()
    with one_line():
        try:
            run(_serve_until_signal(config, warnings, read_again, dashboard))
        except ConfigError as error:
            # A file that TLS needs, say: it is read only now.
            raise click.UsageError(str(error)) from None
        except FolderInUseError as error:
            raise CannotBeDone(
                f"{error}; --data takes another folder, and --port another port (with make: make"
                " serve PORT=2182 DATA=/tmp/demo)"
            ) from None


async def _serve_until_signal(
    config: ServerConfig,
    warnings: list[str],
    read_again: Callable[[], ServerConfig] | None,
    dashboard: int | None,
) -> None:
    from paddock.cli.lifetime import Lifetime, Notifier
    from paddock.server.admin.log_handler import LogHandler
    from paddock.server.server import Server
    from paddock.server.supervisor import Supervisor

    log_handler = LogHandler(sys.stderr, config.log_format, time.monotonic)
    logging.basicConfig(level=config.log_level.upper(), handlers=[log_handler])
    for warning in warnings:
        if config.log_format == "json":
            logger.warning("%s", warning)
        else:
            # Without time and level: it is about the command line.
            click.echo(f"paddock: warning: {warning}", err=True)

    def wall_clock_ms() -> int:
        return time.time_ns() // 1_000_000

    def end_at_once() -> None:
        # Nothing may be sent, and nothing be written down, that comes from a state gone wrong.
        supervisor.abandon()
        sys.stderr.flush()
        os._exit(1)

    def make_server(config: ServerConfig) -> Server:
        return Server(
            config,
            wall_clock_ms=wall_clock_ms,
            random_bytes=secrets.token_bytes,
            on_fatal=end_at_once,
            monotonic=time.monotonic,
            lease_clock=_lease_clock,
        )

    def reload() -> None:
        assert read_again is not None
        try:
            supervisor.reload(read_again())
        except ConfigError as error:
            logger.error("SIGHUP: nothing is changed: %s", error)

    asyncio.get_running_loop().set_exception_handler(_take_note)
    lifetime = Lifetime(log_handler, Notifier(os.environ))
    supervisor = Supervisor(config, make_server, wall_clock_ms)
    lifetime.on_leaving = supervisor.abandon
    if read_again is not None and config.shared_log is not None:
        lifetime.on_hangup = reload
    lifetime.notifier.send(f"STATUS=Loading {config.data_directory or 'nothing'}")
    if not await _start(supervisor, lifetime.stop):
        lifetime.over()
        return
    host, port = supervisor.address
    lifetime.ready(f"Serving on {host}:{port}")
    _announce(config, host, port, supervisor.secure_address)
    async with _shown(dashboard, _near(host, port), config.data_directory, lifetime.stop):
        await supervisor.serve_until(lifetime.stop)
    lifetime.over()


@contextlib.asynccontextmanager
async def _shown(
    port: int | None, hosts: str, data: Path | None, stop: asyncio.Event
) -> AsyncIterator[None]:
    """Have a dashboard in this scope until we are told to stop, if there is a port for it."""
    if port is None:
        yield
        return
    from paddock.cli.dashboard_process import DashboardProcess

    process = DashboardProcess(hosts, port, data)
    await process.start(stop)
    try:
        yield
    finally:
        await process.stop()


async def _start(supervisor: Supervisor, stop: asyncio.Event) -> bool:
    """Start the first server; return False if it was told to stop meanwhile.

    A server may wait long for its log, and nobody has to wait for that to stop it.
    """
    starting = asyncio.ensure_future(supervisor.start())
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
    if stopping.done():
        starting.cancel()
        await asyncio.wait((starting,))
    stopping.cancel()
    if starting.cancelled():
        return False
    starting.result()
    return True


def _lease_clock() -> float:
    """Return a time that also passes while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _take_note(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report what a callback of the event loop has failed with.

    Without memory for a callback of the loop itself nothing goes on, and a loop that only fails
    takes a whole processor. A connection alone may fail: then it is closed.
    """
    if isinstance(context.get("exception"), MemoryError) and "protocol" not in context:
        os.write(sys.stderr.fileno(), _NO_MEMORY)
        os._exit(1)
    loop.default_exception_handler(context)


def _near(host: str, port: int) -> str:
    """Return where clients on this machine find the server."""
    # What listens everywhere is reached through the loopback.
    near = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"[{near}]:{port}" if ":" in near else f"{near}:{port}"


def _announce(config: ServerConfig, host: str, port: int, secure: tuple[str, int] | None) -> None:
    bracketed = _near(host, port)
    if config.shared_log is not None:
        where = f"Its log is {config.shared_log}"
        if config.data_directory is not None:
            where += f"\nIts cache is in {config.data_directory.absolute()}"
    elif config.data_directory is None:
        where = "Everything is kept in memory and ends with this process."
    else:
        where = f"Its data is in {config.data_directory.absolute()}"
    if secure is not None:
        where = f"TLS is spoken on {secure[0]}:{secure[1]}\n{where}"
    says = f"Paddock {__version__} listens on {host}:{port}\n{where}\n"
    if secure != (host, port):
        # Where TLS is spoken nothing short can be tried: it takes certificates.
        command, server = own_command(), shlex.quote(bracketed)
        says += (
            f"Try it:     {command} shell -server {server}\n"
            f"            {command} status --server {server}\n"
            f"            {command} ls --server {server} /\n"
            f'in Python:  with paddock.sync.connect("{bracketed}") as client: '
            f'print(client.children("/"))\n'
        )
    # The greeting need not be read.
    with contextlib.suppress(BrokenPipeError):
        click.echo(f"{says}Ctrl-C stops it.")


def _tune_interpreter() -> None:
    """Set the interpreter up for one busy event loop and one thread that waits for the disk.

    A Python thread that syncs the log must not wait 5 ms, the default, for the loop each time. And
    a full collection over a million nodes would stop the server for a second: nodes are in no
    cycles, nor is anything else here that lives long, so the oldest generation is left alone.
    """
    sys.setswitchinterval(0.0005)
    gc.set_threshold(50_000, 20, 1_000_000)


def _raise_file_limit() -> None:
    """Allow as many connections as the system lets us: the usual soft limit is 1024 files."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

"""`paddock serve`: run a server until a signal stops it.

Options beat the `zoo.cfg`, which beats the defaults. What cannot be used ends with status 2, what
cannot be done (a port that is taken, a data folder in use) with status 1, each with one line. The
few lines about where to find the server go to stdout, the log goes to stderr.
"""

import socket
from errno import EACCES, EADDRINUSE, EADDRNOTAVAIL, EPERM
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paddock import __version__
from paddock.errors import PaddockError

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

    from paddock.server.config import ServerConfig

DEFAULT_DATA = Path("data")

_PORT = click.IntRange(0, 65535)
_PORT.name = "port"  # so that it reads "'x' is not a valid port"


class _WrongConfig(click.ClickException):
    exit_code = 2


class _CannotServe(click.ClickException):
    exit_code = 1


@click.command()
@click.option("--host", metavar="HOST", help="Where to listen.  [default: 127.0.0.1]")
@click.option(
    "--port",
    metavar="PORT",
    type=_PORT,
    help="The port; 0 lets the system choose.  [default: 2181]",
)
@click.option(
    "--data",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Where the data is, made if need be.  [default: ./data]",
)
@click.option("--memory", is_flag=True, help="Keep everything in memory, nothing on disk.")
@click.option(
    "--config",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A zoo.cfg. Options beat what it says.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
    default="info",
    show_default=True,
    help="How much is logged on stderr.",
)
def serve(
    host: str | None,
    port: int | None,
    data: Path | None,
    memory: bool,
    config: Path | None,
    log_level: str,
) -> None:
    """Run a server. Ctrl-C or SIGTERM stops it; nothing that was acknowledged is lost."""
    if memory and data is not None:
        raise click.UsageError("--data and --memory exclude each other")
    given = {"host": host, "port": port, "data_directory": data}
    settings = {name: value for name, value in given.items() if value is not None}
    _run(_server_config(config, settings, memory=memory), log_level)


def _server_config(file: Path | None, options: dict[str, Any], *, memory: bool) -> "ServerConfig":
    from paddock.server.config import ConfigError, ServerConfig, parse_zoo_cfg

    try:
        settings, warnings = ({}, []) if file is None else parse_zoo_cfg(file)
        settings = {"data_directory": DEFAULT_DATA, **settings, **options}
        if memory:
            settings["data_directory"] = None
        config = ServerConfig(**settings)
    except ConfigError as error:
        raise _WrongConfig(str(error)) from None
    for warning in warnings:
        click.echo(f"paddock: warning: {warning}", err=True)
    return config


def _run(config: "ServerConfig", log_level: str) -> None:
    # Imported now, not above: `--help` and `--version` need none of it.
    import asyncio
    import logging

    logging.basicConfig(
        level=log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    _raise_file_limit()
    _tune_interpreter()
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_serve_until_signal(config))
    except PaddockError as error:
        raise _CannotServe(str(error)) from None
    except OSError as error:
        raise _CannotServe(_explain(error, config)) from None


def _loop_factory() -> "Callable[[], AbstractEventLoop]":
    try:
        import uvloop
    except ImportError:
        import asyncio

        return asyncio.new_event_loop
    return uvloop.new_event_loop


async def _serve_until_signal(config: "ServerConfig") -> None:
    import asyncio
    import gc
    import secrets
    import signal
    import time

    from paddock.server.server import Server

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    server = Server(
        config,
        wall_clock_ms=lambda: time.time_ns() // 1_000_000,
        random_bytes=secrets.token_bytes,
    )
    await server.start()
    gc.freeze()
    _announce(config, *server.address)
    await server.serve_until(stop)


def _announce(config: "ServerConfig", host: str, port: int) -> None:
    # What listens everywhere is reached through the loopback.
    near = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    bracketed = f"[{near}]:{port}" if ":" in near else f"{near}:{port}"
    if config.data_directory is None:
        where = "Everything is kept in memory and ends with this process."
    else:
        where = f"Its data is in {config.data_directory.absolute()}"
    try:
        click.echo(
            f"Paddock {__version__} listens on {host}:{port}\n"
            f"{where}\n"
            f"Try it:  bash -c 'exec 3<>/dev/tcp/{near}/{port}; echo srvr >&3; cat <&3'\n"
            f"    or:  python -c 'from kazoo.client import KazooClient as Client; "
            f'zk = Client("{bracketed}"); zk.start(); print(zk.get_children("/")); zk.stop()\'\n'
            f"Ctrl-C stops it."
        )
    except BrokenPipeError:
        # Whoever started us need not read this.
        pass


def _explain(error: OSError, config: "ServerConfig") -> str:
    """Say in one line what the system refused."""
    reason = error.strerror or str(error)
    if error.filename is not None:
        return f"{error.filename}: {reason}"
    address = f"{config.host}:{config.port}"
    if isinstance(error, socket.gaierror):
        return f"cannot listen on {address}: {config.host}: {reason}"
    if error.errno == EADDRNOTAVAIL:
        return f"cannot listen on {address}: it is no address of this machine"
    if error.errno == EADDRINUSE:
        return f"cannot listen on {address}: the port is taken by another program"
    if error.errno in (EACCES, EPERM):
        return f"cannot listen on {address}: not permitted"
    return f"cannot serve: {reason}"


def _tune_interpreter() -> None:
    """Set the interpreter up for one busy event loop and one thread that waits for the disk.

    The log's thread must not wait 5 ms, the default, for the loop each time a sync is over. And a
    full collection over a million nodes would stop everybody for a second: nodes are in no cycles,
    nor is anything else here that lives long, so the oldest generation is left alone.
    """
    import gc
    import sys

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

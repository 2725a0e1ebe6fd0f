"""`paddock dashboard`: a page that shows a service, for the browsers of those who have its link.

Its server is this process, and ends with Ctrl-C or SIGTERM. The link has a token that works once;
when it was used, the next one is printed. So whoever can read what the command prints can look.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import time
import webbrowser
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from paddock.cli.arguments import PATH, WholeNumber
from paddock.cli.dashboard_process import check_installed
from paddock.cli.output import CannotBeDone
from paddock.cli.past.remote import check_url
from paddock.cli.service import ServiceOptions, run, service_options

if TYPE_CHECKING:
    import uvicorn

DEFAULT_PORT: Final = 8090
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
_CONNECTIONS_MAX: Final = 200
# Of a request line with a long path, and all headers.
_HEADER_BYTES_MAX: Final = 64 << 10
_STOP_SECONDS: Final = 2


@dataclass(frozen=True, slots=True)
class Page:
    """Where the page is, and how it is served."""

    listen: str
    port: int
    names: tuple[str, ...]
    certificate: Path | None
    key: Path | None
    opens: bool

    @property
    def scheme(self) -> str:
        return "http" if self.certificate is None else "https"


@click.command()
@click.option(
    "--port",
    metavar="PORT",
    type=WholeNumber(min=0, max=65_535),
    default=DEFAULT_PORT,
    show_default=True,
    help="Where browsers find it; 0 takes a free one.",
)
@click.option(
    "--listen",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="Whom to listen to; another one than the loopback lets others in who have a link.",
)
@click.option(
    "--name",
    "names",
    metavar="NAME",
    multiple=True,
    help="A name that browsers call it by, beside localhost; may be given several times.",
)
@click.option("--https-cert", metavar="FILE", type=PATH, help="Serve it with TLS: certificate.")
@click.option("--https-key", metavar="FILE", type=PATH, help="Its key, if not in the same file.")
@click.option("--allow-writes", is_flag=True, help="Let those who look change nodes as well.")
@click.option("--no-open", is_flag=True, help="Open no browser, only print the link.")
@click.option(
    "--data",
    metavar="PLACE",
    type=PATH,
    envvar="PADDOCK_DATA",
    show_envvar=True,
    help="Where the history is: the data folder of the first server, if it is on this machine, or"
    " the dataDir of Apache ZooKeeper.",
)
@click.option("--log-dir", metavar="FOLDER", type=PATH, help="Apache's dataLogDir, if it has one.")
@click.option(
    "--admin",
    metavar="URL",
    envvar="PADDOCK_ADMIN",
    show_envvar=True,
    help="The admin server of the first server, which tells of sessions: http://127.0.0.1:8080.",
)
@click.option(
    "--admin-auth",
    metavar="SCHEME:CREDENTIALS",
    envvar="PADDOCK_ADMIN_AUTH",
    show_envvar=True,
    help="Who asks it about the past, such as digest:super:password.",
)
@click.option(
    "--admin-password-file",
    metavar="FILE",
    type=PATH,
    help="The password that it asks for: one line, name:password.",
)
@service_options
def dashboard(
    service: ServiceOptions,
    port: int,
    listen: str,
    names: tuple[str, ...],
    https_cert: Path | None,
    https_key: Path | None,
    allow_writes: bool,
    no_open: bool,
    data: Path | None,
    log_dir: Path | None,
    admin: str | None,
    admin_auth: str | None,
    admin_password_file: Path | None,
) -> None:
    """Show a service in a browser: servers, nodes, locks, sessions, and what changes.

    It prints a link that works once, and the next one when it was used. What a page shows and does
    is what the service allows to the credentials that are entered there, beside those of --auth,
    --sasl-user or --kerberos.
    """
    if https_key is not None and https_cert is None:
        raise click.BadParameter("needs --https-cert as well", param_hint="--https-key")
    if data is None and log_dir is not None:
        raise click.UsageError("--log-dir needs --data")
    if admin is not None:
        check_url(admin)
    check_installed()
    from paddock.dashboard.past import Place

    page = Page(listen, port, names, https_cert, https_key, opens=not no_open)
    place = Place(data, log_dir, admin, admin_auth or "", _password(admin_password_file))
    run(lambda: _serve(service, page, {"allow_writes": allow_writes, "place": place}))


def _password(path: Path | None) -> str:
    """Return the name and the password in a file; nothing without one."""
    if path is None:
        return ""
    try:
        return path.read_text().rstrip("\r\n")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise CannotBeDone(f"{path}: {reason}") from None


async def _serve(service: ServiceOptions, page: Page, options: dict[str, Any]) -> None:
    # Imported now, not above: `--help` needs none of it.
    from paddock.dashboard.access import Door
    from paddock.dashboard.app import Dashboard, Options
    from paddock.dashboard.people import Service

    _log_to_stderr()
    listener = _bound(page)
    with contextlib.closing(listener):
        port = listener.getsockname()[1]
        names = (
            page.names
            if page.listen in (*_LOOPBACK, "0.0.0.0", "::")
            else (
                *page.names,
                f"[{page.listen}]" if ":" in page.listen else page.listen,
            )
        )
        identities = ((scheme, os.fsencode(rest)) for scheme, rest in service.identities)
        shown = Service(
            service.hosts, service.session_timeout, service.tls, tuple(identities), service.sasl
        )
        made = Dashboard(
            Options(shown, **options),
            lambda leave: Door(
                port,
                time.monotonic,
                names=names,
                has_tls=page.certificate is not None,
                on_leave=leave,
            ),
        )
        server = _server(page, made.app)
        loop = asyncio.get_running_loop()

        def link() -> str:
            near = page.names[0] if page.names else _near(page.listen)
            return f"{page.scheme}://{near}:{port}/login?token={made.door.new_token()}"

        def stop() -> None:
            # Streams would be waited for. A browser that does not hang up is nothing to tell of.
            made.close_streams()
            logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
            server.should_exit = True

        made.on_enter = lambda: _print(f"A browser has come in. The next link is\n    {link()}")
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop)
        first = link()
        _print(
            f"The dashboard of {service.hosts} is at\n    {first}\n"
            "This link works once; when it was used, the next one is printed. Ctrl-C stops it."
        )
        if page.opens and _has_screen():
            await loop.run_in_executor(None, webbrowser.open, first)
        await server.serve([listener])


def _server(page: Page, app: Any) -> uvicorn.Server:
    import uvicorn

    class Server(uvicorn.Server):
        """Leaves the signals to us."""

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    return Server(
        uvicorn.Config(
            app,
            interface="asgi3",
            http="h11",
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_CONNECTIONS_MAX,
            h11_max_incomplete_event_size=_HEADER_BYTES_MAX,
            timeout_graceful_shutdown=_STOP_SECONDS,
            ssl_certfile=page.certificate,
            ssl_keyfile=page.key,
        )
    )


def _bound(page: Page) -> socket.socket:
    """Return a socket that browsers can connect to."""
    family = socket.AF_INET6 if ":" in page.listen else socket.AF_INET
    try:
        return socket.create_server((page.listen, page.port), family=family, backlog=100)
    except OSError as error:
        # Its own text has the address once more; names that are not found have negative numbers.
        known = error.errno is not None and error.errno > 0
        reason = os.strerror(error.errno or 0) if known else error.strerror or str(error)
        raise CannotBeDone(
            f"{page.listen}:{page.port}: {reason}; --port takes another port"
        ) from None


def _near(listen: str) -> str:
    """Return where a browser of this machine finds what listens there."""
    near = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(listen, listen)
    return f"[{near}]" if ":" in near else near


def _has_screen() -> bool:
    """Return whether a browser that is opened would be seen by the one who has typed this."""
    return sys.stdout.isatty() and (
        sys.platform == "darwin" or bool({"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys())
    )


def _print(text: str) -> None:
    # What nobody reads any more need not be printed.
    with contextlib.suppress(OSError):
        click.echo(text)
        sys.stdout.flush()


def _log_to_stderr() -> None:
    """Print what the dashboard has to say, the audit lines among it."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("paddock.dashboard")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False

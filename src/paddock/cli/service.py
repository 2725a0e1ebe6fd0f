"""Options and connection of every command that talks to a service.

    @click.command()
    @service_options
    def shout(service: ServiceOptions) -> int:
        async def shouting(client: Client) -> int: ...

        return service.run(shouting)

A failure is one line and status 1, or 2 for an argument that cannot be used. Ctrl-C cancels the
work, closes the session and exits with 130.
"""

import asyncio
import contextlib
import dataclasses
import functools
import logging
import os
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from paddock.api import connect
from paddock.cli.arguments import PATH, NumberRange
from paddock.cli.output import CannotBeDone, line_about, one_line
from paddock.cli.sasl import Sasl, SaslOptions, given_sasl, sasl_options
from paddock.client.client import Client
from paddock.client.requests.arguments import checked_path
from paddock.client.requests.encoder import REQUEST_BYTES_MAX
from paddock.client.session.hosts import parse_hosts
from paddock.client.states import SessionState
from paddock.errors import InvalidArgumentError, NoNodeError, PaddockError, RequestError
from paddock.protocol.paths import child_path

T = TypeVar("T")

# Opens a client of a service of the past, in a scope.
Past: TypeAlias = Callable[[], AbstractAsyncContextManager[Client]]

DEFAULT_HOSTS = "127.0.0.1:2181"

# Of completion, which stays silent without a server or an answer in time; the variable is for slow
# machines. The names of more children are megabytes.
_DEADLINE_S: Final = float(os.environ.get("PADDOCK_COMPLETION_SECONDS", "0.8"))
_CHILDREN_MAX: Final = 10_000
# Delay of the message on a terminal that no server answers yet.
_SILENT_S = 1.0


class _Identities(click.types.StringParamType):
    """Credentials; in the environment one per line, since a password may contain spaces."""

    def split_envvar_value(self, rv: str) -> list[str]:
        return [line for line in rv.split("\n") if line]


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """Which service a command uses, and its credentials."""

    hosts: str = DEFAULT_HOSTS
    session_timeout: float = 10.0
    # Scheme and credentials, in the order in which they were given.
    identities: tuple[tuple[str, str], ...] = ()
    tls: ssl.SSLContext | None = None
    sasl: Sasl | None = None
    # What the servers take at once; None stands for what they do by default.
    max_request_bytes: int | None = None
    # Where the service of a moment of the past is found, instead; None for the one of today.
    past: Past | None = None

    def resolved(self, path: str) -> "tuple[ServiceOptions, str]":
        """Return the same service without its chroot, and a path of the chroot in it."""
        hosts, chroot = parse_hosts(self.hosts)
        whole = dataclasses.replace(self, hosts=",".join(map(str, hosts)))
        return whole, chroot + path if path != "/" else chroot or path

    @property
    def has_identity(self) -> bool:
        """Whether a server can know who asks: a certificate may say so as well."""
        return bool(self.identities) or self.sasl is not None or self.tls is not None

    def run(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """Run `work` with a client on a new event loop; a failure is one line."""

        async def main() -> T:
            async with self.connect() as client:
                try:
                    return await work(client)
                except NoNodeError as error:
                    chroot = parse_hosts(self.hosts)[1]
                    hint = f"paths are below the chroot {chroot} of --server" if chroot else ""
                    raise CannotBeDone(line_about(error, hint)) from None

        return run(main)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Client]:
        """Open a session in this scope, and authenticate."""
        if self.past is not None:
            async with self.past() as client:
                yield client
            return
        async with contextlib.AsyncExitStack() as stack:
            with _tells_that_it_looks(self.hosts, self.session_timeout):
                client = await stack.enter_async_context(
                    connect(
                        self.hosts,
                        session_timeout=self.session_timeout,
                        tls=self.tls,
                        sasl=self.sasl,
                        max_request_bytes=self.max_request_bytes or REQUEST_BYTES_MAX,
                    )
                )
            for scheme, credentials in self.identities:
                await client.add_auth(scheme, os.fsencode(credentials))
            yield client


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a command on a new event loop; errors of ours and of the system become one line."""
    # Commands report failures themselves, in one line.
    logging.getLogger("paddock").addHandler(logging.NullHandler())
    with one_line():
        try:
            return asyncio.run(main())
        except KeyboardInterrupt:
            raise click.exceptions.Exit(130) from None
        except BaseExceptionGroup as group:
            # The first of several failures is the cause.
            first: BaseException = group
            while isinstance(first, BaseExceptionGroup):
                first = first.exceptions[0]
            raise first from group


@contextlib.contextmanager
def _tells_that_it_looks(hosts: str, seconds: float) -> Iterator[None]:
    """Print once, on a terminal, that no server answers yet."""
    timer = None
    if sys.stderr.isatty() and seconds >= 2 * _SILENT_S:
        # Scripts have the line at the end, which says why none was found.
        says = f"paddock: {_looking(hosts, seconds - _SILENT_S)}"
        tell = functools.partial(click.echo, says, err=True)
        timer = asyncio.get_running_loop().call_later(_SILENT_S, tell)
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()


def _looking(hosts: str, seconds: float) -> str:
    # Where nothing else was said, a server of one's own is meant.
    hint = "; `paddock serve` starts one" if hosts.partition("/")[0] == DEFAULT_HOSTS else ""
    return f"no server answers at {hosts} yet, looking on for {seconds:g} s{hint}"


def tell_states(client: Client) -> None:
    """Print to stderr when the connection is lost and restored, for commands that run long."""
    says = {
        SessionState.DISCONNECTED: "the connection was lost; looking for a server",
        SessionState.OVERDUE: "no server was found in time; the session may be over",
        SessionState.CONNECTED: "connected again",
    }

    def tell(state: SessionState) -> None:
        if state in says:
            click.echo(f"paddock: {says[state]}", err=True)

    client.add_listener(tell)


def service_options(command: Callable[..., T]) -> Callable[..., T]:
    """Add the options of the service; the command receives them as `service`."""
    return _with_service(command, opens_session=True)


def server_options(command: Callable[..., T]) -> Callable[..., T]:
    """Add the same options to a command that opens no session, so that it asks for no password."""
    return _with_service(command, opens_session=False)


def _with_service(command: Callable[..., T], *, opens_session: bool) -> Callable[..., T]:
    @click.option(
        "--server",
        metavar="HOSTS",
        envvar="PADDOCK_SERVER",
        default=DEFAULT_HOSTS,
        show_default=True,
        show_envvar=True,
        help="The service: host:port, or several with commas between, and /chroot behind.",
    )
    @click.option(
        "--timeout",
        metavar="SECONDS",
        # Milliseconds in 32 bits.
        type=NumberRange(min=0.001, max=2**31 // 1000),
        default=10.0,
        show_default=True,
        help="The session timeout, and how long to look for a server.",
    )
    @click.option(
        "--auth",
        metavar="SCHEME:CREDENTIALS",
        type=_Identities(),
        multiple=True,
        envvar="PADDOCK_AUTH",
        show_envvar=True,
        help="Who asks, such as digest:user:password; may be given several times.",
    )
    @sasl_options()
    @click.option("--tls", is_flag=True, help="Secure the connection, with the system's CAs.")
    @click.option("--tls-ca", metavar="FILE", type=PATH, help="Secure it, with these CAs (PEM).")
    @click.option("--tls-cert", metavar="FILE", type=PATH, help="Our own certificate (PEM).")
    @click.option("--tls-key", metavar="FILE", type=PATH, help="Its key, if not in the same file.")
    @functools.wraps(command)
    def wrapped(
        *arguments: object,
        server: str,
        timeout: float,
        auth: tuple[str, ...],
        sasl: SaslOptions,
        tls: bool,
        tls_ca: Path | None,
        tls_cert: Path | None,
        tls_key: Path | None,
        **others: object,
    ) -> T:
        check_hosts(server, given_by("server", "--server", "PADDOCK_SERVER"))
        says_who = given_by("auth", "--auth", "PADDOCK_AUTH")
        identities = tuple(identity_of(one, says_who) for one in auth)
        context = tls_of(tls, tls_ca, tls_cert, tls_key)
        # A moment of the past is read from files.
        proves = opens_session and others.get("past") is None
        others["service"] = ServiceOptions(
            server, timeout, identities, context, sasl.credentials(server) if proves else None
        )
        return command(*arguments, **others)

    return wrapped


def client_command(work: Callable[..., Awaitable[T]]) -> Callable[..., T]:
    """Add the options of the service to a coroutine, which then runs with a client."""

    @service_options
    @functools.wraps(work)
    def command(*, service: ServiceOptions, **others: object) -> T:
        return service.run(functools.partial(work, **others))

    return command


def past_command(work: Callable[..., Awaitable[T]]) -> Callable[..., T]:
    """Do the same, with --at for a moment of the past."""
    # Imported here: most commands need nothing of it.
    from paddock.cli.past.options import at_options

    @at_options
    @service_options
    @functools.wraps(work)
    def command(*, service: ServiceOptions, past: Past | None, **others: object) -> T:
        service = dataclasses.replace(service, past=past)
        return service.run(functools.partial(work, **others))

    return command


def given_by(parameter: str, option: str, variable: str) -> str:
    """Return the name of the source of a parameter: the option, or the variable."""
    source = click.get_current_context().get_parameter_source(parameter)
    return variable if source is ParameterSource.ENVIRONMENT else option


def check_hosts(given: str, option: str) -> None:
    """Check a connection string; raises click.BadParameter."""
    try:
        parse_hosts(given)
    except PaddockError as error:
        raise click.BadParameter(str(error), param_hint=option) from None


def identity_of(given: str, option: str) -> tuple[str, str]:
    """Parse credentials into scheme and rest; raises click.BadParameter."""
    scheme, colon, credentials = given.partition(":")
    if not scheme or not colon:
        raise click.BadParameter(
            f"{given!r} is not SCHEME:CREDENTIALS, such as digest:user:password", param_hint=option
        )
    if scheme == "sasl":
        # No server takes it so, and the password would be seen.
        raise click.BadParameter("SASL has options of its own: --sasl-user", param_hint=option)
    return scheme, credentials


def tls_of(
    wanted: bool, ca: Path | None, certificate: Path | None, key: Path | None, option: str = "--tls"
) -> ssl.SSLContext | None:
    """Return the TLS context of these options; None if none is given."""
    if not (wanted or ca or certificate or key):
        return None
    if key is not None and certificate is None:
        raise click.BadParameter(f"needs {option}-cert as well", param_hint=f"{option}-key")
    with one_line():
        for file in (ca, certificate, key):
            if file is not None:
                # The functions below do not say which of them they cannot read.
                file.open("rb").close()
        try:
            context = ssl.create_default_context(cafile=ca)
        except ssl.SSLError:
            raise CannotBeDone(f"{ca}: holds no certificate in PEM") from None
        try:
            if certificate is not None:
                context.load_cert_chain(certificate, key)
        except ssl.SSLError:
            both = f"{certificate}" if key is None else f"{certificate}, {key}"
            raise CannotBeDone(f"{both}: no certificate and the key to it, in PEM") from None
    return context


class NodePath(click.types.StringParamType):
    """The path of a node, for the type of an argument."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            checked_path(value)
        except InvalidArgumentError as error:
            named = param.opts[0] if isinstance(param, click.Option) else "path"
            raise click.UsageError(str(error).replace("path", named, 1)) from None
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        logging.getLogger("paddock").addHandler(logging.NullHandler())
        given = ctx.params.get
        try:
            service = ServiceOptions(
                given("server") or DEFAULT_HOSTS,
                identities=tuple(identity_of(one, "--auth") for one in given("auth") or ()),
                tls=tls_of(
                    bool(given("tls")), given("tls_ca"), given("tls_cert"), given("tls_key")
                ),
                sasl=given_sasl(ctx).credentials("", asks=False),
            )
            found = asyncio.run(_matching_paths(service, incomplete or "/"))
            return [CompletionItem(path) for path in found]
        except (PaddockError, click.ClickException, OSError, ValueError):
            return []


NODE_PATH: Final = NodePath()


async def _matching_paths(service: ServiceOptions, incomplete: str) -> list[str]:
    """Return the paths of nodes that begin with a text; of a single one, also its children."""
    above, slash, beginning = incomplete.rpartition("/")
    async with asyncio.timeout(_DEADLINE_S), service.connect() as client:

        async def children(path: str) -> list[str]:
            try:
                stat = await client.exists(path)
                are_few = stat is not None and 0 < stat.num_children <= _CHILDREN_MAX
                names = sorted(await client.children(path)) if are_few else []
            except RequestError:
                return []
            return [child_path(path, name) for name in names if name.isprintable()]

        found = await children(above or "/") if slash else []
        found = [path for path in found if path.rpartition("/")[2].startswith(beginning)]
        # With its children there are several, and the shell adds no space behind the path.
        return found + await children(found[0]) if len(found) == 1 else found

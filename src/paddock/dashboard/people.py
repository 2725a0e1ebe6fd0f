"""The persons who look, and the sessions of the service that they share.

* A person begins with the credentials of the command line, as a rule none, and may enter others.
  What the page shows and does is what the service allows to these.
* All persons with the same credentials share one session (`Connection`). It is opened for the first
  of them and closed after the last; that of the command line stays. So the service has one session
  for the dashboard, however many browsers look.
* A connection authenticates by SASL once. So a user of SASL who is entered takes the place of the
  one before, also of the one of the command line; other credentials add up.
* A session that is over is begun anew; a service that is away is looked for until it is back. Who
  asks meanwhile gets 503 at once.
* Credentials that the service has refused are not tried again. Only a ticket of Kerberos may be
  another one the next time, and who has no credentials may be served one day.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

from paddock.api import connect
from paddock.client.client import Client
from paddock.client.session.handshake import SaslCredentials
from paddock.client.session.hosts import parse_hosts
from paddock.client.session.kerberos import KerberosCredentials
from paddock.dashboard.access import RefusedError, Visitor
from paddock.dashboard.watched import Watched
from paddock.errors import (
    AuthenticationError,
    ConnectionLostError,
    InvalidArgumentError,
    PaddockError,
    SessionClosedRequireSaslError,
    UnimplementedError,
)

logger: Final = logging.getLogger(__name__)

T = TypeVar("T")
# Scheme and credentials, in the order in which they were given. Those of `SASL` are sent in another
# way than the others, and have a user and a password.
Credentials: TypeAlias = tuple[tuple[str, bytes], ...]

CONNECTIONS_MAX: Final = 20
ANSWER_SECONDS: Final = 30.0
"""How many sets of credentials there may be at once, and how long the service may take."""
CREDENTIALS_MAX: Final = 8
SASL: Final = "sasl"
_RETRY_SECONDS: Final = 1.0
_REFUSED_SECONDS: Final = 30.0
_CLOSE_SECONDS: Final = 1.0

_LOST: Final = "The connection was lost; looking for a server."
_REFUSED: Final = "The service refuses these credentials."
_REQUIRED: Final = "The service serves only those who have logged in."


@dataclass(frozen=True, slots=True)
class Service:
    """The service that is shown."""

    hosts: str
    session_timeout: float = 10.0
    tls: ssl.SSLContext | None = None
    # Of everybody who looks, at the beginning.
    credentials: Credentials = ()
    sasl: SaslCredentials | KerberosCredentials | None = None

    @property
    def servers(self) -> list[str]:
        """The servers, each as host:port."""
        return [str(host) for host in parse_hosts(self.hosts)[0]]

    @property
    def root(self) -> str:
        """What the paths of the page are below."""
        return parse_hosts(self.hosts)[1] or "/"


@dataclass(slots=True)
class Names:
    """Who the service takes somebody for."""

    names: list[str] = field(default_factory=list)
    is_super: bool = False

    def fields(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {"names": self.names, "is_super": self.is_super}


class Connection:
    """The session of all persons with the same credentials."""

    def __init__(self, service: Service, credentials: Credentials) -> None:
        self._service = service
        self.credentials: Final = credentials
        self._sasl = next(
            (_user_of(secret) for scheme, secret in credentials if scheme == SASL), service.sasl
        )
        self._client: Client | None = None
        # Whether it is connected, or why not.
        self.is_connected = False
        self.text = f"Looking for a server at {service.hosts}."
        # Credentials that the service has refused.
        self._refused: AuthenticationError | None = None
        # Set once it was connected, or the first attempt has failed.
        self._first = asyncio.Event()
        # Whether the service was Paddock when it was connected last; None if it never was.
        self.is_paddock: bool | None = None
        self._keeper: asyncio.Task[None] | None = None
        self.watched: Final = Watched()
        self.persons = 0
        # Who the service took us for when it was asked last.
        self.known_names = Names()

    def start(self) -> None:
        """Look for the service, and keep a session of it until `close`."""
        self._keeper = asyncio.create_task(self._keep())

    async def close(self) -> None:
        """End the session."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait((self._keeper,))
        await self.watched.close()

    async def wait_first(self, seconds: float) -> None:
        """Wait for its first connection, or for the first attempt to fail."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._first.wait()

    def check(self) -> None:
        """Raise RefusedError if the credentials are refused."""
        if self._refused is not None:
            raise RefusedError(403, self.text)

    @property
    def client(self) -> Client:
        """The client. Raises RefusedError (503) while no server answers."""
        client = self._client
        if client is None or not client.state.is_connected:
            raise RefusedError(503, self.text)
        return client

    async def ask(self, request: Callable[[Client], Awaitable[T]]) -> T:
        """Ask the service something. Raises what the client raises, and RefusedError (503)."""
        client = self.client
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await request(client)
        except TimeoutError:
            raise RefusedError(503, f"No answer within {ANSWER_SECONDS:.0f} s.") from None

    async def names(self) -> Names:
        """Return who the service takes us for."""

        async def asking(client: Client) -> list[tuple[str, str]]:
            try:
                return await client.who_am_i()
            except UnimplementedError:
                # Before 3.7. It is what was entered then.
                return [(scheme, "") for scheme, _ in self.credentials]

        found = await self.ask(asking)
        self.known_names = Names(
            [f"{scheme}:{user}" if user else scheme for scheme, user in found],
            any(scheme == "super" for scheme, _ in found),
        )
        return self.known_names

    async def latest_names(self) -> Names:
        """Return who the service takes us for, or while it is away, whom it took us for."""
        return await self.names() if self.is_connected else self.known_names

    async def _keep(self) -> None:
        while self._refused is None:
            client = connect(
                self._service.hosts,
                session_timeout=self._service.session_timeout,
                tls=self._service.tls,
                sasl=self._sasl,
                # A server that can only be read from is better than none.
                read_only=True,
            )
            pause = _RETRY_SECONDS
            try:
                await self._live(client)
            except AuthenticationError as refused:
                self._take_refusal(refused)
                pause = _REFUSED_SECONDS
            except (PaddockError, RefusedError) as error:
                logger.debug("no session: %s", error)
                self._tell(False, f"No server answers at {self._service.hosts}; looking on.")
            finally:
                self._first.set()
                self._client = None
                # A service that is away would be looked for; its session ends without us.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_CLOSE_SECONDS):
                        await client.close()
            if self._refused is None:
                await asyncio.sleep(pause)

    def _take_refusal(self, refused: AuthenticationError) -> None:
        """Say that the service refuses us, and note whether that is for good."""
        service = self._service
        is_missing = isinstance(refused, SessionClosedRequireSaslError)
        text = _REQUIRED if is_missing else _REFUSED
        if self._sasl is not None:
            text = f"{_REFUSED} {refused.reason}."
        if self.credentials == service.credentials and text != self.text:
            # Those of the command line.
            logger.warning("%s: %s", service.hosts, text)
        self._tell(False, text, is_refused=True)
        # Another ticket may be accepted the next time, but not what was entered beside it.
        has_ticket = isinstance(self._sasl, KerberosCredentials) and refused.operation != "add_auth"
        if not (is_missing or has_ticket):
            self._refused = refused

    async def _live(self, client: Client) -> None:
        """Use a session until it is over."""
        await client.start()
        for scheme, credentials in self.credentials:
            if scheme != SASL:
                await client.add_auth(scheme, credentials)
        self._client = client
        self.is_paddock = client.is_exact
        await self.names()
        async with contextlib.AsyncExitStack() as scope:
            scope.push_async_callback(self.watched.leave)
            async for state in client.states():
                if state.is_final:
                    # After AUTH_FAILED, by a reconnect, this raises why.
                    await client.exists("/")
                    raise ConnectionLostError("connect", None, "the session has expired")
                if state.is_connected:
                    # Events may have been lost, so all that is shown is read anew.
                    self.watched.use(client)
                    self._tell(True, "Connected.")
                    self._first.set()
                else:
                    self._tell(False, _LOST)

    def _tell(self, is_connected: bool, text: str, *, is_refused: bool = False) -> None:
        if (self.is_connected, self.text) != (is_connected, text):
            self.is_connected, self.text = is_connected, text
            self.watched.tell_state(is_connected, text, is_refused=is_refused)


class People:
    """Who has which connection."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.base: Final = Connection(service, service.credentials)
        self._connections: dict[Credentials, Connection] = {service.credentials: self.base}
        self._of: dict[Visitor, Connection] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Look for the service."""
        self.base.start()

    async def close(self) -> None:
        """End all sessions."""
        await asyncio.gather(*(one.close() for one in self._connections.values()), *self._closing)

    def all(self) -> list[Connection]:
        """Return all connections."""
        return [*self._connections.values()]

    def of(self, visitor: Visitor) -> Connection:
        """Return the connection of a visitor."""
        return self._of.get(visitor, self.base)

    async def introduce(self, visitor: Visitor, scheme: str, credentials: bytes) -> Connection:
        """Let a visitor have more credentials. Raises RefusedError if they are not taken."""
        whole = self.of(visitor).credentials
        if scheme == SASL:
            whole = tuple(one for one in whole if one[0] != SASL)
        if (scheme, credentials) not in whole:
            whole = (*whole, (scheme, credentials))
        if len(whole) > CREDENTIALS_MAX:
            raise RefusedError(409, f"At most {CREDENTIALS_MAX} credentials can be used at once.")
        return await self._move(visitor, whole)

    async def forget(self, visitor: Visitor) -> Connection:
        """Let a visitor have what everybody has at the beginning."""
        return await self._move(visitor, self._service.credentials)

    def leave(self, visitor: Visitor) -> None:
        """Forget a visitor whose cookie is over."""
        self._drop(self._of.pop(visitor, None))

    async def _move(self, visitor: Visitor, credentials: Credentials) -> Connection:
        connection = self._connections.get(credentials)
        if connection is None:
            if len(self._connections) >= CONNECTIONS_MAX:
                raise RefusedError(429, "Too many different persons look at once.")
            connection = self._connections[credentials] = Connection(self._service, credentials)
            connection.start()
        connection.persons += 1
        try:
            await connection.wait_first(self._service.session_timeout)
            connection.check()
        except BaseException:
            self._drop(connection)
            raise
        self._drop(self._of.pop(visitor, None))
        self._of[visitor] = connection
        return connection

    def _drop(self, connection: Connection | None) -> None:
        """Close a connection that nobody has any more."""
        if connection is None:
            return
        connection.persons -= 1
        if connection.persons or connection is self.base:
            return
        del self._connections[connection.credentials]
        closing = asyncio.create_task(connection.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)


def credentials_of(scheme: object, credentials: object) -> tuple[str, bytes]:
    """Check what a person has entered. Raises InvalidArgumentError."""
    if not isinstance(scheme, str) or not scheme.isascii() or not scheme.isalnum():
        raise InvalidArgumentError("scheme: expected a name, such as digest")
    if not isinstance(credentials, str) or (scheme in ("digest", SASL) and ":" not in credentials):
        raise InvalidArgumentError("credentials: expected a text, such as user:password")
    given = credentials.encode("utf-8", "surrogatepass")
    if scheme == SASL:
        # Raises it, too.
        _user_of(given)
    return scheme, given


def _user_of(credentials: bytes) -> SaslCredentials:
    user, _, password = credentials.decode("utf-8", "surrogatepass").partition(":")
    return SaslCredentials(user, password)

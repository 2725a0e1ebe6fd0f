"""Finds a server for a session, with a backoff between rounds, and records what went wrong.

A name is resolved again for every attempt. It may have several addresses: they are tried in random
order, so that clients spread over them, each with its share of the time. An address counts as
reached when the handshake succeeds, not when it listens.

Servers are tried in turn. After a round without success there is a pause, random and longer each
time; also after a connection without any reply: a server that accepts and drops clients must not
cause a busy loop.

A new session may be asked for as an exact one, with a password that upstream ignores. A service
that does not ignore it refuses us. So does any other one that is out of service, and both look the
same. So a host that has refused twice is asked for an ordinary session; and if it grants one, for
an exact one once more. Only who refuses that, too, is asked for an ordinary session to keep.

A server that has lost its peers may serve reads. A session that is attached to one looks for a
read-write server: it sends all servers the four-letter word `isro`, in turn, with growing pauses.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, TypeVar, cast

from paddock.client.session.digest_md5 import DigestConversation
from paddock.client.session.handshake import (
    SaslConversation,
    SaslCredentials,
    SessionCredentials,
    authenticate,
    perform_handshake,
)
from paddock.client.session.hosts import Backoff, Host, HostRing, Randomness
from paddock.client.session.kerberos import KerberosCredentials, KerberosLogin
from paddock.client.session.session_log import SessionLog
from paddock.client.session.transport import Transport
from paddock.client.time_limits import waited_for
from paddock.errors import RemoteProtocolError
from paddock.protocol.exact import ExactTerms
from paddock.protocol.records import ConnectResponse

T = TypeVar("T")

logger: Final = logging.getLogger(__name__)

_ATTEMPT_SECONDS_MIN: Final = 0.5
# How often we can try before the session may be over, at least: one handshake that is not answered
# must not cost us the session, also if there is only one server.
_ATTEMPTS_MIN: Final = 3
# What a client adds to a proof of DIGEST-MD5, so that no two of them are alike.
_NONCE_BYTES: Final = 16
# Between two questions for a read-write server: short at first, and at least so many in a session
# timeout, since the session expires after it.
_FIRST_PAUSE: Final = 0.1
_PAUSES_MIN: Final = 4
_ANSWER_SECONDS: Final = 1.0
# How often a host may refuse an exact session before it is asked for an ordinary one.
_REFUSALS_MAX: Final = 2


class Attachment(NamedTuple):
    """A connection, what the server answered to our handshake, and when we had sent it."""

    host: Host
    transport: Transport
    reply: ConnectResponse
    # Those of an exact session, or flags alone.
    terms: ExactTerms | None
    asked_at: float


class Reconnector:
    """Finds servers for one session."""

    def __init__(
        self,
        hosts: HostRing,
        credentials: SessionCredentials,
        random: Randomness,
        *,
        tls: ssl.SSLContext | None,
        sasl: SaslCredentials | KerberosCredentials | None,
    ) -> None:
        self._sasl = KerberosLogin(sasl) if isinstance(sasl, KerberosCredentials) else sasl
        self._loop = asyncio.get_running_loop()
        self._log = SessionLog(logger, credentials)
        # How many attempts were in vain.
        self.failed_attempts = 0
        self._hosts = hosts
        self._credentials = credentials
        self._connector = Connector(self._loop, random, tls)
        self._random = random
        self._tls = tls
        self._backoff = Backoff(random)
        # What went wrong last, by the host that it went wrong with.
        self._failures: dict[Host, str] = {}
        # How often a host has refused an exact session since it was asked for an ordinary one.
        self._refusals: dict[Host, int] = {}

    async def attach(self, last_zxid: int, session_timeout: float) -> Attachment:
        """Try servers until one answers us, if only that our session is over.

        Each has a part of the session timeout. Raises AuthenticationError if one does not accept
        our SASL credentials.
        """

        limit = max(session_timeout / max(len(self._hosts), _ATTEMPTS_MIN), _ATTEMPT_SECONDS_MIN)
        while True:
            host = self._hosts.take()
            try:
                found = await self._ask(host, last_zxid, limit)
            except UnreachableError as error:
                self._failures[host] = str(error)
                self.failed_attempts += 1
                self._log.debug("%s: %s", host, error, server=str(host), reason=str(error))
            else:
                self._failures.clear()
                return found
            if self._hosts.is_round_over():
                await asyncio.sleep(self._backoff.next())

    async def _ask(self, host: Host, last_zxid: int, limit: float) -> Attachment:
        """Ask a host for our session, or for a new one. Raises UnreachableError."""
        if not self._credentials.asks_exact or self._refusals.get(host, 0) < _REFUSALS_MAX:
            return await self._reach(host, last_zxid, limit)
        deadline = self._loop.time() + limit
        del self._refusals[host]
        served = await self._reach(host, last_zxid, limit, plainly=True)
        # This session is left to its timeout. Its connection may be the last one that we can have.
        served.transport.abort()
        try:
            return await self._reach(host, last_zxid, deadline - self._loop.time())
        except UnreachableError:
            left = deadline - self._loop.time()
            found = await self._reach(host, last_zxid, left, plainly=True)
        self._log.info("%s refuses exact ones: it is an ordinary one", host, server=str(host))
        return found

    async def _reach(
        self, host: Host, last_zxid: int, limit: float, *, plainly: bool = False
    ) -> Attachment:
        """Connect to a host and shake hands; `plainly`, a new session is an ordinary one."""
        request = self._credentials.request(last_zxid, plainly=plainly)
        asks_exact = self._credentials.asks_exact and not plainly

        async def introduce(transport: Transport) -> Attachment:
            asked_at = self._loop.time()
            try:
                reply, terms = await perform_handshake(transport, request)
                if asks_exact and reply.timeout_ms <= 0:
                    raise RemoteProtocolError("it refused to open a session")
            except (OSError, RemoteProtocolError):
                if asks_exact:
                    self._refusals[host] = self._refusals.get(host, 0) + 1
                raise
            self._credentials.check(reply)
            if self._sasl is not None and not self._credentials.is_refused(reply):
                await authenticate(transport, self._conversation(host, transport))
            return Attachment(host, transport, reply, terms, asked_at)

        return await self._connector.reach(host, introduce, limit)

    def _conversation(self, host: Host, transport: Transport) -> SaslConversation:
        if isinstance(self._sasl, KerberosLogin):
            return self._sasl.start(host.name, transport.peer_address)
        assert self._sasl is not None
        return DigestConversation(self._sasl, self._random.randbytes(_NONCE_BYTES).hex().encode())

    async def pause_after(self, *, was_of_use: bool) -> None:
        """Wait as long as we should when a connection is lost."""
        if was_of_use:
            self._backoff.reset()
        else:
            await asyncio.sleep(self._backoff.next())

    async def find_better(self, transport: Transport, session_timeout: float) -> Host | None:
        """While attached to a read-only server, wait for one that can be written to.

        It is the next one to be tried. None if the connection was lost before.
        """
        searching = find_read_write(self._hosts, self._random, self._tls, session_timeout)
        search = self._loop.create_task(searching)
        try:
            await asyncio.wait((search, transport.lost), return_when=asyncio.FIRST_COMPLETED)
            if not search.done():
                return None
            self._hosts.prefer(search.result())
            return search.result()
        finally:
            search.cancel()
            await asyncio.wait((search,))

    def tried(self) -> str:
        """Describe what went wrong since the last success, host by host."""
        tried = [f"{host}: {failure}" for host, failure in self._failures.items()]
        return "; ".join(tried) or f"no answer from {self._hosts}"


async def find_read_write(
    hosts: HostRing, random: Randomness, tls: ssl.SSLContext | None, session_timeout: float
) -> Host:
    """Wait for a server that accepts writes, and return it."""
    longest = session_timeout / _PAUSES_MIN / len(hosts)
    pauses = Backoff(random, _FIRST_PAUSE, max(longest, _FIRST_PAUSE))
    while True:
        for host in hosts:
            await asyncio.sleep(pauses.next())
            if await is_read_write(host, tls):
                return host


async def is_read_write(host: Host, tls: ssl.SSLContext | None = None) -> bool:
    """Return whether `host` accepts writes; False if it cannot be reached."""
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection(host.name, host.port, ssl=tls)
            try:
                writer.write(b"isro")
                return await reader.read(16) == b"rw"
            finally:
                writer.transport.abort()
    except (OSError, TimeoutError, ValueError):
        return False


class UnreachableError(Exception):
    """A host could not be attached to; the message says why, for each of its addresses."""


class Connector:
    """Makes connections to hosts."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, random: Randomness, tls: ssl.SSLContext | None
    ) -> None:
        self._loop = loop
        self._random = random
        self._tls = tls

    async def reach(
        self, host: Host, attempt: Callable[[Transport], Awaitable[T]], limit: float
    ) -> T:
        """Connect to a host; return the result of `attempt`, within `limit` seconds.

        Raises UnreachableError.
        """
        deadline = self._loop.time() + limit
        try:
            async with asyncio.timeout(limit):
                addresses = await self._resolve(host)
        except (OSError, TimeoutError, ValueError) as error:
            raise UnreachableError(f"the name cannot be resolved: {_explain(error)}") from error
        failures = []
        for number, address in enumerate(addresses):
            share = (deadline - self._loop.time()) / (len(addresses) - number)
            try:
                async with asyncio.timeout(share):
                    return await self._try(host, address, attempt)
            except (OSError, TimeoutError, RemoteProtocolError) as error:
                prefix = "" if address == host.name else f"{address}: "
                failures.append(f"{prefix}{_explain(error)}")
        raise UnreachableError(", ".join(failures))

    async def _try(
        self, host: Host, address: str, attempt: Callable[[Transport], Awaitable[T]]
    ) -> T:
        transport = Transport()
        try:
            await self._loop.create_connection(
                lambda: cast(asyncio.Protocol, transport),
                address,
                host.port,
                ssl=self._tls,
                server_hostname=None if self._tls is None else host.name,
            )
        except ConnectionResetError as error:
            if self._tls is None:
                raise
            raise ConnectionResetError("it ends the TLS handshake; is TLS spoken there?") from error
        try:
            return await attempt(transport)
        except BaseException:
            transport.abort()
            raise

    async def _resolve(self, host: Host) -> list[str]:
        try:
            ipaddress.ip_address(host.name)
        except ValueError:
            found = await self._loop.getaddrinfo(host.name, host.port, type=socket.SOCK_STREAM)
            addresses = list(dict.fromkeys(str(one[4][0]) for one in found))
            return self._random.sample(addresses, len(addresses))
        else:
            return [host.name]


def _explain(error: Exception) -> str:
    """Say in a few words what went wrong."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or error}"
    if isinstance(error, TimeoutError):
        # Who was cancelled by it may have said what it waited for.
        return next(iter(waited_for(error)), "no answer in time")
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    if isinstance(error, OSError) and error.strerror is not None:
        return error.strerror
    return str(error) or type(error).__name__

"""How a server is reached: its name resolved, each of its addresses tried, and what went wrong.

A name is resolved again for every attempt, since names move. It may stand for several addresses:
they are tried in a random order, so that clients spread over them, and each has its share of the
time. An address counts as reached when what is wanted of it succeeds, not when it listens.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

from paddock.client.session.hosts import Host, Randomness
from paddock.client.session.transport import Transport
from paddock.errors import RemoteProtocolError

T = TypeVar("T")


class UnreachableError(Exception):
    """A host did not give us what we wanted; the message says why, for each of its addresses."""


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
        """Connect to a host and do something with the connection, within so many seconds.

        Gives what that gave; the connection stands then. Raises UnreachableError.
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
        return "no answer in time"
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    if isinstance(error, OSError) and error.strerror is not None:
        return error.strerror
    return str(error) or type(error).__name__

"""A port on which TLS is spoken.

It accepts connections by itself, since much happens before there is one to serve: a peer is counted
from its first packet on, costs next to nothing until it says something, must say what begins TLS,
and has a limited time to agree on it. How many are at it together is limited, too: one more takes
the place of whoever has been at it longest, since an honest peer is done in no time. Only then a
`Connection` takes over, and behaves as on any other port.

A unified port serves those as well who do not begin with TLS, without it.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Mapping
from errno import EMFILE, ENFILE, ENOBUFS, ENOMEM
from typing import Final, cast

from paddock.server.config.config import ServerConfig
from paddock.server.core import Core
from paddock.server.tls.context import Credentials
from paddock.server.tls.hostnames import comes_from_its_host

logger: Final = logging.getLogger(__name__)

# What an authority of ours has signed may be larger than what anybody may say.
_CERTIFICATE_BYTES_MAX: Final = 1 << 14

# The first byte of TLS; as the length of a frame or a four-letter word it makes no sense.
_TLS_HANDSHAKE: Final = 0x16
# How many are accepted in a row before others get their turn.
_ACCEPTED_AT_ONCE: Final = 100
# Seconds to wait when the system has no room for another connection.
_PAUSE: Final = 1.0
# Seconds in which a peer has to answer that it is over.
_GOODBYE_TIMEOUT: Final = 5.0


class Listener:
    """One port, on every address that its host has."""

    def __init__(self, config: ServerConfig, credentials: Credentials, *, is_unified: bool) -> None:
        self._config = config
        self._credentials = credentials
        self._is_unified = is_unified
        self._timeout = config.tls_handshake_timeout_ms / 1000
        self._limit = config.tls_max_handshakes
        # Who counts those that come, and who serves each of them; known from the start on.
        self._service: Core | None = None
        self._connection: Callable[[], asyncio.Protocol] | None = None
        self.sockets: list[socket.socket] = []
        # One for each peer that is not served yet, in the order of coming.
        self._arrivals: dict[asyncio.Task[None], None] = {}
        # Those of them that have been told to give up.
        self._leaving: set[asyncio.Task[None]] = set()
        self._is_accepting = False
        self._resumption: asyncio.TimerHandle | None = None

    async def bind(self, host: str, port: int) -> None:
        """Take the port, without accepting anybody yet; raises OSError."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        try:
            for family, kind, protocol, _, address in dict.fromkeys(found):
                self._bind(socket.socket(family, kind, protocol), address)
        except BaseException:
            self._close_sockets()
            raise

    def start(self, service: Core, connection: Callable[[], asyncio.Protocol]) -> None:
        self._service, self._connection = service, connection
        self._resume()

    async def close(self) -> None:
        """Close the port, and leave those who are not served yet."""
        self._pause()
        self._close_sockets()
        for arrival in list(self._arrivals):
            self._send_away(arrival)
        await asyncio.gather(*self._leaving, return_exceptions=True)

    def _bind(self, listening: socket.socket, address: tuple[object, ...]) -> None:
        self.sockets.append(listening)
        listening.setblocking(False)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if listening.family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind(address)
        listening.listen(self._config.listen_backlog)

    def _close_sockets(self) -> None:
        for listening in self.sockets:
            listening.close()
        self.sockets = []

    def _pause(self) -> None:
        if self._resumption is not None:
            self._resumption.cancel()
            self._resumption = None
        if self._is_accepting:
            self._is_accepting = False
            for listening in self.sockets:
                asyncio.get_running_loop().remove_reader(listening)

    def _resume(self) -> None:
        self._resumption = None
        if not self._is_accepting:
            self._is_accepting = True
            for listening in self.sockets:
                asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                accepted, peer = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in (EMFILE, ENFILE, ENOBUFS, ENOMEM):
                    raise
                logger.error("no connection can be accepted: %s", error.strerror)
                self._pause()
                self._resumption = asyncio.get_running_loop().call_later(_PAUSE, self._resume)
                return
            self._receive(accepted, str(peer[0]))

    def _receive(self, accepted: socket.socket, address: str) -> None:
        service, connection = self._service, self._connection
        assert service is not None
        assert connection is not None
        accepted.setblocking(False)
        if not service.admission.reserve(address):
            accepted.close()
            return
        if 0 < self._limit <= len(self._arrivals):
            logger.warning("%d agree on TLS, and one more; closing the oldest", self._limit)
            self._send_away(next(iter(self._arrivals)))
        arrival = asyncio.get_running_loop().create_task(
            self._welcome(accepted, address, service, connection)
        )
        self._arrivals[arrival] = None
        arrival.add_done_callback(self._arrived)

    def _arrived(self, arrival: asyncio.Task[None]) -> None:
        self._arrivals.pop(arrival, None)
        self._leaving.discard(arrival)

    def _send_away(self, arrival: asyncio.Task[None]) -> None:
        del self._arrivals[arrival]
        self._leaving.add(arrival)
        # Not now: what is cancelled before its first step cleans nothing up.
        asyncio.get_running_loop().call_soon(arrival.cancel)

    async def _welcome(
        self,
        accepted: socket.socket,
        address: str,
        service: Core,
        connection: Callable[[], asyncio.Protocol],
    ) -> None:
        """Secure a connection, then let it be served; never raises but when cancelled."""
        gate: _Gate | None = None
        try:
            async with asyncio.timeout(self._timeout):
                gate = await self._secure(accepted, address)
        except TimeoutError:
            logger.warning("%s: no TLS within %g s; closing it", address, self._timeout)
        except (OSError, ssl.CertificateError) as error:
            logger.warning(
                "%s: TLS failed: %s", address, _reason(error), extra={"address": address}
            )
        finally:
            service.admission.release(address)
        if gate is not None:
            gate.open(connection())

    async def _secure(self, accepted: socket.socket, address: str) -> _Gate | None:
        try:
            first = await _first_byte(accepted)
            if first != _TLS_HANDSHAKE and not (self._is_unified and first is not None):
                if first is not None:
                    logger.warning(
                        "%s: does not speak TLS; closing it", address, extra={"address": address}
                    )
                accepted.close()
                return None
        except BaseException:
            accepted.close()
            raise
        loop = asyncio.get_running_loop()
        # The transport owns the socket from here on, and closes it if TLS fails.
        gate = _Gate()
        if first != _TLS_HANDSHAKE:
            await loop.connect_accepted_socket(lambda: gate, accepted)
            return gate
        await loop.connect_accepted_socket(
            lambda: gate,
            accepted,
            ssl=self._credentials.context,
            ssl_handshake_timeout=self._timeout,
            ssl_shutdown_timeout=_GOODBYE_TIMEOUT,
        )
        try:
            if await self._is_welcome(gate, address):
                return gate
        except BaseException:
            gate.abort()
            raise
        gate.abort()
        return None

    async def _is_welcome(self, gate: _Gate, address: str) -> bool:
        if gate.certificate_size() > _CERTIFICATE_BYTES_MAX:
            # Its subject would go along with every write.
            logger.warning("%s: its certificate is too large; closing it", address)
            return False
        if not self._config.tls_client_hostname_verification:
            return True
        certificate = gate.certificate()
        if not certificate or await comes_from_its_host(certificate, address):
            return True
        logger.warning("%s: its certificate is not for this host; closing it", address)
        return False


class _Gate(asyncio.Protocol):
    """Holds a connection between the end of its handshake and the one who serves it."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._early = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        self._early += data

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None

    def certificate(self) -> Mapping[str, object]:
        """Give what the peer's certificate says, nothing if it has shown none."""
        tls = self._tls()
        return {} if tls is None else tls.getpeercert() or {}

    def certificate_size(self) -> int:
        tls = self._tls()
        return 0 if tls is None else len(tls.getpeercert(binary_form=True) or b"")

    def open(self, connection: asyncio.Protocol) -> None:
        """Let the connection be served, unless it is gone already."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        transport.set_protocol(connection)
        connection.connection_made(transport)
        if transport.is_closing():
            return
        # First this: what has come already may be enough for the connection to stop reading.
        transport.resume_reading()
        if self._early:
            connection.data_received(self._early)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _tls(self) -> ssl.SSLObject | None:
        if self._transport is None:
            return None
        tls: ssl.SSLObject | None = self._transport.get_extra_info("ssl_object")
        return tls


async def _first_byte(accepted: socket.socket) -> int | None:
    """Wait for a peer's first byte, and leave it where it is; None if there will be none."""
    loop = asyncio.get_running_loop()
    while True:
        readable: asyncio.Future[None] = loop.create_future()
        loop.add_reader(accepted, _wake, readable)
        try:
            await readable
        finally:
            loop.remove_reader(accepted)
        try:
            data = accepted.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            continue
        return data[0] if data else None


def _wake(readable: asyncio.Future[None]) -> None:
    if not readable.done():
        readable.set_result(None)


def _reason(error: Exception) -> str:
    """Say in a few words why TLS was not agreed on."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    return str(error) or type(error).__name__

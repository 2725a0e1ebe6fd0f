"""A port that accepts TLS.

It accepts connections itself, since much happens before there is one to serve. A connection counts
from its first packet, costs next to nothing until its first byte, must begin with a TLS handshake,
and has a timeout for it. The number of handshakes in flight is limited: one more replaces the
oldest, since an honest client's handshake is short. Then a `Connection` takes over, as on any port.

A unified port also serves clients that do not begin with TLS.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from errno import EMFILE, ENFILE, ENOBUFS, ENOMEM
from typing import Final, Protocol, cast

from paddock.server.config.config import ServerConfig
from paddock.server.connections.ports import address_of, explained
from paddock.server.tls.context import Credentials
from paddock.server.tls.hostnames import comes_from_its_host

logger: Final = logging.getLogger(__name__)

# A subject goes along with every write, so certificates have a limit.
_CERTIFICATE_BYTES_MAX: Final = 1 << 14

# The first byte of TLS. No frame and no four-letter word begins with it.
_TLS_HANDSHAKE: Final = 0x16
# Connections accepted in a row before other callbacks run.
_ACCEPTED_AT_ONCE: Final = 100
# Seconds to wait when the system refuses another connection.
_PAUSE: Final = 1.0
_SHUTDOWN_TIMEOUT: Final = 5.0


class Slots(Protocol):
    """Limits how many connections an address has, from before there is one."""

    def reserve(self, address: str) -> bool: ...
    def release(self, address: str) -> None: ...


class TlsListener:
    """One port, on every address of its host; `who` names its owner in errors."""

    def __init__(
        self, config: ServerConfig, credentials: Credentials, *, is_unified: bool, who: str = ""
    ) -> None:
        self._who = who
        self._config = config
        self._credentials = credentials
        self._is_unified = is_unified
        self._timeout = config.tls_handshake_timeout_ms / 1000
        self._limit = config.tls_max_handshakes
        # Set by `start`.
        self._slots: Slots | None = None
        self._connection: Callable[[], asyncio.Protocol] | None = None
        self._sockets: list[socket.socket] = []
        # The handshakes in flight, the oldest first.
        self._handshakes: dict[asyncio.Task[None], None] = {}
        # Handshakes that are being cancelled.
        self._cancelled: set[asyncio.Task[None]] = set()
        self._is_accepting = False
        self._resumption: asyncio.TimerHandle | None = None

    @property
    def address(self) -> tuple[str, int] | None:
        return address_of(self._sockets) if self._sockets else None

    async def bind(self, host: str, port: int) -> None:
        """Bind the port, without accepting connections yet. Raises PortError."""
        loop = asyncio.get_running_loop()
        kind, flags = socket.SOCK_STREAM, socket.AI_PASSIVE
        with explained(host, port, self._who):
            found = await loop.getaddrinfo(host, port, type=kind, flags=flags)
            try:
                for family, _, protocol, _, address in dict.fromkeys(found):
                    self._bind(socket.socket(family, kind, protocol), address)
            except BaseException:
                self._close_sockets()
                raise

    def start(self, slots: Slots, connection: Callable[[], asyncio.Protocol]) -> None:
        self._slots, self._connection = slots, connection
        self._resume()

    async def close(self) -> None:
        """Close the port, and cancel the handshakes in flight."""
        self._pause()
        self._close_sockets()
        for handshake in list(self._handshakes):
            self._cancel(handshake)
        await asyncio.gather(*self._cancelled, return_exceptions=True)

    def _bind(self, listening: socket.socket, address: tuple[object, ...]) -> None:
        self._sockets.append(listening)
        listening.setblocking(False)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if listening.family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind(address)
        listening.listen(self._config.listen_backlog)

    def _close_sockets(self) -> None:
        for listening in self._sockets:
            listening.close()
        self._sockets = []

    def _pause(self) -> None:
        if self._resumption is not None:
            self._resumption.cancel()
        if self._is_accepting:
            self._is_accepting = False
            for listening in self._sockets:
                asyncio.get_running_loop().remove_reader(listening)

    def _resume(self) -> None:
        if not self._is_accepting:
            self._is_accepting = True
            for listening in self._sockets:
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
        slots, connection = self._slots, self._connection
        assert slots is not None
        assert connection is not None
        accepted.setblocking(False)
        if not slots.reserve(address):
            accepted.close()
            return
        if 0 < self._limit <= len(self._handshakes):
            logger.warning("more than %d TLS handshakes in flight; closing the oldest", self._limit)
            self._cancel(next(iter(self._handshakes)))
        handshake = asyncio.get_running_loop().create_task(
            self._handshake(accepted, address, slots, connection)
        )
        self._handshakes[handshake] = None
        handshake.add_done_callback(self._forget)

    def _forget(self, handshake: asyncio.Task[None]) -> None:
        self._handshakes.pop(handshake, None)
        self._cancelled.discard(handshake)

    def _cancel(self, handshake: asyncio.Task[None]) -> None:
        del self._handshakes[handshake]
        self._cancelled.add(handshake)
        # Not now: a task that is cancelled before its first step cleans nothing up.
        asyncio.get_running_loop().call_soon(handshake.cancel)

    async def _handshake(
        self,
        accepted: socket.socket,
        address: str,
        slots: Slots,
        connection: Callable[[], asyncio.Protocol],
    ) -> None:
        """Secure a connection, then serve it. Raises nothing but CancelledError."""
        gate: _Gate | None = None
        try:
            async with asyncio.timeout(self._timeout):
                gate = await self._secure(accepted, address)
        except TimeoutError:
            logger.warning(
                "%s: no TLS handshake within %g s; closing the connection", address, self._timeout
            )
        except (OSError, ssl.CertificateError) as error:
            logger.warning(
                "%s: TLS failed: %s", address, _reason(error), extra={"address": address}
            )
        finally:
            slots.release(address)
        if gate is not None:
            gate.open(connection())

    async def _secure(self, accepted: socket.socket, address: str) -> _Gate | None:
        try:
            first = await _first_byte(accepted)
            if first != _TLS_HANDSHAKE and not (self._is_unified and first is not None):
                if first is not None:
                    logger.warning(
                        "%s: does not speak TLS; closing the connection",
                        address,
                        extra={"address": address},
                    )
                accepted.close()
                return None
        except BaseException:
            accepted.close()
            raise
        loop = asyncio.get_running_loop()
        # From here on the transport owns the socket, and closes it if TLS fails.
        gate = _Gate()
        if first != _TLS_HANDSHAKE:
            await loop.connect_accepted_socket(lambda: gate, accepted)
            return gate
        await loop.connect_accepted_socket(
            lambda: gate,
            accepted,
            ssl=self._credentials.context,
            ssl_handshake_timeout=self._timeout,
            ssl_shutdown_timeout=_SHUTDOWN_TIMEOUT,
        )
        is_allowed = False
        try:
            is_allowed = await self._is_allowed(gate, address)
        finally:
            if not is_allowed:
                gate.abort()
        return gate if is_allowed else None

    async def _is_allowed(self, gate: _Gate, address: str) -> bool:
        tls = gate.tls()
        if tls is None:
            return True
        if len(tls.getpeercert(binary_form=True) or b"") > _CERTIFICATE_BYTES_MAX:
            logger.warning("%s: its certificate is too large; closing the connection", address)
            return False
        if not self._config.tls_client_hostname_verification or await comes_from_its_host(
            tls.getpeercert() or {}, address
        ):
            return True
        logger.warning("%s: its certificate is not for this host; closing the connection", address)
        return False


class _Gate(asyncio.Protocol):
    """Holds a connection after its handshake, until it is served."""

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

    def open(self, connection: asyncio.Protocol) -> None:
        """Serve the connection, unless it is closed already."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        transport.set_protocol(connection)
        connection.connection_made(transport)
        if transport.is_closing():
            return
        # Before the early data, which may make the connection stop reading.
        transport.resume_reading()
        if self._early:
            connection.data_received(self._early)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def tls(self) -> ssl.SSLObject | None:
        """Return our end of TLS; None if the connection is closed already."""
        if self._transport is None:
            return None
        return cast(ssl.SSLObject, self._transport.get_extra_info("ssl_object"))


async def _first_byte(accepted: socket.socket) -> int | None:
    """Wait for a peer's first byte, without consuming it; return None at the end of the stream."""
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
    """Return why the handshake failed, in a few words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    return str(error) or type(error).__name__

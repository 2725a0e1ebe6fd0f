"""The gRPC channels to one member of etcd.

* Two channels lead to a member: one for calls, one for the watch, so that a long stream of events
  does not delay calls.
* Files of certificates are read for each connection.

grpcio is imported when the first connection is made.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, Final, Protocol

from paddock.log.etcd import messages
from paddock.log.etcd.endpoints import EtcdMember
from paddock.log.etcd.options import EtcdOptions
from paddock.log.etcd.statuses import UntrustedError
from paddock.log.etcd.store import StoreForbiddenError

MESSAGE_BYTES_MAX: Final = 32 << 20
_CONNECT_MS_MIN: Final = 100
_CONNECT_MS_MAX: Final = 1_000

_CALLS: Final = (
    messages.RANGE,
    messages.TXN,
    messages.COMPACT,
    messages.STATUS,
    messages.AUTHENTICATE,
)
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.initial_reconnect_backoff_ms", _CONNECT_MS_MIN),
    # This is also how long an attempt to connect may take.
    ("grpc.min_reconnect_backoff_ms", _CONNECT_MS_MAX),
    ("grpc.max_reconnect_backoff_ms", _CONNECT_MS_MAX),
    # etcd closes connections that ask more often than every 5 s, or while nothing is under way.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 4_000),
    ("grpc.http2.max_pings_without_data", 0),
    # Otherwise both channels would share one connection, and a new one could get a broken one.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    ("grpc.service_config_disable_resolution", 1),
)

Metadata = tuple[tuple[str, str], ...]


class UnaryCall(Protocol):
    """A method of etcd's that is called with one message and answers with one."""

    def __call__(
        self, request: bytes, *, timeout: float, metadata: Metadata
    ) -> Awaitable[bytes]: ...


class StreamCall(Protocol):
    """A call with a stream of messages in both directions."""

    async def write(self, request: bytes) -> None: ...

    async def read(self) -> bytes | object: ...

    def cancel(self) -> bool: ...


class GrpcChannel(Protocol):
    """A channel of grpcio's, as far as we use it."""

    def unary_unary(self, method: str) -> UnaryCall: ...

    def stream_stream(self, method: str) -> Any: ...

    async def close(self) -> None: ...


class Connection:
    """The two channels to a member."""

    def __init__(self, member: EtcdMember, calls: GrpcChannel, watches: GrpcChannel) -> None:
        self.member = member
        self.endpoint = member.endpoint
        # Whether anything came back yet.
        self.has_answered = False
        self.methods = {method: calls.unary_unary(method) for method in _CALLS}
        self.watch = watches.stream_stream(messages.WATCH)
        self._channels = (calls, watches)
        # Watches that are not answered yet.
        self.openings: set[asyncio.Task[bytes]] = set()
        # Set when the member is left: what is canceled then was not canceled by its caller.
        self.is_left = False

    async def close(self) -> None:
        for channel in self._channels:
            await channel.close()


def open_connection(grpc: Any, options: EtcdOptions, member: EtcdMember) -> Connection:
    """Return a connection, which is made by its first call. Raises UntrustedError."""
    target = f"dns:///{member.endpoint}"
    if options.is_secure:
        credentials = _credentials(grpc, options)
        channels = [grpc.aio.secure_channel(target, credentials, _OPTIONS) for _ in range(2)]
    else:
        channels = [grpc.aio.insecure_channel(target, _OPTIONS) for _ in range(2)]
    return Connection(member, *channels)


def _credentials(grpc: Any, options: EtcdOptions) -> object:
    files = (options.ca_file, options.key_file, options.certificate_file)
    return grpc.ssl_channel_credentials(*map(_content, files))


def _content(file: Path | None) -> bytes | None:
    if file is None:
        return None
    try:
        return file.read_bytes()
    except OSError as error:
        # It may be there again in a moment, if it is being replaced: a server that runs goes on.
        raise UntrustedError(
            f"{file}: cannot be read, for the connection to etcd: {error.strerror}"
        ) from None


def import_grpc() -> Any:
    """Return the module. Raises StoreForbiddenError if it is not installed."""
    # The core of grpcio writes what it thinks of broken connections to stderr.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        import grpc
        import grpc.aio
    except ImportError:
        raise StoreForbiddenError(
            "a log on etcd needs grpcio: run pip install 'paddock-zk[etcd]'"
        ) from None
    return grpc


def status_of(error: Any) -> tuple[str, str]:
    """Return the code and the text of an error of grpcio's."""
    if hasattr(error, "code"):
        return error.code().name, error.details() or ""
    return "UNKNOWN", str(error)

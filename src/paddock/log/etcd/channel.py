"""The connection to etcd: one member at a time, in the given order.

The rules:

* Two gRPC channels lead to one member: one for calls, one for the watch, so that a long stream of
  events does not delay calls. A member that fails is left with both: calls and watches that are
  under way raise StoreError, and the next call goes to the next member, the first behind the last.
* Files of certificates are read for each connection. A connection never outlives its failure, so
  new files count as soon as the old ones are refused.
* A token is asked for with the first connection. When etcd refuses it, it is renewed once for each
  call; when it is refused again, or the password is, that is StoreForbiddenError.
* Calls ask for a member that knows a leader. Without one, a call would wait for its whole deadline,
  and be forgotten by etcd meanwhile.
* When all members have failed, calls wait for 0.1 s before they try again: for up to 1 s if none of
  them can be reached, and always 0.1 s during an election.
* gRPC repeats nothing by itself: a call is sent once, or to each member once if it asks for that.

grpcio is imported when the first channel is made.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable
from typing import Any, Final, Protocol

from paddock.log.etcd import messages
from paddock.log.etcd.options import EtcdOptions
from paddock.log.etcd.statuses import (
    has_no_users,
    is_answer,
    is_late,
    leaves_endpoint,
    needs_token,
    reason_of,
    store_error,
)
from paddock.log.etcd.store import StoreError, StoreForbiddenError

MESSAGE_BYTES_MAX: Final = 32 << 20
# etcd makes this slow on purpose.
AUTHENTICATE_TIMEOUT_S: Final = 5.0
WATCH_TIMEOUT_S: Final = 4.0
BACKOFF_S_MIN: Final = 0.1
BACKOFF_S_MAX: Final = 1.0

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
    ("grpc.initial_reconnect_backoff_ms", int(BACKOFF_S_MIN * 1000)),
    # This is also how long an attempt to connect may take.
    ("grpc.min_reconnect_backoff_ms", int(BACKOFF_S_MAX * 1000)),
    ("grpc.max_reconnect_backoff_ms", int(BACKOFF_S_MAX * 1000)),
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
_HAS_LEADER: Final = ("hasleader", "true")


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


class _Connection:
    """The two channels to a member."""

    def __init__(self, endpoint: str, calls: GrpcChannel, watches: GrpcChannel) -> None:
        self.endpoint = endpoint
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


class Watch:
    """A watch that is open. It ends by raising, and must be closed."""

    def __init__(self, channel: Channel, connection: _Connection, call: StreamCall) -> None:
        self._channel = channel
        self._connection = connection
        self._call = call

    async def read(self) -> bytes:
        """Return the next response."""
        try:
            response = await self._call.read()
        except asyncio.CancelledError:
            raise self._channel.canceled(self._connection) from None
        except self._channel.errors as error:
            raise self._channel.failed(self._connection, error) from None
        if isinstance(response, bytes):
            return response
        raise self._channel.lost(self._connection, "the watch has ended")

    async def write(self, request: bytes) -> None:
        """Send what is to be watched."""
        try:
            await self._call.write(request)
        except asyncio.CancelledError:
            raise self._channel.canceled(self._connection) from None
        except asyncio.InvalidStateError:
            # It has ended already: reading says why.
            pass
        except self._channel.errors as error:
            raise self._channel.failed(self._connection, error) from None

    def close(self) -> None:
        self._call.cancel()


class Channel:
    """Calls of etcd's, on whichever member can be reached."""

    def __init__(self, options: EtcdOptions) -> None:
        self._grpc = _import_grpc()
        # What grpcio raises: failed calls, and calls on a channel that is closed.
        self.errors: tuple[type[Exception], ...] = (
            self._grpc.RpcError,
            self._grpc.aio.BaseError,
        )
        self._options = options
        self._connection: _Connection | None = None
        self._next = 0
        # Members left one after another, at most all of them, since the last answer; and how long
        # to wait when it were all.
        self._failures = 0
        self._backoff_s = BACKOFF_S_MIN
        self._token = ""
        # What is sent with each call and each watch.
        self._metadata: Metadata = (_HAS_LEADER,)
        self._connecting = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()
        self._is_closed = False

    @property
    def endpoint(self) -> str:
        """The member that is used now, or will be."""
        if self._connection is not None:
            return self._connection.endpoint
        return self._options.endpoints[self._next]

    @property
    def size(self) -> int:
        """How many members there are to try."""
        return len(self._options.endpoints)

    async def call(
        self,
        method: str,
        request: bytes,
        timeout_s: float,
        attempts: int = 1,
        *,
        is_patient: bool = False,
    ) -> bytes:
        """Send a request and return the response.

        A member that cannot be reached is left for the next one, as often as `attempts` says. One
        that has not answered in time is left, too, unless the call is patient.
        """
        token_renewed = False
        while True:
            connection = self._connection or await self._connect()
            token = self._token
            try:
                response = await connection.methods[method](
                    request, timeout=timeout_s, metadata=self._metadata
                )
            except asyncio.CancelledError:
                raise self.canceled(connection) from None
            except self.errors as error:
                code, text = _status(error)
                if needs_token(code, text) and self._options.user and not token_renewed:
                    token_renewed = True
                    await self._renew_token(token)
                    continue
                late = is_late(code, text)
                if late and is_patient:
                    raise store_error(code, text, connection.endpoint) from None
                failure = self.failed(connection, error)
                attempts -= 1
                if attempts <= 0 or late or code != "UNAVAILABLE" or not connection.is_left:
                    raise failure from None
            else:
                self._failures = 0
                self._backoff_s = BACKOFF_S_MIN
                return response

    async def watch(self, request: bytes) -> tuple[Watch, bytes]:
        """Open a watch; return it and its first response."""
        connection = self._connection or await self._connect()
        call = connection.watch(metadata=self._metadata)
        watch = Watch(self, connection, call)
        # A task of its own, because grpcio does not wake what waits for a channel that is closed.
        opening = asyncio.get_running_loop().create_task(self._open_watch(watch, request))
        connection.openings.add(opening)
        try:
            async with asyncio.timeout(WATCH_TIMEOUT_S):
                response = await opening
        except TimeoutError:
            watch.close()
            raise self.lost(connection, "no answer to a watch") from None
        except asyncio.CancelledError:
            watch.close()
            raise self.canceled(connection) from None
        except BaseException:
            watch.close()
            raise
        finally:
            connection.openings.discard(opening)
        self._failures = 0
        self._backoff_s = BACKOFF_S_MIN
        return watch, response

    async def renew_token(self) -> bool:
        """Ask for a new token, if there is a user. Returns whether there is one."""
        if not self._options.user:
            return False
        await self._renew_token(self._token)
        return True

    async def close(self) -> None:
        self._is_closed = True
        if self._connection is not None:
            self._leave(self._connection)
        while self._closing:
            await asyncio.wait(self._closing)

    def failed(self, connection: _Connection, error: Exception) -> StoreError:
        """Return what a failed call raises, and leave its member if that failed."""
        code, text = _status(error)
        if leaves_endpoint(code, text):
            self._leave(connection)
            if is_answer(text):
                self._backoff_s = BACKOFF_S_MIN
        if code == "UNAVAILABLE" and self._failures >= self.size > 1:
            endpoints = ", ".join(self._options.endpoints)
            return StoreError(f"etcd at {endpoints}: {reason_of(text)}")
        return store_error(code, text, connection.endpoint)

    def lost(self, connection: _Connection, reason: str) -> StoreError:
        """Leave a member that does not do what it should; return what to raise."""
        self._leave(connection)
        return StoreError(f"etcd at {connection.endpoint}: {reason}")

    def canceled(self, connection: _Connection) -> BaseException:
        """Return what a call raises that was canceled: by us, or by whoever waits for it."""
        task = asyncio.current_task()
        if connection.is_left and (task is None or not task.cancelling()):
            return StoreError(f"etcd at {connection.endpoint}: the connection was given up")
        return asyncio.CancelledError()

    async def _open_watch(self, watch: Watch, request: bytes) -> bytes:
        await watch.write(request)
        return await watch.read()

    async def _connect(self) -> _Connection:
        async with self._connecting:
            if (connection := self._connection) is not None:
                return connection
            if self._failures >= self.size:
                self._failures = 0
                await asyncio.sleep(self._backoff_s)
                self._backoff_s = min(2 * self._backoff_s, BACKOFF_S_MAX)
            if self._is_closed:
                raise StoreError("the connection to etcd is closed")
            connection = self._open(self._options.endpoints[self._next])
            try:
                if self._options.user and not self._token:
                    await self._authenticate(connection)
                if self._is_closed:
                    raise StoreError("the connection to etcd is closed")
            except BaseException:
                self._leave(connection)
                raise
            self._connection = connection
            return connection

    def _open(self, endpoint: str) -> _Connection:
        target = f"dns:///{endpoint}"
        if not self._options.is_secure:
            make = self._grpc.aio.insecure_channel
            return _Connection(endpoint, make(target, _OPTIONS), make(target, _OPTIONS))
        credentials = self._credentials()
        make = self._grpc.aio.secure_channel
        return _Connection(
            endpoint, make(target, credentials, _OPTIONS), make(target, credentials, _OPTIONS)
        )

    def _credentials(self) -> object:
        options = self._options
        files = (options.ca_file, options.key_file, options.certificate_file)
        try:
            return self._grpc.ssl_channel_credentials(
                *(None if file is None else file.read_bytes() for file in files)
            )
        except OSError as error:
            raise StoreError(f"a certificate for etcd cannot be read: {error}") from None

    def _leave(self, connection: _Connection) -> None:
        if connection.is_left:
            return
        connection.is_left = True
        self._connection = None
        self._next = (self._next + 1) % self.size
        self._failures += 1
        for opening in connection.openings:
            opening.cancel()
        task = asyncio.get_running_loop().create_task(connection.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _renew_token(self, refused: str) -> None:
        async with self._connecting:
            # Another call may have renewed it meanwhile.
            if self._token != refused:
                return
            if self._connection is None:
                # The next connection asks for one.
                self._set_token("")
            else:
                await self._authenticate(self._connection)

    async def _authenticate(self, connection: _Connection) -> None:
        request = messages.authenticate_request(self._options.user, self._options.password)
        try:
            response = await connection.methods[messages.AUTHENTICATE](
                request, timeout=AUTHENTICATE_TIMEOUT_S, metadata=(_HAS_LEADER,)
            )
        except asyncio.CancelledError:
            raise self.canceled(connection) from None
        except self.errors as error:
            _, text = _status(error)
            if has_no_users(text):
                self._set_token("")
                return
            raise self.failed(connection, error) from None
        self._set_token(messages.parse_token(response))

    def _set_token(self, token: str) -> None:
        self._token = token
        self._metadata = (_HAS_LEADER, ("token", token)) if token else (_HAS_LEADER,)


def _import_grpc() -> Any:
    # The core of grpcio writes what it thinks of broken connections to stderr.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        import grpc
        import grpc.aio
    except ImportError:
        raise StoreForbiddenError(
            "a log on etcd needs grpcio: pip install 'paddock[etcd]'"
        ) from None
    return grpc


def _status(error: Any) -> tuple[str, str]:
    """Return the code and the text of an error of grpcio's."""
    if hasattr(error, "code"):
        return error.code().name, error.details() or ""
    return "UNKNOWN", str(error)

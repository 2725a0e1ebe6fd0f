"""The connection to etcd: one member at a time (`endpoints.py` says which).

The rules:

* A member that fails is left with all that leads to it: calls and watches that are under way raise
  StoreError, and the next call goes to the next member.
* A connection never outlives its failure, so new files of certificates count as soon as the old
  ones are refused.
* A token is asked for with the first connection. When etcd refuses it, it is renewed once for each
  call; when it is refused again, or the password is, that is StoreForbiddenError.
* Calls ask for a member that knows a leader. Without one, a call would wait for its whole deadline,
  and be forgotten by etcd meanwhile.
* After a failure, all members that do not rest are asked how they are, one 0.1 s after the other,
  and the first that answers is used. That needs no leader: so a member that is silent is told from
  one that loses what it is sent because its leader is silent, which will soon know better.
* If none of them answers, and no other did before, the next one is used all the same. But when a
  call is late there, it is left, even by a patient call.
* gRPC repeats nothing by itself: a call is sent once, or to each member once if it asks for that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from paddock.log.etcd import messages
from paddock.log.etcd.connection import (
    Connection,
    Metadata,
    StreamCall,
    import_grpc,
    open_connection,
    status_of,
)
from paddock.log.etcd.endpoints import Endpoints, Failure
from paddock.log.etcd.options import EtcdOptions
from paddock.log.etcd.patience import Patience
from paddock.log.etcd.statuses import (
    has_no_users,
    is_answer,
    is_late,
    leaves_endpoint,
    needs_token,
    store_error,
)
from paddock.log.etcd.store import StoreError

# How long an answer is waited for, at least and at most. etcd makes authentication slow on purpose.
AUTHENTICATE_S: Final = (1.0, 5.0)
WATCH_S: Final = (1.0, 4.0)
# How long a member is asked alone how it is; and the last one, if there is no other hope.
HEAD_START_S: Final = 0.1
PROBE_S: Final = 0.3
_HAS_LEADER: Final = ("hasleader", "true")


class Watch:
    """A watch that is open. It ends by raising, and must be closed."""

    def __init__(self, channel: Channel, connection: Connection, call: StreamCall) -> None:
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
        raise self._channel.lost(self._connection, "the watch has ended", Failure.ANSWERED)

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
        self._grpc = import_grpc()
        # What grpcio raises: failed calls, and calls on a channel that is closed.
        self.errors: tuple[type[Exception], ...] = (
            self._grpc.RpcError,
            self._grpc.aio.BaseError,
        )
        self._options = options
        self._clock = asyncio.get_running_loop().time
        self._endpoints = Endpoints(options.endpoints, self._clock)
        self._connection: Connection | None = None
        self._watch_patience = Patience(*WATCH_S)
        self._authenticate_patience = Patience(*AUTHENTICATE_S)
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
        return self._endpoints.next().endpoint

    @property
    def size(self) -> int:
        """How many members there are to try."""
        return len(self._endpoints)

    def use(self, endpoints: Sequence[str]) -> None:
        """Go to other members from now on; one that is used and stays is not left."""
        self._endpoints.replace(endpoints)
        connection = self._connection
        if connection is not None and connection.member not in self._endpoints:
            self._leave(connection, Failure.ANSWERED)

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
        that has not answered in time is left, too; but not by a patient call, unless it has never
        answered.
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
                code, text = status_of(error)
                if needs_token(code, text) and self._options.user and not token_renewed:
                    token_renewed = True
                    await self._renew_token(token)
                    continue
                late = is_late(code, text)
                if is_answer(text):
                    connection.has_answered = True
                if late and is_patient and connection.has_answered:
                    raise store_error(code, text, connection.endpoint) from None
                failure = self.failed(connection, error)
                attempts -= 1
                if attempts <= 0 or late or code != "UNAVAILABLE" or not connection.is_left:
                    raise failure from None
            else:
                if not connection.has_answered or connection.member.has_failed:
                    self._served(connection)
                return response

    async def watch(self, request: bytes) -> tuple[Watch, bytes]:
        """Open a watch; return it and its first response."""
        connection = self._connection or await self._connect()
        patience, begun = self._watch_patience, self._clock()
        timeout_s = patience.seconds
        call = connection.watch(metadata=self._metadata)
        watch = Watch(self, connection, call)
        # A task of its own, because grpcio does not wake what waits for a channel that is closed.
        opening = asyncio.get_running_loop().create_task(self._open_watch(watch, request))
        connection.openings.add(opening)
        try:
            async with asyncio.timeout(timeout_s):
                response = await opening
        except TimeoutError:
            watch.close()
            patience.late(timeout_s)
            raise self.lost(connection, "no answer to a watch", Failure.SILENT) from None
        except asyncio.CancelledError:
            watch.close()
            raise self.canceled(connection) from None
        except BaseException:
            watch.close()
            raise
        finally:
            connection.openings.discard(opening)
        patience.answered(self._clock() - begun)
        self._served(connection)
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
            self._leave(self._connection, Failure.ANSWERED)
        while self._closing:
            await asyncio.wait(self._closing)

    def failed(self, connection: Connection, error: Exception) -> StoreError:
        """Return what a failed call raises, and leave its member if that failed."""
        code, text = status_of(error)
        if leaves_endpoint(code, text):
            if is_answer(text):
                how = Failure.ANSWERED
            elif is_late(code, text):
                how = Failure.SILENT
            else:
                how = Failure.UNREACHABLE
            self._leave(connection, how)
        if code == "UNAVAILABLE" and self._endpoints.have_all_failed():
            return store_error(code, text, ", ".join(self._endpoints.names))
        return store_error(code, text, connection.endpoint)

    def lost(self, connection: Connection, reason: str, how: Failure) -> StoreError:
        """Leave a member that does not do what it should; return what to raise."""
        self._leave(connection, how)
        return StoreError(f"etcd at {connection.endpoint}: {reason}")

    def canceled(self, connection: Connection) -> BaseException:
        """Return what a call raises that was canceled: by us, or by whoever waits for it."""
        task = asyncio.current_task()
        if connection.is_left and (task is None or not task.cancelling()):
            return StoreError(f"etcd at {connection.endpoint}: the connection was given up")
        return asyncio.CancelledError()

    async def _open_watch(self, watch: Watch, request: bytes) -> bytes:
        await watch.write(request)
        return await watch.read()

    async def _connect(self) -> Connection:
        async with self._connecting:
            if (connection := self._connection) is not None:
                return connection
            while connection is None:
                await asyncio.sleep(self._endpoints.wait_s())
                if self._is_closed:
                    raise StoreError("the connection to etcd is closed")
                connection = await self._find()
            try:
                if self._options.user and not self._token:
                    await self._authenticate(connection)
                if self._is_closed or connection.member not in self._endpoints:
                    raise StoreError("the connection to etcd is closed")
            except BaseException:
                self._leave(connection, Failure.UNREACHABLE)
                raise
            self._connection = connection
            return connection

    async def _find(self) -> Connection | None:
        """Open a connection to the next member; after a failure, to the first that answers.

        Returns None if none does, and others did before: they may be asked again soon.
        """
        members = self._endpoints.free()
        if not self._endpoints.has_any_failed():
            return open_connection(self._grpc, self._options, members[0])
        probes: dict[asyncio.Task[bool], Connection] = {}
        found: Connection | None = None
        try:
            for member in members:
                connection = open_connection(self._grpc, self._options, member)
                probe = asyncio.get_running_loop().create_task(self._answers(connection))
                probes[probe] = connection
                is_only_hope = member is members[-1] and not self._endpoints.is_any_answering()
                found = await self._first(probes, PROBE_S if is_only_hope else HEAD_START_S)
                if found is not None:
                    found.has_answered = True
                    self._endpoints.heard(found.member)
                    return found
            if not self._endpoints.is_any_answering():
                found = next(iter(probes.values()))
            return found
        finally:
            for probe, connection in probes.items():
                if connection is not found:
                    is_silent = not probe.done()
                    how = Failure.SILENT if is_silent else Failure.UNREACHABLE
                    self._endpoints.failed(connection.member, how)
                    self._close_later(connection)
                probe.cancel()

    async def _first(
        self, probes: dict[asyncio.Task[bool], Connection], seconds: float
    ) -> Connection | None:
        """Wait for the first member that answers; None if none does, or not in time."""
        until = self._clock() + seconds
        while True:
            for probe, connection in probes.items():
                if probe.done() and probe.result():
                    return connection
            pending = [probe for probe in probes if not probe.done()]
            left_s = until - self._clock()
            if not pending or left_s <= 0:
                return None
            await asyncio.wait(pending, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)

    async def _answers(self, connection: Connection) -> bool:
        """Return whether a member says how it is, or anything else."""
        try:
            await connection.methods[messages.STATUS](b"", timeout=1.0, metadata=())
        except self.errors as error:
            return is_answer(status_of(error)[1])
        return True

    def _served(self, connection: Connection) -> None:
        connection.has_answered = True
        self._endpoints.served(connection.member)

    def _leave(self, connection: Connection, how: Failure) -> None:
        if connection.is_left:
            return
        connection.is_left = True
        self._connection = None
        self._endpoints.failed(connection.member, how)
        for opening in connection.openings:
            opening.cancel()
        self._close_later(connection)

    def _close_later(self, connection: Connection) -> None:
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

    async def _authenticate(self, connection: Connection) -> None:
        request = messages.authenticate_request(self._options.user, self._options.password)
        patience, begun = self._authenticate_patience, self._clock()
        timeout_s = patience.seconds
        try:
            response = await connection.methods[messages.AUTHENTICATE](
                request, timeout=timeout_s, metadata=(_HAS_LEADER,)
            )
        except asyncio.CancelledError:
            raise self.canceled(connection) from None
        except self.errors as error:
            code, text = status_of(error)
            if has_no_users(text):
                self._set_token("")
                return
            if is_late(code, text):
                patience.late(timeout_s)
            raise self.failed(connection, error) from None
        patience.answered(self._clock() - begun)
        self._set_token(messages.parse_token(response))

    def _set_token(self, token: str) -> None:
        self._token = token
        self._metadata = (_HAS_LEADER, ("token", token)) if token else (_HAS_LEADER,)

"""Change feeds: every change at and below a path, each once, however connections come and go.

The client pulls, as `paddock.protocol.changes` says. The position of a feed is the zxid up to which
the service has looked for it, so a lost connection, or another server, makes no difference: the
next pull begins there. While a reply is consumed, the next one may be on its way, and no more.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Final, NamedTuple

from paddock.client.operations.request_sender import RequestSender
from paddock.client.requests import decoding
from paddock.client.requests.encoder import Encoder, encoded
from paddock.client.results import NO_DATA
from paddock.client.session.session import Session
from paddock.client.states import FeedKind
from paddock.errors import (
    ConnectionLostError,
    HistoryGoneError,
    InvalidArgumentError,
    NotReadOnlyError,
    RemoteProtocolError,
    UnimplementedError,
)
from paddock.protocol import opcodes
from paddock.protocol.changes import (
    END,
    FROM_NOW,
    GONE,
    MORE,
    ChangeRecord,
    ChangesReply,
    ChangesRequest,
    read_change,
)
from paddock.protocol.jute import DecodeError, Reader
from paddock.protocol.records import Stat
from paddock.protocol.requests import PathRequest

_KINDS: Final = tuple(FeedKind(number) for number in range(FeedKind.ACL + 1))
_HINT: Final = "best_effort=True gives what watches can"


class FeedChange(NamedTuple):
    """A change of a node, as a feed has it.

    `data` and `stat` are those after the change; a deleted node has none. Changes of one
    transaction have the same zxid, and show their nodes as the transaction has left them. To go on
    behind a change, begin a feed `since` its zxid, if it `is_last` of its transaction.

    With `best_effort` on a service without feeds, `is_exact` is False.
    """

    kind: FeedKind
    path: str
    zxid: int
    data: bytes | None
    stat: Stat | None
    is_last: bool = True
    is_exact: bool = True


class ChangeFeed:
    """One feed of a session."""

    def __init__(self, session: Session, encode: Encoder, sender: RequestSender, path: str) -> None:
        self._path = path
        self._full = encode.full(path)
        self._encode = encode
        self._session = session
        self._sender = sender

    async def changes(self, since: int | None, progress: bool) -> AsyncGenerator[FeedChange, None]:
        """Yield the changes behind a zxid, or from now on, without end."""
        wake_ups, own = self._session.wake_ups, self._encode.own
        number, signal = wake_ups.add()
        position = FROM_NOW if since is None else since
        coming: asyncio.Future[ChangesReply] | None = None
        try:
            if since is not None and since > self._session.dispatcher.seen_zxid:
                await self._check(since)
            while True:
                if coming is None:
                    coming = self._pull(number, signal, position)
                try:
                    reply = await coming
                except ConnectionLostError:
                    coming = None
                    await self._session.wait_connected()
                    continue
                coming = None
                if reply.state == GONE:
                    raise HistoryGoneError(self._path, position, reply.until)
                shown, position = position, reply.until
                if reply.state == MORE:
                    coming = self._pull(number, signal, position)
                reader = Reader(reply.changes or b"")
                while reader.position < reader.end:
                    one = _decode(reader)
                    shown, data = one.zxid, one.data
                    if data is None and one.stat is not None:
                        data = NO_DATA
                    yield FeedChange(
                        _KINDS[one.kind], own(one.path), shown, data, one.stat, one.is_last
                    )
                if progress and position > shown:
                    yield FeedChange(FeedKind.PROGRESS, self._path, position, None, None)
                if coming is None:
                    await signal.wait()
        finally:
            wake_ups.remove(number)
            if coming is not None:
                coming.cancel()
            if self._session.is_attached and self._is_served():
                _ignore(self._pull(number, signal, END))

    async def _check(self, since: int) -> None:
        """Raise InvalidArgumentError if the service has not come as far as a zxid.

        That can be no zxid of its own: it was begun anew, or it is another one.
        """
        body = encoded(PathRequest(self._full))
        while True:
            sync = self._sender.send(
                opcodes.SYNC, body, self._path, decoding.nothing, is_repeatable=True
            )
            try:
                await sync
            except ConnectionLostError:
                await self._session.wait_connected()
                continue
            except NotReadOnlyError:
                # This server may be behind. It is waited for.
                return
            zxid = self._session.dispatcher.seen_zxid
            if since > zxid:
                raise InvalidArgumentError(
                    f"since: the service has come to 0x{zxid:x}, and 0x{since:x} is ahead of it:"
                    " it is a zxid of another service, or of this one before it was begun anew"
                )
            return

    def _pull(self, number: int, signal: asyncio.Event, since: int) -> asyncio.Future[ChangesReply]:
        if self._session.is_attached and not self._is_served():
            raise self._unserved()
        # Before it is sent: the wake-up may come right behind the reply.
        signal.clear()
        body = encoded(ChangesRequest(self._full, since, number))

        def adapt() -> None:
            # The next server may be one that would end the connection for it.
            if not self._is_served() and not future.done():
                future.set_exception(self._unserved())

        future: asyncio.Future[ChangesReply] = self._sender.send(
            opcodes.CHANGES,
            body,
            self._path,
            ChangesReply.read,
            is_repeatable=True,
            on_connect=adapt,
        )
        return future

    def _is_served(self) -> bool:
        return self._session.credentials.has_changes

    def _unserved(self) -> UnimplementedError:
        reason = "the server has no change feeds"
        if not self._session.credentials.has_asked:
            reason = "without `exact` of connect, no server is asked for change feeds"
        return UnimplementedError("changes", self._path, reason, hint=_HINT)


def _decode(reader: Reader) -> ChangeRecord:
    try:
        return read_change(reader)
    except DecodeError as error:
        raise RemoteProtocolError(f"changes: {error}") from error


def _ignore(future: asyncio.Future[ChangesReply]) -> None:
    """Mark the outcome of a request as seen."""
    future.add_done_callback(lambda done: done.cancelled() or done.exception())

"""Requests that add persistent watches, and remove watches of any kind.

Watches of reads are set by `request_sender`. A watch is recorded when the server has set it, and
dropped when the server has removed it, before any later frame is handled: so our tables equal the
server's, and every event finds its watchers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from paddock.client.operations.request_sender import RequestSender
from paddock.client.requests import decoding
from paddock.client.requests.encoder import Encoder, encoded
from paddock.client.session.session import Session
from paddock.client.watches.served import PERSISTENT, RECURSIVE
from paddock.client.watches.watches import Watcher, WatchKind
from paddock.errors import NO_WATCHER, OK
from paddock.protocol import opcodes
from paddock.protocol.operations import Record
from paddock.protocol.requests import AddWatchRequest, SetWatchesRequest, WatchesRequest

# Codes after which the watch is gone.
_GONE: Final = (OK, NO_WATCHER)


class WatchRequests:
    """Adds and removes watches of one session."""

    def __init__(self, session: Session, encode: Encoder, ask: RequestSender) -> None:
        self._session = session
        self._watches = session.watches
        self._served = session.watches.served
        self._encode = encode
        self._sender = ask
        session.watches.on_free = lambda full: self._shed(encode.own(full))

    def add(self, path: str, watcher: Watcher, *, recursive: bool) -> asyncio.Future[None]:
        """Add a persistent watch."""
        full = self._encode.full(path)
        watches, served = self._watches, self._served
        table = watches.recursive if recursive else watches.persistent
        modes = RECURSIVE if recursive else PERSISTENT
        if not recursive and watches.is_recursive(full):
            # By itself it would end that one on a server that has one mode at a path.
            modes = PERSISTENT | RECURSIVE

        def set_watch(code: int, is_wanted: bool) -> int:
            if code == OK:
                served.add(full, modes)
                if is_wanted:
                    watches.add(table, full, watcher)
                # Without a watcher, its events would come for ever.
                self._shed(path)
            return code

        future = self._ask_for(path, full, modes, set_watch)
        served.expect(full, modes)
        future.add_done_callback(lambda _: served.expect_no_more(full, modes))
        return future

    def remove(self, path: str, kind: WatchKind, watcher: Watcher | None) -> asyncio.Future[None]:
        """Remove the watches of a kind on a path, or those of one watcher."""
        full = self._encode.full(path)
        watches, session = self._watches, self._session
        had_some = watches.has(full, kind, watcher)
        is_open = session.in_flight.may_set_watch(path)
        are_others = watches.are_others(full, kind, watcher)
        if had_some and not is_open and (are_others or not session.is_attached):
            watches.remove(full, kind, watcher)
            self._shed(path)
            return self._sender.answered(None)
        # What is under way may add a watcher who needs the server's watch: then it has to stay.
        removes = (watcher is None and kind is WatchKind.ANY) or not (is_open or are_others)
        is_lasting = kind in (WatchKind.PERSISTENT, WatchKind.RECURSIVE)
        is_one_shot = kind in (WatchKind.DATA, WatchKind.CHILDREN)

        def forget(code: int, is_wanted: bool) -> int:
            if code not in _GONE:
                return code
            if removes and not is_one_shot:
                self._served.forget(full)
            were_some = watches.remove(full, kind, watcher) or had_some
            self._shed(path)
            is_told = watcher is None and removes and not is_lasting
            return OK if were_some or (code == OK and is_told) else NO_WATCHER

        operation = opcodes.REMOVE_WATCHES if removes else opcodes.CHECK_WATCHES
        # All watches are removed with a lasting one, whose kinds not every server knows.
        request = WatchesRequest(full, WatchKind.ANY if is_lasting else kind)
        return self._send(operation, request, path, forget)

    def forget(self, watcher: Watcher) -> None:
        """Stop calling a watcher, whatever it watches."""
        for full in self._watches.lasting(watcher):
            # A session that is over has no watches.
            _ignore(self.remove(self._encode.own(full), WatchKind.ANY, watcher))
        self._watches.discard(watcher)

    def _ask_for(
        self, path: str, full: bytes, modes: int, on_reply: Callable[[int, bool], int]
    ) -> asyncio.Future[None]:
        """Request persistent watches of one mode, or of both at once."""
        if modes == PERSISTENT | RECURSIVE:
            both = SetWatchesRequest(0, [], [], [], [full], [full])
            return self._send(opcodes.SET_WATCHES2, both, path, on_reply)
        # On the wire, 0 is persistent and 1 recursive.
        request = AddWatchRequest(full, 1 if modes == RECURSIVE else 0)
        return self._send(opcodes.ADD_WATCH, request, path, on_reply)

    def _send(
        self, operation: int, request: Record, path: str, on_reply: Callable[[int, bool], int]
    ) -> asyncio.Future[None]:
        return self._sender.send(
            operation,
            encoded(request),
            path,
            decoding.nothing,
            is_repeatable=True,
            on_reply=on_reply,
        )

    # Watches of the server that no watcher needs.

    def _shed(self, path: str) -> None:
        """Remove the persistent watches from the server that no watcher needs."""
        full = self._encode.full(path)
        watches, session = self._watches, self._session
        if (
            not session.is_attached
            or not self._served.at(full)
            # They may be needed. It is checked again with the last reply.
            or session.in_flight.may_set_watch(path)
        ):
            return
        if not watches.has(full, WatchKind.ANY):
            _ignore(self.remove(path, WatchKind.ANY, None))
            return
        for mode in watches.unneeded(full):
            if self._served.keeps_modes_apart is False:
                self._make_do(path, full, mode)
            else:
                self._drop(path, full, mode)

    def _drop(self, path: str, full: bytes, mode: int) -> None:
        """Drop one mode. ZooKeeper 3.9 has kinds for that; older servers reply with an error."""
        served = self._served

        def dropped(code: int, is_wanted: bool) -> int:
            served.keeps_modes_apart = code in _GONE
            if code in _GONE:
                served.remove(full, mode)
            self._shed(path)
            return code

        kind = WatchKind.RECURSIVE if mode == RECURSIVE else WatchKind.PERSISTENT
        _ignore(self._send(opcodes.REMOVE_WATCHES, WatchesRequest(full, kind), path, dropped))

    def _make_do(self, path: str, full: bytes, mode: int) -> None:
        """Come as close as possible to dropping a mode on a server with one mode per path."""
        watches, served = self._watches, self._served

        def replaced(code: int, is_wanted: bool) -> int:
            if code == OK:
                served.add(full, PERSISTENT)
                self._shed(path)
            return code

        if mode == RECURSIVE and full in watches.persistent:
            _ignore(self._ask_for(path, full, PERSISTENT, replaced))
        elif mode == PERSISTENT and full in watches.recursive:
            # The recursive one has replaced it.
            served.remove(full, PERSISTENT)
        else:
            # Reads rely on it: it has replaced their watches.
            served.relied_on.add(full)


def _ignore(future: asyncio.Future[Any]) -> None:
    """Mark the outcome of a request as seen."""
    future.add_done_callback(lambda done: done.cancelled() or done.exception())

"""Watches that are asked for by themselves: lasting ones added, and any of them removed.

Those that come with a read are set by `caller`. A watch is noted here when the server has set it,
and forgotten when the server has removed it, both before anything that comes after its answer is
looked at: so what we believe to be there is there, and every event finds whom it is for.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from paddock.client import decoding
from paddock.client.caller import Caller
from paddock.client.encoder import Encoder
from paddock.client.frames import encoded
from paddock.client.session import Session
from paddock.client.watches import Watcher, WatchKind
from paddock.errors import NO_WATCHER, OK
from paddock.protocol import opcodes
from paddock.protocol.requests import AddWatchRequest, WatchesRequest

# The modes of a lasting watch.
_PERSISTENT: Final = 0
_RECURSIVE: Final = 1


class Watching:
    """Adds and removes watches of one session."""

    def __init__(self, session: Session, encode: Encoder, ask: Caller) -> None:
        self._session = session
        self._watches = session.watches
        self._encode = encode
        self._ask = ask

    def add(self, path: str, watcher: Watcher, *, recursive: bool) -> asyncio.Future[None]:
        """Have a watcher told of every change, until it is removed."""
        full = self._encode.full(path)
        watches = self._watches
        table = watches.recursive if recursive else watches.persistent
        # One that is recursive stays so: that tells of everything.
        serves_recursively = recursive or watches.is_recursive(full)
        mode = _RECURSIVE if serves_recursively else _PERSISTENT

        def set_watch(code: int, is_wanted: bool) -> int:
            if code == OK:
                watches.serve(full, serves_recursively)
                if is_wanted:
                    watches.add(table, full, watcher)
                elif not (
                    watches.has(full, WatchKind.ANY) or self._session.is_watch_under_way(path)
                ):
                    # Nobody knows of it, and the server would tell us for ever.
                    _ignore(self.remove(path, WatchKind.ANY, None))
            return code

        future = self._ask.call(
            opcodes.ADD_WATCH,
            encoded(AddWatchRequest(full, mode)),
            path,
            decoding.nothing,
            is_repeatable=True,
            on_reply=set_watch,
        )
        watches.expect(full, serves_recursively)
        future.add_done_callback(lambda _: watches.expect_no_more(full, serves_recursively))
        return future

    def remove(self, path: str, kind: WatchKind, watcher: Watcher | None) -> asyncio.Future[None]:
        """Remove the watches of a kind on a path, or those of one watcher."""
        full = self._encode.full(path)
        watches, session = self._watches, self._session
        had_some = watches.has(full, kind, watcher)
        is_open = session.is_watch_under_way(path)
        are_others = watches.are_others(full, kind, watcher)
        if had_some and not is_open and (are_others or not session.is_attached):
            watches.remove(full, kind, watcher)
            return self._ask.answered(None)
        # What is under way may add a watcher who needs the server's watch: then it has to stay.
        everything = watcher is None and kind is WatchKind.ANY
        removes = everything or not (is_open or are_others)

        def forget(code: int, is_wanted: bool) -> int:
            if code not in (OK, NO_WATCHER):
                return code
            if removes:
                watches.serve_no_more(full)
            were_some = watches.remove(full, kind, watcher) or had_some
            is_success = were_some or (code == OK and watcher is None and removes)
            return OK if is_success else NO_WATCHER

        return self._ask.call(
            opcodes.REMOVE_WATCHES if removes else opcodes.CHECK_WATCHES,
            encoded(WatchesRequest(full, kind)),
            path,
            decoding.nothing,
            is_repeatable=True,
            on_reply=forget,
        )

    def forget(self, watcher: Watcher) -> None:
        """Tell a watcher of nothing any more, whatever it watches."""
        for full in self._watches.lasting(watcher):
            # A session that is over has no watches.
            _ignore(self.remove(self._encode.own(full), WatchKind.ANY, watcher))
        self._watches.discard(watcher)


def _ignore(future: asyncio.Future[Any]) -> None:
    """Let something happen for which nobody waits."""
    future.add_done_callback(lambda done: done.cancelled() or done.exception())

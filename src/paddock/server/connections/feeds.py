"""The change feeds of all connections: pulls are answered from the ring, or from the past.

`paddock.protocol.changes` has the rules of feeds, `paddock.state.feeds` those of the ring. Here:

* The ring records while there is a feed, and for `LINGER_SECONDS` after the last one: a client that
  has lost its connection finds in it what it has missed.
* What is older than the ring is the past. `PastChanges` reads it, from files, in a thread or a
  process of its own, one page at a time for a feed and few at a time for the server. A page waits
  for the pull that fetches it; of too many, the oldest are dropped and read again.
* Between past and ring nothing is lost or doubled. A page says up to which zxid it was looked
  through, the past is asked up to the floor of the ring as it is then, and the next pull begins at
  the end of the page, wherever the floor is by then.
* If some change cannot be recorded, the ring begins again behind it, and the feeds turn to the
  past: an error is better than a hole.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Final, Protocol

from librt.strings import BytesWriter

from paddock.errors import BAD_ARGUMENTS, OK, QUOTA_EXCEEDED, SYSTEM_ERROR
from paddock.protocol import paths
from paddock.protocol.changes import (
    END,
    FROM_NOW,
    GONE,
    MORE,
    REPLY_BYTES,
    WAITS,
    ChangesReply,
    ChangesRequest,
)
from paddock.protocol.jute import Reader
from paddock.server.replication.replica import Replica
from paddock.state.access import Identities
from paddock.state.feeds import ChangeRing, Feed
from paddock.state.operations import Change
from paddock.state.watcher import Watcher

logger: Final = logging.getLogger(__name__)

# How many feeds a connection may have, and how many bytes their paths; and all connections.
FEEDS_MAX: Final = 1_000
PATH_BYTES_MAX: Final = 1 << 20
TOTAL_MAX: Final = 100_000
TOTAL_PATH_BYTES_MAX: Final = 64 << 20
LINGER_SECONDS: Final = 60.0
# How many pages of the past are read at a time, and how many bytes of them wait to be fetched.
_READS_MAX: Final = 4
_PAGES_BYTES_MAX: Final = 16 << 20


class HistoryGone(Exception):  # noqa: N818
    """The past does not reach back so far; it has every change behind the zxid `oldest`."""

    def __init__(self, oldest: int) -> None:
        super().__init__(oldest)
        self.oldest = oldest


@dataclass(frozen=True, slots=True)
class PastPage:
    """Changes of the past: encoded, one behind the other, and how far was looked."""

    # As `paddock.state.feeds.encode_change` has them; and how many.
    changes: bytes
    until: int
    count: int


class PastChanges(Protocol):
    """Reads the changes of the past."""

    def read(
        self,
        path: bytes,
        since: int,
        up_to: int,
        limit_bytes: int,
        identities: Identities,
    ) -> Awaitable[PastPage]:
        """Read the changes at and below a path with since < zxid <= up_to, in their order.

        Whole transactions: up to `limit_bytes`, or one that is larger. `until` of the page is the
        last zxid that was looked at, `up_to` if nothing is left; it is above `since`. What a client
        with these identities may not see (`may_see`), by the ACL of the node after the change, or
        by its last one if it was deleted, is left out. All up to `up_to` was applied here; what is
        not in a file yet is waited for.

        Raises HistoryGone if a change behind `since` may not be there any more, also if the state
        is not what came of `since`, as after a restore. Any other error is logged, and the client
        is told that the server failed.
        """


class _PastReading:
    """A page of the past that is being read for a feed, or was."""

    def __init__(self, since: int) -> None:
        self.since = since
        self.task: asyncio.Task[None] | None = None
        self.page: PastPage | None = None
        self.error: Exception | None = None


class _Own:
    """The feeds of a connection, by its client's numbers."""

    def __init__(self) -> None:
        self.feeds: dict[int, Feed] = {}
        self.path_bytes = 0


class Feeds:
    """The feeds of one server."""

    def __init__(self, replica: Replica, ring: ChangeRing | None = None) -> None:
        self._replica = replica
        self._machine = replica.machine
        self._statistics = replica.statistics
        self.ring = ChangeRing() if ring is None else ring
        # None if no history is kept, and all there is is the ring.
        self.past: PastChanges | None = None
        self._by_watcher: dict[Watcher, _Own] = {}
        self._count = 0
        self._path_bytes = 0
        # Readings by their feeds, the oldest first.
        self._readings: dict[Feed, _PastReading] = {}
        self._pages_bytes = 0
        self._turns = asyncio.Semaphore(_READS_MAX)
        # Stops the recording, some time after the last feed.
        self._end: asyncio.TimerHandle | None = None
        self._is_stopped = False

    def __len__(self) -> int:
        return self._count

    def waiting_count(self) -> int:
        """Return how many feeds wait for a change, or for a page of the past."""
        under_way = sum(one.page is None and one.error is None for one in self._readings.values())
        return self.ring.waiting_count() + under_way

    # Called by connections.

    def pull(self, body: bytes, watcher: Watcher) -> tuple[int, bytes]:
        """Answer a pull with a result code and the body of the reply. Raises DecodeError."""
        request = ChangesRequest.read(Reader(body))
        if not paths.is_valid(request.path) or request.since < END:
            return BAD_ARGUMENTS, b""
        if request.since == END:
            self._close(watcher, request.feed)
            return OK, _reply(WAITS, self._machine.zxid)
        feed = self._feed(watcher, request)
        if feed is None:
            return QUOTA_EXCEEDED, b""
        self._statistics.feed_pulls += 1
        zxid = self._machine.zxid
        since = zxid if request.since == FROM_NOW else request.since
        if since < self.ring.floor:
            return self._answer_from_past(feed, since)
        self._forget_reading(feed)
        page = self.ring.read(feed, since, zxid, watcher.identities, REPLY_BYTES)
        if not page.has_more:
            self.ring.wait(feed)
        self._statistics.feed_changes += len(page.wires)
        return OK, _reply(MORE if page.has_more else WAITS, page.until, b"".join(page.wires))

    def forget(self, watcher: Watcher) -> None:
        """Forget the feeds of a connection that is not served any more."""
        own = self._by_watcher.get(watcher)
        if own is not None:
            for number in list(own.feeds):
                self._close(watcher, number)

    def stop(self) -> None:
        """End what is under way, at the end of the server."""
        self._is_stopped = True
        for feed in list(self._readings):
            self._forget_reading(feed)
        if self._end is not None:
            self._end.cancel()
            self._end = None
        self._replica.on_changes = None

    # Feeds.

    def _feed(self, watcher: Watcher, request: ChangesRequest) -> Feed | None:
        """Return the feed that a request names, a new one if need be; None if there is no room."""
        own, size = self._by_watcher.get(watcher), len(request.path)
        known = None if own is None else own.feeds.get(request.feed)
        if known is not None:
            if known.topic.path == request.path:
                return known
            self._close(watcher, request.feed)
            own = self._by_watcher.get(watcher)
        own = own or _Own()
        if (
            self._is_stopped
            or len(own.feeds) >= FEEDS_MAX
            or own.path_bytes + size > PATH_BYTES_MAX
            or self._count >= TOTAL_MAX
            or self._path_bytes + size > TOTAL_PATH_BYTES_MAX
        ):
            return None
        if not self.ring.is_on:
            self.ring.start(self._machine.zxid)
            self._replica.on_changes = self._record
        if self._end is not None:
            self._end.cancel()
            self._end = None
        feed = self.ring.open(watcher, request.feed, request.path, self._machine.zxid)
        self._by_watcher[watcher] = own
        own.feeds[request.feed] = feed
        own.path_bytes += size
        self._path_bytes += size
        self._count += 1
        return feed

    def _close(self, watcher: Watcher, number: int) -> None:
        own = self._by_watcher.get(watcher)
        feed = None if own is None else own.feeds.pop(number, None)
        if own is None or feed is None:
            return
        own.path_bytes -= len(feed.topic.path)
        self._path_bytes -= len(feed.topic.path)
        if not own.feeds:
            del self._by_watcher[watcher]
        self._count -= 1
        self._forget_reading(feed)
        self.ring.close(feed)
        if not self._count and not self._is_stopped:
            loop = asyncio.get_running_loop()
            self._end = loop.call_later(LINGER_SECONDS, self._stop_recording)

    def _stop_recording(self) -> None:
        self._end = None
        self.ring.stop()
        self._replica.on_changes = None

    def _record(self, changes: list[Change]) -> None:
        try:
            self.ring.record(changes)
        except (MemoryError, RecursionError):
            raise
        except Exception:
            logger.exception("change feeds: a change could not be recorded; the ring begins again")
            self.ring.reset(self._machine.zxid)

    # The past.

    def _answer_from_past(self, feed: Feed, since: int) -> tuple[int, bytes]:
        if self.past is None:
            return self._answer_gone(int(self.ring.floor))
        reading = self._readings.get(feed)
        if reading is None or reading.since != since:
            self._forget_reading(feed)
            self._begin_reading(self.past, feed, since)
            return OK, _reply(WAITS, since)
        if reading.page is not None:
            page = reading.page
            self._forget_reading(feed)
            self._statistics.feed_changes += page.count
            return OK, _reply(MORE, page.until, page.changes)
        if reading.error is None:
            # It is under way, and the wake-up will come.
            return OK, _reply(WAITS, since)
        self._forget_reading(feed)
        if isinstance(reading.error, HistoryGone):
            return self._answer_gone(reading.error.oldest)
        return SYSTEM_ERROR, b""

    def _answer_gone(self, oldest: int) -> tuple[int, bytes]:
        self._statistics.feeds_gone += 1
        return OK, _reply(GONE, oldest)

    def _begin_reading(self, past: PastChanges, feed: Feed, since: int) -> None:
        reading = self._readings[feed] = _PastReading(since)
        work = self._read(past, feed, reading, feed.watcher.identities)
        reading.task = asyncio.get_running_loop().create_task(work)

    async def _read(
        self, past: PastChanges, feed: Feed, reading: _PastReading, identities: Identities
    ) -> None:
        try:
            async with self._turns:
                page = await past.read(
                    feed.topic.path,
                    reading.since,
                    int(self.ring.floor),
                    REPLY_BYTES,
                    identities,
                )
            if page.until <= reading.since:
                raise RuntimeError(f"the past was not read behind 0x{reading.since:x}")
            reading.page = page
            self._pages_bytes += len(page.changes)
        except HistoryGone as gone:
            reading.error = gone
        except Exception as error:
            logger.exception("change feeds: the past could not be read")
            reading.error = error
        self.ring.wake(feed, self._machine.zxid)
        for other in list(self._readings):
            if self._pages_bytes <= _PAGES_BYTES_MAX:
                break
            if other is not feed and self._readings[other].page is not None:
                # Its client does not fetch it.
                self._forget_reading(other)

    def _forget_reading(self, feed: Feed) -> None:
        reading = self._readings.pop(feed, None)
        if reading is None:
            return
        if reading.page is not None:
            self._pages_bytes -= len(reading.page.changes)
        if reading.task is not None:
            reading.task.cancel()


def _reply(state: int, until: int, changes: bytes = b"") -> bytes:
    writer = BytesWriter()
    ChangesReply(state, until, changes).write(writer)
    return writer.getvalue()

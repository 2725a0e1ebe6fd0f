"""Following the shared log: every record behind a position, in index order, each once.

* The watch shows the records. Each opening is preceded by a check that etcd still holds the log
  that was followed (`history.py`), and so is the first record that a watch shows: it may have been
  opened on another etcd than the check has seen.
* An index that is missing, or a batch that is known to be in the log and is not shown for a second:
  the watch is opened again, and if that does not help, the log is read in pages (`pages.py`). The
  same if its history is compacted.
* A watch that shows nothing for a while may be broken without a word, so the head is read then.
* No more is handed over than there is room for.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from typing import Final

from paddock.log.etcd.figures import LogFigures
from paddock.log.etcd.history import History, LogState, other_history
from paddock.log.etcd.keys import Keys
from paddock.log.etcd.pages import plan_pages, read_planned, read_skips
from paddock.log.etcd.proposals import Proposals
from paddock.log.etcd.store import CompactedError, Store, StoreError
from paddock.log.interface import (
    ForbiddenError,
    LogError,
    Position,
    Record,
    SharedListener,
    TrimmedError,
)
from paddock.log.waits import until_none

# How long the watch may keep back what is known to be in the log.
UNSEEN_S: Final = 1.0
# How long it may show nothing before the head is read.
QUIET_S: Final = 5.0
CHECK_INTERVAL_S: Final = 1.0
# Before the watch is opened again. A lease is renewed by what it shows, so this is short.
PAUSE_S_MIN: Final = 0.02
PAUSE_S_MAX: Final = 0.1
# So often in a row etcd may fail before `follow` gives up. Later on it is tried for ever.
FIRST_OPENINGS_MAX: Final = 8
# What is handed over before room is asked for.
HANDED_RECORDS_MAX: Final = 64
HANDED_BYTES_MAX: Final = 256 << 10

_logger = logging.getLogger(__name__)


class _MissedError(Exception):
    """The watch does not show what it should."""


class Follower:
    """One listener, and how far it has been told."""

    def __init__(
        self,
        store: Store,
        keys: Keys,
        history: History,
        proposals: Proposals,
        figures: LogFigures,
        listener: SharedListener,
        after: Position,
    ) -> None:
        loop = asyncio.get_running_loop()
        # Done when all is told that was in the log at the beginning.
        self.caught_up: asyncio.Future[None] = loop.create_future()
        self.listener = listener
        # Indices whose records are void.
        self._skips: frozenset[int] = frozenset()
        self._store = store
        self._keys = keys
        self._history = history
        self._proposals = proposals
        self._figures = figures
        self._loop = loop
        # The last record that was handed over.
        self._last = Record(after.index, b"", after.server, after.number, after.revision)
        # Up to this revision the log has no record that was not handed over.
        self._complete_revision = after.revision
        # The last index of the log when it was seen first; None before.
        self._goal: int | None = None
        # The index behind which the watch missed something, the last time.
        self._missed_at: int | None = None
        # Set while the watch is read: it can be interrupted by way of it.
        self._scope: asyncio.Timeout | None = None
        # The same, if the listener is not what it waits for.
        self._is_listening = False
        # When something was last heard on the watch, and when the head was last read.
        self._heard_at = loop.time()
        # The index that is known to be in the log, and since when.
        self._expected = 0
        self._expected_at = 0.0
        self._handed_records = 0
        self._handed_bytes = 0
        figures.delivered = figures.last_index = after.index

    @property
    def position(self) -> Position:
        last = self._last
        assert last.server is not None
        return Position(last.index, last.revision, last.server, last.number)

    async def run(self) -> None:
        """Follow until cancelled. Raises LogError if that can go on no more."""
        checks = self._loop.create_task(self._check_regularly())
        try:
            await self._follow()
        finally:
            checks.cancel()
            await asyncio.wait((checks,))
            if not checks.cancelled() and (error := checks.exception()) is not None:
                raise error

    async def _follow(self) -> None:
        by_pages = False
        failures = 0
        while True:
            index = self._last.index
            try:
                if by_pages:
                    await self._read_pages()
                    by_pages = False
                await self._read_watch()
            except ForbiddenError:
                raise
            except CompactedError:
                by_pages = True
            except _MissedError as missed:
                _logger.warning("the watch of etcd is opened again: %s", missed)
                by_pages = self._missed_at == self._last.index
                self._missed_at = self._last.index
            except StoreError as error:
                self._figures.errors += 1
                failures = 1 if self._last.index != index else failures + 1
                if not self.caught_up.done() and failures >= FIRST_OPENINGS_MAX:
                    raise
                if failures == 2:
                    _logger.warning("the log in etcd cannot be followed: %s", error)
                await asyncio.sleep(min(PAUSE_S_MIN * 2 ** min(failures, 10), PAUSE_S_MAX))
            self._figures.reopenings += 1

    async def _verify(self) -> LogState:
        state = await self._history.verify(self.position)
        self._expect(state.last_index)
        return state

    async def _read_watch(self) -> None:
        """Hand over what the watch shows, until it raises."""
        self._skips = await read_skips(self._store, self._keys)
        state = await self._verify()
        if self._goal is None:
            self._goal = state.last_index
        self._check_goal()
        if state.last_index == self._last.index:
            self._complete_revision = max(self._complete_revision, state.revision)
        is_checked = False
        self._heard_at = self._loop.time()
        try:
            async with (
                aclosing(self._store.tail(self._complete_revision)) as records,
                asyncio.timeout(None) as self._scope,
            ):
                self._is_listening = True
                async for record in records:
                    if not is_checked:
                        await self._verify()
                        is_checked = True
                    await self._take(record)
        except TimeoutError:
            raise _MissedError(f"nothing behind record {self._last.index} is shown") from None
        finally:
            self._scope = None
        raise StoreError("the watch has ended")

    async def _read_pages(self) -> None:
        """Hand over what is in the log now."""
        self._figures.page_reads += 1
        state = await self._verify()
        if state.last_index == self._last.index:
            return
        index = self._last.index + 1
        plan = await plan_pages(self._store, self._keys, self._last.revision, state.revision)
        # If it was another log whose keys were read, this raises.
        state_now = await self._verify()
        if len(plan) != state.last_index + 1 - index:
            reason = f"{len(plan)} records are there of {index} to {state.last_index}"
            if state_now.snapshot().index >= index:
                raise TrimmedError(f"{reason}: a snapshot has the others")
            raise other_history(reason)
        async with aclosing(read_planned(self._store, self._keys, plan, index)) as records:
            async for record in records:
                await self._take(record)
        self._complete_revision = max(self._complete_revision, state.revision)

    async def _take(self, record: Record) -> None:
        self._heard_at = self._loop.time()
        last = self._last
        if record.index != last.index + 1:
            raise _MissedError(f"record {record.index} follows {last.index}")
        self._proposals.arrived(record)
        self._last = record
        self._complete_revision = max(self._complete_revision, record.revision)
        self._figures.delivered = record.index
        self._figures.last_index = max(self._figures.last_index, record.index)
        if record.index in self._skips:
            _logger.warning("record %d is skipped, as it was decided", record.index)
            record = Record(record.index, b"", record.server, record.number, record.revision)
        self.listener.committed(record)
        self._check_goal()
        self._handed_records += 1
        self._handed_bytes += len(record.payload)
        if self._handed_records >= HANDED_RECORDS_MAX or self._handed_bytes >= HANDED_BYTES_MAX:
            self._handed_records = self._handed_bytes = 0
            self._is_listening = False
            await until_none(self.listener.room)
            self._is_listening = True
            self._heard_at = self._loop.time()

    def _check_goal(self) -> None:
        is_reached = self._goal is not None and self._last.index >= self._goal
        if is_reached and not self.caught_up.done():
            self.caught_up.set_result(None)

    # Whether the watch shows what it should.

    async def _check_regularly(self) -> None:
        wait_s = CHECK_INTERVAL_S
        while True:
            await asyncio.sleep(wait_s)
            wait_s = CHECK_INTERVAL_S
            if self._scope is None or not self._is_listening:
                continue
            now = self._loop.time()
            due_at = self._shown_by()
            if due_at is None:
                if now - self._heard_at >= QUIET_S:
                    await self._check_head()
            elif now < due_at:
                wait_s = min(due_at - now, CHECK_INTERVAL_S)
            else:
                self._scope.reschedule(now)

    def _shown_by(self) -> float | None:
        """Return when the watch has to have shown something; None if nothing is expected."""
        since = self._proposals.answered_at()
        if self._expected > self._last.index:
            since = self._expected_at if since is None else min(since, self._expected_at)
        return None if since is None else max(since, self._heard_at) + UNSEEN_S

    async def _check_head(self) -> None:
        position = self.position
        try:
            await self._verify()
        except StoreError:
            self._figures.errors += 1
        except LogError:
            # Opening the watch again finds the same, and says so.
            if position == self.position and self._scope is not None:
                self._scope.reschedule(self._loop.time())
        else:
            self._heard_at = self._loop.time()

    def _expect(self, index: int) -> None:
        if index > self._expected:
            self._expected = index
            self._expected_at = self._loop.time()
            self._figures.last_index = max(self._figures.last_index, index)

"""Taking snapshots while the server serves.

The event loop makes the pieces, between one slice of a batch and the next; a thread of its own
writes them. The loop never waits for the disk: old images of what changes faster stay in memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Protocol

from paddock.log.interface import LogError
from paddock.server.durability.startup import Restored
from paddock.server.replication.replica import Replica
from paddock.state.snapshot import Snapshot
from paddock.storage.events import SNAPSHOT_TAKEN
from paddock.storage.retention import Retention
from paddock.storage.snapshots import SnapshotStore, SnapshotWriter

logger: Final = logging.getLogger(__name__)

# From so many nodes on a snapshot is taken less often: two entries for each node, by default.
_LARGE: Final = 50_000
# How many bytes the log may have behind it, of those that the tree has: a start replays an entry in
# twice the time in which it loads a node.
_LOG_SHARE: Final = 0.75
# So much is handed to the thread at once: to hand over each step costs a third of the step itself.
_PIECE_BYTES: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class Taken:
    """What a snapshot holds."""

    index: int
    zxid: int
    nodes: int
    sessions: int
    digest: int


class Purged(Protocol):
    """A log that goes up to the oldest snapshot that is kept."""

    def purge(self, below: int) -> None:
        """Drop what only holds records with an index of at most `below`. Raises LogError."""


class Snapshotter:
    """Takes a snapshot each time enough has been applied, and purges what is old."""

    def __init__(
        self,
        replica: Replica,
        log: Purged | None,
        store: SnapshotStore,
        every: int,
        retain: int | None,
        restored: Restored,
        every_bytes: int = 0,
        head_start: float = 0.0,
        history: Retention | None = None,
    ) -> None:
        # Called with the index of each snapshot that begins.
        self.on_begun: Callable[[int], None] | None = None
        # Whether the next look begins one in any case.
        self.wants_one = False
        self._replica = replica
        # What is purged with old snapshots; None if nothing is.
        self._log = log
        self._store = store
        # Entries between two snapshots of a tree that is not large, and how many snapshots a purge
        # leaves; None never purges.
        self._every = every
        # Bytes of the log between two snapshots of a tree that is not large; 0 for any number.
        self._every_bytes = every_bytes
        self._retain = retain
        # What a purge leaves beyond that; None for nothing.
        self._history = history
        self._executor = ThreadPoolExecutor(1, "paddock-snapshot")
        # Its thread is there from now on: later there may be no memory for one.
        self._executor.submit(int)
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._snapshot: Snapshot | None = None
        self._writer: SnapshotWriter | None = None
        # Writes of the snapshot under way that nothing waits for yet.
        self._spilled: list[asyncio.Future[None]] = []
        # Where the newest snapshot was taken: as an index, 0 without one, and in entries and bytes
        # applied since the start. What was replayed counts, or a server that is killed often would
        # never take one.
        self.newest_index = restored.index
        self._entries = 0
        self._bytes = 0
        # How many nodes there were at that point, or at the start.
        self._nodes = len(replica.machine.tree)
        # How much of the way to the next one there is to go: to the first one less, by
        # `head_start`, since servers that share a log apply the same entries, and would all write
        # to one disk at once.
        self._way = 1.0 - head_start
        self._closing = False
        # The zxid of the newest one; -1 without one.
        self.newest_zxid = restored.zxid
        # What the newest one holds, if this server has taken it.
        self._taken: Taken | None = None

    def newest(self) -> Taken | None:
        """Return what the newest snapshot holds; None if that is not known."""
        if self._replica.applied == self.newest_index and self._replica.is_between_batches():
            return self._described()
        taken = self._taken
        return taken if taken is not None and taken.index == self.newest_index else None

    def _described(self) -> Taken:
        """Describe the state as it is now."""
        machine = self._replica.machine
        return Taken(
            self._replica.applied,
            machine.zxid,
            len(machine.tree),
            len(machine.sessions.by_id),
            machine.digest(),
        )

    def look(self) -> None:
        """Begin a snapshot if it is time for one, and none is under way.

        A larger tree waits for more entries, in proportion, so that the cost of snapshots per write
        does not grow with the tree: by default for two entries for each node that there was at the
        last one. (With 200,000 nodes and one entry for each, snapshots took a sixth of the sets a
        second.) Bytes of the log count, too, from a number on and if they are three quarters as
        many as the tree has.
        """
        if self._task is None and self._is_due():
            self._task = self._loop.create_task(self._take())

    def _is_due(self) -> bool:
        replica, way = self._replica, self._way
        entries, size = replica.applied_entries - self._entries, replica.applied_bytes - self._bytes
        is_long = entries >= way * self._every * max(1.0, self._nodes / _LARGE)
        enough = max(self._every_bytes, int(replica.machine.tree.data_bytes) * _LOG_SHARE)
        return is_long or self.wants_one or (self._every_bytes > 0 and size >= way * enough)

    async def take_now(self) -> int:
        """Take a snapshot of the state as it is now, unless there is one; return its index.

        Raises LogError if that cannot be done.
        """
        # Of a batch that is half applied some writes have been answered.
        wanted = self._replica.applied + (0 if self._replica.is_between_batches() else 1)
        if self._task is not None:
            # It may have been begun too early.
            await asyncio.wait([self._task])
        if self.newest_index < wanted and not self._closing:
            if self._task is None:
                self._task = self._loop.create_task(self._take())
            await asyncio.wait([self._task])
        if self.newest_index < wanted:
            raise LogError("no snapshot could be taken; the server's log says why")
        return self.newest_index

    async def close(self) -> None:
        """Finish with a snapshot of the last state, unless there is one, and end the thread."""
        self._closing = True
        if self._task is not None:
            await self._task
        if self._replica.applied != self.newest_index:
            await self._take()
        self._executor.shutdown()

    async def give_up(self) -> None:
        """Let go without a last snapshot: the state is not what the log says."""
        self._closing = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._executor.shutdown()

    async def _take(self) -> None:
        begun = self._loop.time()
        try:
            taken = await self._begin()
            snapshot, writer = self._snapshot, self._writer
            assert snapshot is not None
            assert writer is not None
            for _ in snapshot.steps():
                if snapshot.backlog() < _PIECE_BYTES and not self._spilled:
                    await asyncio.sleep(0)
                else:
                    await self._hand_over(snapshot, writer)
            await self._hand_over(snapshot, writer)
            await self._loop.run_in_executor(self._executor, writer.commit)
            self.newest_index, self._taken = taken.index, taken
            self.newest_zxid = taken.zxid
            self._log_taken(taken, writer.size, self._loop.time() - begun)
        except (LogError, MemoryError, RuntimeError) as error:
            logger.error("no snapshot was taken: %s", str(error) or "out of memory")
        else:
            await self._purge()
        finally:
            await self._let_go()
            self._task = None

    async def _hand_over(self, snapshot: Snapshot, writer: SnapshotWriter) -> None:
        """Have what waits written. Raises what went wrong with that, or with what was spilled."""
        await self._write(writer, [snapshot.take()])
        # The thread has done these before.
        spilled, self._spilled = self._spilled, []
        for one in spilled:
            await one

    def _begin(self) -> asyncio.Future[Taken]:
        """Begin a snapshot as soon as no batch is half applied.

        The result is what it will hold; or LogError.
        """
        begun: asyncio.Future[Taken] = self._loop.create_future()

        def begin() -> None:
            if begun.done():
                return
            replica = self._replica
            if not self.wants_one:
                self._entries, self._bytes = replica.applied_entries, replica.applied_bytes
                self._nodes, self._way = len(replica.machine.tree), 1.0
            self.wants_one = False
            try:
                self._writer = self._store.begin(replica.applied)
                self._snapshot = Snapshot(replica.machine, self._spill)
                if self.on_begun is not None:
                    self.on_begun(replica.applied)
            except (LogError, MemoryError) as error:
                begun.set_exception(error)
                return
            self._spilled = []
            begun.set_result(self._described())

        self._replica.between_batches(begin)
        return begun

    def _log_taken(self, taken: Taken, size: int, seconds: float) -> None:
        self._replica.statistics.snapshot_ms.add(seconds * 1000)
        shown = {
            "index": taken.index,
            "zxid": taken.zxid,
            "nodes": taken.nodes,
            "bytes": size,
            "seconds": seconds,
        }
        logger.info(
            "snapshot at %d, zxid 0x%x: %d nodes, %d bytes, taken in %.2f s",
            *shown.values(),
            extra=shown,
        )
        self._replica.journal.add(
            SNAPSHOT_TAKEN, index=taken.index, nodes=taken.nodes, bytes=size, seconds=seconds
        )

    async def _let_go(self) -> None:
        """Leave nothing behind of a snapshot that was not finished."""
        if self._snapshot is not None:
            self._snapshot.abandon()
        self._snapshot = None
        if self._spilled:
            # Nobody asks any more what became of them.
            await asyncio.gather(*self._spilled, return_exceptions=True)
            self._spilled = []
        writer, self._writer = self._writer, None
        if writer is not None:
            await self._loop.run_in_executor(self._executor, writer.abort)

    def _spill(self, parts: list[bytes]) -> None:
        """Have written what has gathered, in the middle of an entry."""
        assert self._snapshot is not None
        assert self._writer is not None
        try:
            self._spilled.append(self._write(self._writer, parts))
        except (MemoryError, RuntimeError) as error:
            # An entry is being applied, which must not notice.
            self._snapshot.abandon()
            failed: asyncio.Future[None] = self._loop.create_future()
            failed.set_exception(error)
            self._spilled.append(failed)

    def _write(self, writer: SnapshotWriter, parts: list[bytes]) -> asyncio.Future[None]:
        # One thread, so chunks are written in the order in which they were made.
        return self._loop.run_in_executor(self._executor, lambda: writer.append(b"".join(parts)))

    async def _purge(self) -> None:
        retain = self._retain
        if retain is None:
            return
        try:
            below = await self._loop.run_in_executor(
                self._executor, self._store.purge, retain, self._history
            )
            if self._log is not None:
                await self._loop.run_in_executor(self._executor, self._log.purge, below)
        except LogError as error:
            logger.error("old files were not purged: %s", error)
        else:
            if below and self._history is None:
                logger.info(
                    "purged what is older than the %d newest snapshots, the oldest of which is"
                    " at %d",
                    retain,
                    below,
                    extra={"retained": retain, "index": below},
                )
            elif below:
                logger.info(
                    "purged what neither a start nor history needs: the oldest snapshot is at %d",
                    below,
                    extra={"retained": retain, "index": below},
                )

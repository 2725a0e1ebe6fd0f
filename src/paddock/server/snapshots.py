"""Taking snapshots while the server serves.

The event loop makes the pieces, between one batch and the next; a thread of its own writes them.
Changes that come faster than the disk takes their old images make the loop wait for it, so what is
kept in memory stays bounded: also within one batch, since a small entry may delete large nodes.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from paddock.log.interface import Log, LogError
from paddock.log.snapshots import SnapshotStore, SnapshotWriter
from paddock.server.pipeline import Pipeline
from paddock.server.recovery import Recovered
from paddock.state.snapshot import Snapshot

logger: Final = logging.getLogger(__name__)

# From so many nodes on a snapshot is taken less often.
_LARGE: Final = 100_000


@dataclass(frozen=True, slots=True)
class Taken:
    """What a snapshot holds."""

    index: int
    zxid: int
    nodes: int
    sessions: int
    digest: int


class Snapshotter:
    """Takes a snapshot each time enough entries have been applied, and purges what is old."""

    def __init__(
        self,
        pipeline: Pipeline,
        log: Log,
        store: SnapshotStore,
        every: int,
        retain: int | None,
        recovered: Recovered,
    ) -> None:
        self._pipeline = pipeline
        self._log = log
        self._store = store
        # Entries between two snapshots of a tree that is not large, and how many snapshots a purge
        # leaves; None never purges.
        self._every = every
        self._retain = retain
        self._executor = ThreadPoolExecutor(1, "paddock-snapshot")
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._snapshot: Snapshot | None = None
        self._writer: SnapshotWriter | None = None
        # Why the disk did not take what the snapshot under way had to write at once.
        self._refused: LogError | None = None
        # Where the last snapshot was taken: as an index, and in entries applied since the start.
        # What was replayed counts, or a server that is killed often would never take one.
        self._index = recovered.snapshot_index
        self._entries = -recovered.replayed_entries
        self._closing = False
        # The zxid of the newest one; -1 without one.
        self.newest_zxid = recovered.snapshot_zxid
        # What the newest one holds, if this server has taken it.
        self._taken: Taken | None = None

    @property
    def newest_index(self) -> int:
        """Where the newest snapshot was taken; 0 without one."""
        return self._index

    def newest(self) -> Taken | None:
        """Return what the newest snapshot holds; None if that is not known."""
        if self._pipeline.applied == self._index:
            return self._described()
        taken = self._taken
        return taken if taken is not None and taken.index == self._index else None

    def _described(self) -> Taken:
        """Describe the state as it is now."""
        machine = self._pipeline.machine
        return Taken(
            self._pipeline.applied,
            machine.zxid,
            len(machine.tree),
            len(machine.sessions.by_id),
            machine.digest(),
        )

    def look(self) -> None:
        """Begin a snapshot if it is time for one, and none is under way.

        A larger tree waits for more entries, in proportion: so what snapshots cost a write does not
        grow with the tree, nor what a restart replays beside what it loads. (With 200,000 nodes and
        one every 100,000 entries, snapshots took a quarter of the writes a second.)
        """
        due = self._every * max(1.0, len(self._pipeline.machine.tree) / _LARGE)
        if self._task is None and self._pipeline.applied_entries - self._entries >= due:
            self._task = self._loop.create_task(self._take())

    async def take_now(self) -> int:
        """Take a snapshot of the state as it is now, unless there is one; give its index.

        Raises LogError if that cannot be done.
        """
        wanted = self._pipeline.applied
        if self._task is not None:
            # It may have been begun too early.
            await asyncio.wait([self._task])
        if self._index < wanted and not self._closing:
            if self._task is None:
                self._task = self._loop.create_task(self._take())
            await asyncio.wait([self._task])
        if self._index < wanted:
            raise LogError("no snapshot could be taken; the server's log says why")
        return self._index

    async def close(self) -> None:
        """Finish with a snapshot of the last state, unless there is one, and let go."""
        self._closing = True
        if self._task is not None:
            await self._task
        if self._pipeline.applied != self._index:
            await self._take()
        self._executor.shutdown()

    async def _take(self) -> None:
        begun = self._loop.time()
        index = self._pipeline.applied
        self._entries = self._pipeline.applied_entries
        try:
            writer = self._store.begin(index)
            self._writer = writer
            # Nothing may be applied between reading the index and this.
            snapshot = Snapshot(self._pipeline.machine, self._spill)
            self._snapshot = snapshot
            self._refused = None
            taken = self._described()
            for chunk in snapshot.chunks():
                await asyncio.wrap_future(self._write(writer, chunk))
                if self._refused is not None:
                    raise self._refused
            await self._loop.run_in_executor(self._executor, writer.commit)
            self._index, self._taken = index, taken
            self.newest_zxid = taken.zxid
            seconds = self._loop.time() - begun
            self._tell_taken(index, taken.zxid, taken.nodes, writer.size, seconds)
        except LogError as error:
            logger.error("no snapshot was taken: %s", error)
        else:
            await self._purge()
        finally:
            await self._let_go()
            self._task = None

    def _tell_taken(self, index: int, zxid: int, nodes: int, size: int, seconds: float) -> None:
        self._pipeline.statistics.snapshot_ms.add(seconds * 1000)
        logger.info(
            "snapshot at %d, zxid 0x%x: %d nodes, %d bytes, taken in %.2f s",
            index,
            zxid,
            nodes,
            size,
            seconds,
            extra={
                "index": index,
                "zxid": zxid,
                "nodes": nodes,
                "bytes": size,
                "seconds": seconds,
            },
        )

    async def _let_go(self) -> None:
        """Leave nothing behind of a snapshot that was not finished."""
        if self._snapshot is not None:
            self._snapshot.abandon()
        self._snapshot = None
        writer, self._writer = self._writer, None
        if writer is not None:
            await self._loop.run_in_executor(self._executor, writer.abort)

    def _spill(self, chunk: bytes) -> None:
        """Write what has gathered and wait for the disk, so that no more gathers meanwhile."""
        snapshot, writer = self._snapshot, self._writer
        assert snapshot is not None
        assert writer is not None
        try:
            self._write(writer, chunk).result()
        except LogError as error:
            # Nothing is gathered any more for a snapshot that nothing will come of.
            self._refused = error
            snapshot.abandon()

    def _write(self, writer: SnapshotWriter, chunk: bytes) -> Future[None]:
        # One thread, so chunks are written in the order in which they were made.
        return self._executor.submit(writer.append, chunk)

    async def _purge(self) -> None:
        retain = self._retain
        if retain is None:
            return
        try:
            below = await self._loop.run_in_executor(self._executor, self._store.purge, retain)
            await self._loop.run_in_executor(self._executor, self._log.purge, below)
        except LogError as error:
            logger.error("old files were not purged: %s", error)
        else:
            if below:
                logger.info(
                    "purged what is older than the %d newest snapshots, the oldest of which is"
                    " at %d",
                    retain,
                    below,
                    extra={"retained": retain, "index": below},
                )

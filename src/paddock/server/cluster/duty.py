"""What one server does for all: it writes snapshots to etcd, and trims the log behind them.

The member with the lowest join number is on duty. When enough of the log lies behind the newest
snapshot in etcd, it takes a snapshot, uploads it, makes it the current one, and deletes what the
one before it has made superfluous. The faster the log grows, the faster that goes
(`paddock.log.etcd.pace`). While etcd has little room, less of the log is enough; but a snapshot
that would fill etcd is not written. Whoever comes on duty while another still works does
no harm: `paddock.log.etcd.snapshots` and `trimming` have their guards. What fails is tried again
later.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import IO, Final

from paddock.log.etcd.calls import Calls
from paddock.log.etcd.keys import Keys
from paddock.log.etcd.manifest import Cut, Manifest, ManifestReplacedError, read_manifest
from paddock.log.etcd.pace import Pace
from paddock.log.etcd.snapshots import upload
from paddock.log.etcd.store import Store
from paddock.log.etcd.trimming import due, log_bytes_due, trim
from paddock.log.interface import LogError
from paddock.server.cluster.log_meter import LogMeter
from paddock.server.cluster.membership import Membership
from paddock.server.durability.snapshotter import Snapshotter
from paddock.server.replication.replica import Replica
from paddock.state.roster import Roster
from paddock.storage.snapshots import SnapshotDamagedError, read_chunks, snapshot_name

logger: Final = logging.getLogger(__name__)

# Seconds between two looks at what is to be done, and after something failed.
_PAUSE: Final = 2.0
_PAUSE_FAILED: Final = 15.0
# How much log must be freed for a snapshot to be worth it, if etcd has little room.
_WORTH_BYTES: Final = 1 << 20
# What a node takes in a snapshot, besides its path and data.
_NODE_BYTES: Final = 80


class Duty:
    """Writes snapshots to etcd while this server is on duty."""

    def __init__(
        self,
        store: Store,
        keys: Keys,
        replica: Replica,
        snapshotter: Snapshotter,
        folder: Path,
        membership: Membership,
        meter: LogMeter,
        random_bytes: Callable[[int], bytes],
        wall_clock_ms: Callable[[], int],
        *,
        compacts: bool = True,
    ) -> None:
        # Whether the next look writes a snapshot in any case, and whether none is written for now.
        self.wants_snapshot = False
        self.is_in_doubt: Callable[[], bool] = lambda: False
        # Whether etcd has little room, so that a snapshot is worth it that frees less; and how many
        # bytes may be written to it, None if that is not known.
        self.is_pressed: Callable[[], bool] = lambda: False
        self.room_bytes: Callable[[], int | None] = lambda: None
        # The newest snapshot in etcd, as far as this server knows.
        self.manifest: Manifest | None = None
        self._store = store
        self._keys = keys
        self._replica = replica
        self._snapshotter = snapshotter
        self._folder = folder
        self._membership = membership
        self._meter = meter
        self._random_bytes = random_bytes
        self._wall_clock_ms = wall_clock_ms
        self._compacts = compacts
        loop = asyncio.get_running_loop()
        self._pace = Pace()
        self._calls = Calls(loop.time, pace=self._pace)
        # Where each snapshot stands that was begun, by its index; the last few.
        self._cuts: dict[int, Cut] = {}
        snapshotter.on_begun = self._note_cut
        self._task = loop.create_task(self._work())

    async def stop(self) -> None:
        """Do nothing any more; what was begun is left as it is, and does no harm."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _work(self) -> None:
        while True:
            pause = _PAUSE
            self._meter.mark()
            if self._membership.is_on_duty() and not self.is_in_doubt():
                try:
                    await self._look()
                except ManifestReplacedError as error:
                    # Another server was on duty meanwhile: what we know of etcd is out of date.
                    self.manifest = None
                    logger.info("a snapshot for etcd was given up: %s", error)
                except LogError as error:
                    logger.error("no snapshot was written to etcd: %s", error)
                    pause = _PAUSE_FAILED
                except Exception:
                    # Without it the log would grow until etcd is full.
                    logger.exception("no snapshot was written to etcd")
                    pause = _PAUSE_FAILED
            else:
                self.manifest = None
            await asyncio.sleep(pause)

    async def _look(self) -> None:
        """Write a snapshot if it is time for one."""
        if self.manifest is None:
            # Another server may have written one since we were last on duty.
            self.manifest = await read_manifest(self._store, self._keys, self._calls)
            if self.manifest is not None:
                await self._trim(self.manifest)
        if self._is_due():
            try:
                self.manifest = await self._upload_wanted()
                await self._trim(self.manifest)
            finally:
                self._pace.end()

    def _is_due(self) -> bool:
        """Return whether it is time for a snapshot."""
        last, applied = self.manifest, self._replica.applied
        last_index, last_size = (0, 0) if last is None else (last.index, last.size)
        batches = applied - last_index
        log_bytes = self._meter.bytes_behind(last_index)
        if self.wants_snapshot or due(log_bytes, batches, last_size):
            return True
        # Trimming keeps what lies behind the last snapshot but one: it takes two to free all.
        trimmed = 0 if last is None or last.trimmed is None else last.trimmed.index
        kept_bytes = self._meter.bytes_behind(trimmed)
        return self.is_pressed() and batches > 0 and kept_bytes > max(_WORTH_BYTES, last_size)

    def _check_room(self) -> None:
        """Raise LogError if a snapshot would fill etcd: no lease could be renewed then."""
        room = self.room_bytes()
        tree = self._replica.machine.tree
        needed = (tree.data_bytes + _NODE_BYTES * len(tree)) * 9 // 8
        if room is not None and needed > room:
            raise LogError(
                f"etcd has room for {room} bytes, and a snapshot needs about {needed}. Delete"
                " nodes, or give etcd a larger quota"
            )

    async def _upload_wanted(self) -> Manifest:
        wanted, self.wants_snapshot = self.wants_snapshot, False
        try:
            return await self._upload()
        except BaseException:
            # It is still wanted; so is one that was asked for while this one was written.
            self.wants_snapshot |= wanted
            raise

    async def _upload(self) -> Manifest:
        self._check_room()
        begun = asyncio.get_running_loop().time()
        index = await self._snapshotter.take_now()
        cut = self._cuts.get(index) or self._cut_now(index)
        # Opened at once: other snapshots may be taken before it is read, and this one be purged.
        with _open(self._folder / snapshot_name(index)) as file:
            size = os.fstat(file.fileno()).st_size
            self._pace.begin(size, log_bytes_due(size), lambda: self._meter.bytes_behind(index))
            manifest = await upload(
                self._store,
                self._keys,
                _read(file, size, index),
                cut,
                self._roster.rules,
                self._random_bytes,
                calls=self._calls,
                time_ms=self._wall_clock_ms(),
            )
        seconds = asyncio.get_running_loop().time() - begun
        shown = {"index": index, "bytes": manifest.size, "seconds": seconds}
        logger.info("snapshot at %d in etcd: %d bytes in %.1f s", *shown.values(), extra=shown)
        return manifest

    async def _trim(self, manifest: Manifest) -> None:
        revision = await trim(
            self._store, self._keys, manifest, compact=self._compacts, calls=self._calls
        )
        if revision:
            logger.info("the log in etcd is trimmed behind the snapshot at %d", manifest.index)

    @property
    def _roster(self) -> Roster:
        roster = self._replica.machine.roster
        assert roster is not None
        return roster

    def _note_cut(self, index: int) -> None:
        """Remember where a snapshot stands that begins now."""
        self._meter.mark()
        roster = self._roster
        self._cuts[index] = Cut(
            roster.index,
            roster.revision,
            roster.last_boot,
            roster.last_number,
            {member.boot: member.next for member in roster.members.values()},
        )
        while len(self._cuts) > 4:
            del self._cuts[next(iter(self._cuts))]

    def _cut_now(self, index: int) -> Cut:
        """Return where a snapshot stands that was there at the start, if nothing came since."""
        if self._replica.applied != index or not self._replica.is_between_batches():
            raise LogError(f"the snapshot at {index} is older than this server")
        self._note_cut(index)
        return self._cuts[index]


def _open(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise LogError(f"{path}: cannot be read: {error}") from error


async def _read(file: IO[bytes], size: int, index: int) -> AsyncIterator[bytes]:
    """Read a snapshot piece by piece, in a thread. Raises LogError."""
    loop = asyncio.get_running_loop()
    pieces = read_chunks(file, size, index)
    try:
        while (piece := await loop.run_in_executor(None, _next, pieces)) is not None:
            yield piece
    except (OSError, SnapshotDamagedError) as error:
        raise LogError(f"{file.name}: cannot be read: {error}") from error


def _next(pieces: Iterator[bytes]) -> bytes | None:
    return next(pieces, None)

"""Asks etcd now and then how it is, and has clients' writes refused before it is full.

* Each server asks for itself, so a server that is not on duty knows it, too.
* What cannot be asked is left as it was: a server that is cut off has other worries.
* While it is tight, what makes the state larger is refused before the log. Deletes, sessions, and
  what servers write for themselves go on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from paddock.log.etcd.keys import Keys
from paddock.log.etcd.manifest import Manifest, read_manifest
from paddock.log.etcd.space import Space
from paddock.log.etcd.store import Status, Store
from paddock.log.interface import LogError
from paddock.server.replication.pacing import TIGHT, Pacing

logger: Final = logging.getLogger(__name__)

# Seconds between two questions, and how many of them pass between two looks at the manifest.
PAUSE: Final = 3.0
_MANIFEST_EVERY: Final = 5
# What is kept free for leases and deletes: one in so many bytes of the quota.
_RESERVED_SHARE: Final = 20

# What is said when etcd is full.
_FULL: Final = (
    "clients' writes are refused, since etcd is full (NOSPACE): its database has %d bytes, of which"
    " %d are in use, and may have %d (%s). Defragment etcd, or give it a larger quota; then disarm"
    " its alarm"
)
_FULL_EARLY: Final = (
    "clients' writes are refused, since etcd is full (NOSPACE): its database has %d bytes, of which"
    " %d are in use, and paddock.etcdQuotaBytes says that it may have %d (%s). Either etcd's own"
    " quota, its --quota-backend-bytes, is smaller: give both the same number. Or etcd was"
    " defragmented, and its alarm is still on. Disarm it when there is room"
)


class EtcdWatch:
    """The room in etcd, and the snapshot in it, as this server knows them."""

    def __init__(
        self,
        store: Store,
        keys: Keys,
        pacing: Pacing,
        quota_bytes: int,
        wall_clock_ms: Callable[[], int],
    ) -> None:
        self.space = Space(quota_bytes)
        # What the member that is used said last; None before.
        self.status: Status | None = None
        # The newest snapshot in etcd, as far as is known here.
        self.manifest: Manifest | None = None
        self._store = store
        self._keys = keys
        self._pacing = pacing
        self._wall_clock_ms = wall_clock_ms
        self._task = asyncio.get_running_loop().create_task(self._work())

    async def stop(self) -> None:
        """Ask no more."""
        self._task.cancel()
        await asyncio.wait([self._task])

    def is_tight(self) -> bool:
        """Return whether etcd has little room."""
        return self.space.is_tight

    def room_bytes(self) -> int | None:
        """Return how many bytes may be written that are not needed for leases; None if unknown."""
        if self.status is None:
            return None
        quota = self.space.quota_bytes
        return max(quota - quota // _RESERVED_SHARE - self.status.used_bytes, 0)

    def snapshot_age_seconds(self) -> float:
        """Return how old the snapshot in etcd is; -1 if that is not known."""
        if self.manifest is None or not self.manifest.time_ms:
            return -1.0
        return max(self._wall_clock_ms() - self.manifest.time_ms, 0) / 1000

    async def _work(self) -> None:
        asked = 0
        while True:
            try:
                self._take(await self._store.status())
                if asked % _MANIFEST_EVERY == 0:
                    self.manifest = await read_manifest(self._store, self._keys)
                asked += 1
            except LogError as error:
                # Whether writes pass is known from the writes.
                logger.debug("etcd does not say how it is: %s", error)
            await asyncio.sleep(PAUSE)

    def _take(self, status: Status) -> None:
        before, self.status = self.status, status
        if before is not None and status.endpoint != before.endpoint:
            logger.info("etcd is asked at %s now, and was at %s", status.endpoint, before.endpoint)
        was_full = before is not None and before.is_full
        was_tight = self.space.is_tight
        is_tight = self.space.update(status)
        self._pacing.restrain(TIGHT, is_tight)
        shown = {
            "database_bytes": status.database_bytes,
            "used_bytes": status.used_bytes,
            "quota_bytes": self.space.quota_bytes,
            "endpoint": status.endpoint,
        }
        if status.is_full and not was_full:
            message = _FULL_EARLY if self.space.is_quota_doubtful(status) else _FULL
            logger.error(message, *shown.values(), extra=shown)
        elif is_tight and not was_tight:
            logger.error(
                "clients' writes are refused, since etcd is nearly full: its database has %d bytes,"
                " of which %d are in use, and may have %d (%s). Delete nodes; see whether"
                " snapshots are written; defragment etcd, or give it a larger quota",
                *shown.values(),
                extra=shown,
            )
        elif was_tight and not is_tight:
            logger.warning(
                "clients' writes are accepted again: etcd's database has %d bytes, of which %d are"
                " in use, and may have %d (%s)",
                *shown.values(),
                extra=shown,
            )

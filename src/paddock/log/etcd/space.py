"""When etcd's database is so full that clients' writes must be refused.

* A database file never shrinks by itself: it is reused. So it is tight when the file is large *and*
  most of it is in use; a large file that is mostly free has room.
* Writes are refused early, because renewals, expiries and deletes go on and need room as well, and
  trimming, which frees it, needs room for a whole snapshot first.
* A little hysteresis keeps it from changing with every batch.
"""

from __future__ import annotations

from typing import Final

from paddock.log.etcd.store import Status

# etcd's own quota unless it is told another one, and the one that we recommend.
QUOTA_BYTES_DEFAULT: Final = 2 << 30
QUOTA_BYTES_RECOMMENDED: Final = 8 << 30

# etcd takes requests of at most 1.5 MiB, and refuses one that does not fit any more.
REQUEST_BYTES_MAX: Final = 2 << 20

# In percent of the quota: what makes it tight, and below which of them it is not any more.
DATABASE_TIGHT: Final = 80
USED_TIGHT: Final = 60
DATABASE_WIDE: Final = 75
USED_WIDE: Final = 55


class Space:
    """The room in etcd's database, from what its members say."""

    def __init__(self, quota_bytes: int = 0) -> None:
        # What is assumed if etcd does not tell its quota, as before 3.6.
        self._quota_assumed = quota_bytes or QUOTA_BYTES_DEFAULT
        self.quota_bytes = self._quota_assumed
        self.is_tight = False

    def is_quota_doubtful(self, status: Status) -> bool:
        """Return whether etcd is full, though its database is smaller than the assumed quota."""
        room = self._quota_assumed - status.database_bytes
        return status.is_full and not status.quota_bytes and room > REQUEST_BYTES_MAX

    def update(self, status: Status) -> bool:
        """Take what a member says; return whether it is tight now."""
        quota = self.quota_bytes = status.quota_bytes or self._quota_assumed
        database, used = 100 * status.database_bytes, 100 * status.used_bytes
        if status.is_full:
            self.is_tight = True
        elif self.is_tight:
            self.is_tight = database >= DATABASE_WIDE * quota and used >= USED_WIDE * quota
        else:
            self.is_tight = database > DATABASE_TIGHT * quota and used > USED_TIGHT * quota
        return self.is_tight

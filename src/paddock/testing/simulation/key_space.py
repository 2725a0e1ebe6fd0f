"""The key space of etcd, as far as the port `Store` shows it: no time, no network, no faults.

* Every transaction that changes something gets the next revision; the first one gets 2.
* A key counts its changes since it was created (its version), and a deletion ends that count.
* The history is kept until it is compacted: reads at an old revision, and the watch, see it.
* A database does not shrink by deletion and compaction, but what they freed is used again.
"""

from __future__ import annotations

import bisect
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from paddock.log.etcd.keys import Keys
from paddock.log.etcd.store import (
    CompactedError,
    Guard,
    Page,
    Range,
    Read,
    Stored,
    StoreError,
    StoreForbiddenError,
    StoreFullError,
)
from paddock.log.interface import Record

REQUEST_BYTES_MAX: Final = 1_500_000
DELETED_RANGES_MAX: Final = 128
# What a change takes in the database besides its key and its value.
_CHANGE_BYTES: Final = 64
_NEVER: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Change:
    """A key from one revision on; its value is None if that deleted it."""

    revision: int
    version: int
    value: bytes | None


class KeySpace:
    """All keys and their history."""

    def __init__(self, quota_bytes: int = 0) -> None:
        self.revision = 1
        # Reads below this revision are refused.
        self.compacted = 0
        # 0: none.
        self.quota_bytes = quota_bytes
        self.database_bytes = 0
        self.used_bytes = 0
        # The alarm NOSPACE: it stays until it is disarmed.
        self.is_full = False
        # Whether the write that crosses the quota is carried out: the caller is refused anyway.
        # Then the alarm is due, and others may write until it is raised.
        self.crosses_quota = False
        self.is_alarm_due = False
        # Invariant: the keys of `_changes`, sorted.
        self._order: list[bytes] = []
        self._changes: dict[bytes, list[Change]] = {}
        # What the watch of a log shows, for each head.
        self._appended: dict[bytes, list[Record]] = {}

    def copy(self) -> Self:
        """Return what a backup holds: the keys, their history, and the alarm."""
        other = type(self)(self.quota_bytes)
        other.revision = self.revision
        other.compacted = self.compacted
        other.database_bytes = self.database_bytes
        other.used_bytes = self.used_bytes
        other.is_full = self.is_full
        other._order = [*self._order]
        other._changes = {key: [*changes] for key, changes in self._changes.items()}
        other._appended = {head: [*records] for head, records in self._appended.items()}
        return other

    def content(self) -> Hashable:
        """Return what callers can notice, but for sizes: equal if two spaces answer alike."""
        changes = tuple((key, tuple(self._changes[key])) for key in self._order)
        appended = tuple(
            (head, tuple((one.index, one.payload, one.revision) for one in records))
            for head, records in sorted(self._appended.items())
        )
        return self.revision, self.compacted, self.is_full, changes, appended

    # Transactions.

    def append(self, keys: Keys, boot: bytes, number: int, payload: bytes) -> Record | None:
        """Put the head and a batch, unless the batch is there; return what the watch shows."""
        key = keys.batch(boot, number)
        head = key.removeprefix(keys.batches)
        self._check_space(len(payload) + len(head))
        if self.get(key) is not None:
            return None
        self.revision += 1
        self._change(keys.head, head)
        self._change(key, payload)
        index = self._changes[keys.head][-1].version
        record = Record(index, payload, boot, number, self.revision)
        self._appended.setdefault(keys.head, []).append(record)
        return record

    def swap(self, key: bytes, value: bytes, mod_revision: int, guard: Guard | None) -> int:
        self._check_space(len(key) + len(value))
        if not self._holds(Guard(key, mod_revision)) or not self._holds(guard):
            return 0
        self.revision += 1
        self._change(key, value)
        return self.revision

    def delete(self, ranges: Sequence[Range], guard: Guard | None, through: int) -> int:
        """Delete ranges; if nothing is in them, no revision is used."""
        if len(ranges) > DELETED_RANGES_MAX:
            raise StoreForbiddenError("etcd: too many operations in txn request")
        if not self._holds(guard):
            return 0
        deleted = [key for one in ranges for key in self._keys_in(one)]
        deleted = [key for key in dict.fromkeys(deleted) if self.get(key) is not None]
        if through and any(self._changes[key][-1].revision > through for key in deleted):
            return 0
        if deleted:
            self.revision += 1
        for key in deleted:
            self._change(key, None)
        return self.revision

    def compact(self, revision: int) -> None:
        """Forget what was changed again up to a revision."""
        if revision > self.revision:
            raise StoreError("etcd: required revision is a future revision")
        if revision <= self.compacted:
            return
        self.compacted = revision
        for key in [*self._order]:
            changes = self._changes[key]
            kept = bisect.bisect_right(changes, revision, key=_revision_of) - 1
            if kept >= 0 and changes[kept].value is None:
                kept += 1
            for change in changes[: max(kept, 0)]:
                self.used_bytes -= _size_of(key, change)
            del changes[: max(kept, 0)]
            if not changes:
                del self._changes[key]
                self._order.remove(key)
        for head, records in self._appended.items():
            self._appended[head] = [one for one in records if one.revision >= revision]

    def defragment(self) -> None:
        """Give back what deletion and compaction have freed."""
        self.database_bytes = self.used_bytes

    def disarm(self) -> None:
        """Take back the alarm NOSPACE."""
        self.is_full = False

    # Reads.

    def get(self, key: bytes, revision: int = 0) -> Stored | None:
        changes = self._changes.get(key)
        if changes is None:
            return None
        at = bisect.bisect_right(changes, revision or _NEVER, key=_revision_of) - 1
        if at < 0:
            return None
        change = changes[at]
        if change.value is None:
            return None
        return Stored(key, change.value, change.revision, change.version)

    def read(self, wanted: Sequence[bytes]) -> Read:
        return Read(self.revision, tuple(self.get(key) for key in wanted))

    def page(self, wanted: Range, revision: int, limit: int, bytes_max: int) -> Page:
        if revision > self.revision:
            raise StoreError("etcd: required revision is a future revision")
        if 0 < revision < self.compacted:
            raise CompactedError(self.compacted)
        items: list[Stored] = []
        size = 0
        for key in self._keys_in(wanted):
            item = self.get(key, revision)
            if item is None:
                continue
            if (limit and len(items) == limit) or (items and size > bytes_max):
                return Page(self.revision, tuple(items), has_more=True)
            items.append(item)
            size += len(item.key) + len(item.value)
        return Page(self.revision, tuple(items), has_more=False)

    def appended(self, keys: Keys, after: int) -> list[Record]:
        """Return what a watch behind a revision shows so far; raises CompactedError."""
        if after + 1 < self.compacted:
            raise CompactedError(self.compacted)
        return [one for one in self._appended.get(keys.head, ()) if one.revision > after]

    def _keys_in(self, wanted: Range) -> list[bytes]:
        if not wanted.end:
            return [wanted.start] if wanted.start in self._changes else []
        first = bisect.bisect_left(self._order, wanted.start)
        return self._order[first : bisect.bisect_left(self._order, wanted.end)]

    def _holds(self, guard: Guard | None) -> bool:
        if guard is None:
            return True
        found = self.get(guard.key)
        return (0 if found is None else found.mod_revision) == guard.mod_revision

    def _change(self, key: bytes, value: bytes | None) -> None:
        if key not in self._changes:
            bisect.insort(self._order, key)
        changes = self._changes.setdefault(key, [])
        last = changes[-1].version if changes and changes[-1].value is not None else 0
        change = Change(self.revision, 0 if value is None else last + 1, value)
        changes.append(change)
        self.used_bytes += _size_of(key, change)
        self.database_bytes = max(self.database_bytes, self.used_bytes)

    def _check_space(self, size: int) -> None:
        """Raise if a transaction that puts so much is refused, whatever its conditions say."""
        if size > REQUEST_BYTES_MAX:
            raise StoreForbiddenError("etcd: request is too large")
        if self.is_full:
            raise StoreFullError("etcd: database space exceeded")
        if not 0 < self.quota_bytes <= self.database_bytes + size:
            return
        if not self.crosses_quota:
            self.is_full = True
            raise StoreFullError("etcd: database space exceeded")
        self.is_alarm_due = True


def _revision_of(change: Change) -> int:
    return change.revision


def _size_of(key: bytes, change: Change) -> int:
    return _CHANGE_BYTES + len(key) + len(change.value or b"")

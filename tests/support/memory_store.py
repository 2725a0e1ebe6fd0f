"""An etcd in memory, strict and simple, whose calls can be made to fail or to wait for their turn.

    etcd = MemoryEtcd(Keys("test"))
    store = MemoryStore(etcd)
    store.faults = iter([Fault.AFTER])   # the first call is carried out, and its answer is lost

Each server has a store of its own; they share the etcd.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from paddock.log.etcd.keys import Keys
from paddock.log.etcd.store import (
    Guard,
    Page,
    Range,
    Read,
    Status,
    Store,
    Stored,
    StoreError,
)
from paddock.log.interface import Record

T = TypeVar("T")

VALUE_BYTES_MAX: Final = 1 << 20
# What one page holds at most, so that readers meet pages that are cut short.
PAGE_KEYS_MAX: Final = 7
DELETED_RANGES_MAX: Final = 100


class Fault(enum.Enum):
    """What becomes of a call."""

    NONE = "answered"
    BEFORE = "not carried out, and not answered"
    AFTER = "carried out, and not answered"
    # It is carried out when `run_late` is called.
    LATE = "carried out later, and not answered"


class MemoryEtcd:
    """The keys as they are, and what is still under way."""

    def __init__(self, keys: Keys) -> None:
        self.keys = keys
        self.revision = 1
        self.compacted = 0
        self.items: dict[bytes, Stored] = {}
        # All records ever appended.
        self.records: list[Record] = []
        self.late: list[Callable[[], object]] = []
        self.keys_deleted_max = 0

    def run_late(self) -> None:
        """Carry out one of the calls that are late, the eldest."""
        if self.late:
            self.late.pop(0)()

    def put(self, *pairs: tuple[bytes, bytes]) -> int:
        self.revision += 1
        for key, value in pairs:
            assert len(value) <= VALUE_BYTES_MAX, "too large for etcd"
            before = self.items.get(key)
            version = 1 if before is None else before.version + 1
            self.items[key] = Stored(key, value, self.revision, version)
        return self.revision

    def append(self, boot: bytes, number: int, payload: bytes) -> bool:
        key = self.keys.batch(boot, number)
        if key in self.items:
            return False
        self.put((self.keys.head, key[len(self.keys.batches) :]), (key, payload))
        index = self.items[self.keys.head].version
        self.records.append(Record(index, payload, boot, number, self.revision))
        return True

    def swap(self, key: bytes, value: bytes, mod_revision: int, guard: Guard | None) -> int:
        if not self._holds(Guard(key, mod_revision)) or not self._holds(guard):
            return 0
        return self.put((key, value))

    def delete(self, ranges: Sequence[Range], guard: Guard | None, through: int) -> int:
        assert 0 < len(ranges) <= DELETED_RANGES_MAX, "too many ranges for etcd"
        found = [key for wanted in ranges for key in self.select(wanted)]
        if not self._holds(guard):
            return 0
        if through and any(self.items[key].mod_revision > through for key in found):
            return 0
        self.keys_deleted_max = max(self.keys_deleted_max, len(found))
        if found:
            self.revision += 1
        for key in found:
            del self.items[key]
        return self.revision

    def compact(self, revision: int) -> None:
        if revision > self.revision:
            raise StoreError("the revision is in the future")
        self.compacted = max(self.compacted, revision)

    def page(self, wanted: Range, revision: int, limit: int, keys_only: bool) -> Page:
        assert not revision, "earlier states are not kept"
        found = [self.items[key] for key in self.select(wanted)]
        count = min(limit or PAGE_KEYS_MAX, PAGE_KEYS_MAX)
        items = tuple(replace(one, value=b"") if keys_only else one for one in found[:count])
        return Page(self.revision, items, len(found) > count)

    def read(self, keys: tuple[bytes, ...]) -> Read:
        return Read(self.revision, tuple(self.items.get(key) for key in keys))

    def select(self, wanted: Range) -> list[bytes]:
        return sorted(key for key in self.items if _is_in(key, wanted))

    def _holds(self, guard: Guard | None) -> bool:
        if guard is None:
            return True
        found = self.items.get(guard.key)
        return (0 if found is None else found.mod_revision) == guard.mod_revision


def _is_in(key: bytes, wanted: Range) -> bool:
    return wanted.start <= key < wanted.end if wanted.end else key == wanted.start


async def _yield() -> None:
    await asyncio.sleep(0)


class MemoryStore(Store):
    """What one server sees of it."""

    def __init__(self, etcd: MemoryEtcd) -> None:
        self.etcd = etcd
        # One for each call; none are left: all are answered.
        self.faults: Iterator[Fault] = iter(())
        # Awaited before each call.
        self.turn: Callable[[], Awaitable[None]] = _yield
        # The names of the calls, each attempt.
        self.calls: list[str] = []

    async def append(self, boot: bytes, number: int, payload: bytes) -> bool:
        return await self._call("append", lambda: self.etcd.append(boot, number, payload))

    async def tail(self, after: int) -> AsyncGenerator[Record, None]:
        for record in list(self.etcd.records):
            if record.revision > after:
                yield record
        raise StoreError("the stream broke")

    async def page(
        self, wanted: Range, revision: int = 0, limit: int = 0, *, keys_only: bool = False
    ) -> Page:
        return await self._call("page", lambda: self.etcd.page(wanted, revision, limit, keys_only))

    async def read(self, *keys: bytes) -> Read:
        return await self._call("read", lambda: self.etcd.read(keys))

    async def swap(
        self, key: bytes, value: bytes, mod_revision: int, guard: Guard | None = None
    ) -> int:
        return await self._call("swap", lambda: self.etcd.swap(key, value, mod_revision, guard))

    async def delete(
        self, ranges: Sequence[Range], guard: Guard | None = None, through: int = 0
    ) -> int:
        return await self._call("delete", lambda: self.etcd.delete(ranges, guard, through))

    async def compact(self, revision: int) -> None:
        await self._call("compact", lambda: self.etcd.compact(revision))

    async def status(self) -> Status:
        used = sum(len(one.key) + len(one.value) for one in self.etcd.items.values())
        return Status("3.4.23", self.etcd.revision, used, used, 0, is_full=False)

    async def close(self) -> None:
        pass

    async def _call(self, name: str, execute: Callable[[], T]) -> T:
        self.calls.append(name)
        await self.turn()
        fault = next(self.faults, Fault.NONE)
        if fault is Fault.NONE:
            return execute()
        if fault is Fault.AFTER:
            execute()
        elif fault is Fault.LATE:
            self.etcd.late.append(execute)
        raise StoreError(f"{name}: {fault.value}")

"""The calls of the port `Store`, as records: sent to a store, or carried out in a key space.

An answer is a kind and what came with it. It is of the same kind whether it was returned or raised.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

from paddock.log.etcd.keys import Keys
from paddock.log.etcd.store import (
    CompactedError,
    Guard,
    Page,
    Range,
    Store,
    StoreError,
    StoreForbiddenError,
    StoreFullError,
)
from paddock.log.interface import Record
from paddock.testing.simulation.key_space import KeySpace

# More than any page of a script holds.
_PAGE_BYTES: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a call, as far as its caller knows."""

    kind: str
    value: Hashable = None
    # Kept, because a page takes long to hash and is looked up often.
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.kind, self.value)))

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return self.kind if self.value is None else f"{self.kind} {self.value}"


@dataclass(frozen=True, slots=True)
class Batch:
    """A record of the log, which never changes."""

    index: int
    payload: bytes
    boot: bytes | None
    number: int
    revision: int

    @classmethod
    def of(cls, record: Record) -> Batch:
        return cls(record.index, record.payload, record.server, record.number, record.revision)


UNKNOWN: Final = Answer("unknown")
FULL: Final = Answer("full")
DONE: Final = Answer("done")
NOT_DONE: Final = Answer("not done")


def refusal(error: StoreError) -> Answer:
    """Return what an error says."""
    if isinstance(error, CompactedError):
        # A page does not say up to where.
        return Answer("compacted")
    if isinstance(error, StoreFullError):
        return FULL
    if isinstance(error, StoreForbiddenError):
        return Answer("forbidden")
    return Answer("future") if "future revision" in str(error) else UNKNOWN


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the port."""

    name: ClassVar[str]
    # How often it may be carried out, if it is sent again after a failure. A second compaction of
    # the same changes nothing.
    attempts_in_trouble: ClassVar[int] = 1
    # Whether it may change something; and whether it puts something, which a full etcd refuses.
    changes: ClassVar[bool] = True
    puts: ClassVar[bool] = False

    async def answer(self, store: Store) -> Answer:
        """Send it, and return what is answered."""
        try:
            return await self.send(store)
        except StoreError as error:
            return refusal(error)

    def outcome(self, space: KeySpace, keys: Keys) -> Answer:
        """Carry it out in the model, and return what is answered."""
        try:
            return self.carry_out(space, keys)
        except StoreError as error:
            return refusal(error)

    async def send(self, store: Store) -> Answer:
        raise NotImplementedError

    def carry_out(self, space: KeySpace, keys: Keys) -> Answer:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Append(Call):
    """Put the head and a batch, unless the batch is there."""

    name = "append"
    attempts_in_trouble = 2
    puts = True

    boot: bytes
    number: int
    payload: bytes

    async def send(self, store: Store) -> Answer:
        put = await store.append(self.boot, self.number, self.payload)
        return DONE if put else NOT_DONE

    def carry_out(self, space: KeySpace, keys: Keys) -> Answer:
        record = space.append(keys, self.boot, self.number, self.payload)
        return NOT_DONE if record is None else DONE


@dataclass(frozen=True, slots=True)
class Swap(Call):
    """Write a key if it still has a revision, and a guard holds."""

    name = "swap"
    puts = True

    key: bytes
    value: bytes
    mod_revision: int
    guard: Guard | None

    async def send(self, store: Store) -> Answer:
        return _at(await store.swap(self.key, self.value, self.mod_revision, self.guard))

    def carry_out(self, space: KeySpace, keys: Keys) -> Answer:
        return _at(space.swap(self.key, self.value, self.mod_revision, self.guard))


@dataclass(frozen=True, slots=True)
class Delete(Call):
    """Delete ranges, if a guard holds and nothing in them is too new."""

    name = "delete"
    attempts_in_trouble = 2

    ranges: tuple[Range, ...]
    guard: Guard | None
    through: int

    async def send(self, store: Store) -> Answer:
        return _at(await store.delete(self.ranges, self.guard, self.through))

    def carry_out(self, space: KeySpace, keys: Keys) -> Answer:
        return _at(space.delete(self.ranges, self.guard, self.through))


@dataclass(frozen=True, slots=True)
class Compact(Call):
    """Forget the history before a revision."""

    name = "compact"

    revision: int

    async def send(self, store: Store) -> Answer:
        await store.compact(self.revision)
        return DONE

    def carry_out(self, space: KeySpace, keys: Keys) -> Answer:
        space.compact(self.revision)
        return DONE


@dataclass(frozen=True, slots=True)
class ReadKeys(Call):
    """Read some keys at one revision."""

    name = "read"
    changes = False

    wanted: tuple[bytes, ...]

    async def send(self, store: Store) -> Answer:
        return Answer("read", await store.read(*self.wanted))

    def carry_out(self, space: KeySpace, keys: Keys) -> Answer:
        return Answer("read", space.read(self.wanted))


@dataclass(frozen=True, slots=True)
class ReadPage(Call):
    """Read a range in key order, perhaps at an old revision."""

    name = "page"
    changes = False

    wanted: Range
    revision: int
    limit: int
    keys_only: bool

    async def send(self, store: Store) -> Answer:
        return _page(
            await store.page(self.wanted, self.revision, self.limit, keys_only=self.keys_only)
        )

    def carry_out(self, space: KeySpace, keys: Keys) -> Answer:
        page = space.page(self.wanted, self.revision, self.limit, _PAGE_BYTES)
        if self.keys_only:
            page = replace(page, items=tuple(replace(one, value=b"") for one in page.items))
        return _page(page)


class OfOperator(Call):
    """What an operator does to the cluster: it is no call of a store."""

    async def send(self, store: Store) -> Answer:
        raise AssertionError(f"{self.name} is not sent to a store")

    def carry_out(self, space: KeySpace, keys: Keys) -> Answer:
        return DONE


@dataclass(frozen=True, slots=True)
class Disarm(OfOperator):
    """Give back what was freed, and take back the alarm NOSPACE."""

    name = "disarm"

    def carry_out(self, space: KeySpace, keys: Keys) -> Answer:
        space.defragment()
        space.disarm()
        return DONE


@dataclass(frozen=True, slots=True)
class Backup(OfOperator):
    """Save a snapshot of the cluster."""

    name = "backup"


@dataclass(frozen=True, slots=True)
class Restore(OfOperator):
    """Start the cluster again from its snapshot."""

    name = "restore"


def _at(revision: int) -> Answer:
    return Answer("done", revision) if revision else NOT_DONE


def _page(page: Page) -> Answer:
    return Answer("cut" if page.has_more else "page", page)

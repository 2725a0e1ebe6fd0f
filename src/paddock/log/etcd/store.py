"""The port to etcd: all that the shared log asks of it.

`EtcdStore` asks a real etcd; the simulation has a model of it. The rules:

* Every call but `tail` is one transaction or one linearizable read, with a deadline of its own.
* A call that raises StoreError has an unknown outcome: it may have been carried out, and may even
  be carried out later. The subclasses say more.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Protocol

from paddock.log.interface import ForbiddenError, LogError, Record


class StoreError(LogError):
    """etcd did not answer, or not in time: nobody knows what became of the call."""


class StoreForbiddenError(StoreError, ForbiddenError):
    """etcd refuses for good: the call is too large, not permitted or not authenticated."""


class StoreFullError(StoreError):
    """etcd has no space (NOSPACE). Deletions and reads go on.

    Even so the outcome is unknown: the write that crosses the quota is carried out, and answered
    with this.
    """


class CompactedError(StoreError):
    """The revision asked for is not there any more: the history was compacted beyond it."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"the history is compacted up to revision {revision}")
        # What it is compacted to; 0 if unknown.
        self.revision = revision


@dataclass(frozen=True, slots=True)
class Stored:
    """A key and its value."""

    key: bytes
    value: bytes
    # The revision of its last change, and how often it was changed since it was created.
    mod_revision: int
    version: int


@dataclass(frozen=True, slots=True)
class Read:
    """What some keys held at one revision; None for a key that is not there."""

    revision: int
    found: tuple[Stored | None, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """Some keys in order."""

    revision: int
    items: tuple[Stored, ...]
    # Whether the range has more behind the last one.
    has_more: bool


@dataclass(frozen=True, slots=True)
class Guard:
    """A key that must still have a revision for a transaction to be carried out; 0: is absent."""

    key: bytes
    mod_revision: int


@dataclass(frozen=True, slots=True)
class Range:
    """Keys from `start` to just before `end`; a single key if `end` is empty."""

    start: bytes
    end: bytes = b""


@dataclass(frozen=True, slots=True)
class Status:
    """How an etcd member is."""

    version: str
    revision: int
    # Bytes of its database, and of what is in use in it; the quota if it says so, else 0.
    database_bytes: int
    used_bytes: int
    quota_bytes: int
    # Whether it refuses writes for want of space.
    is_full: bool
    endpoint: str = ""


class Store(Protocol):
    """etcd, as far as one service needs it."""

    async def append(self, boot: bytes, number: int, payload: bytes) -> bool:
        """Put the head and a batch in one transaction, unless the batch is there already.

        Returns whether it was put.
        """

    def tail(self, after: int) -> AsyncGenerator[Record, None]:
        """Watch the log behind a revision: each batch, whole, in the order of revisions.

        `index` is the version of the head. It ends by raising: CompactedError, or StoreError when
        the stream broke, and then the caller resumes behind the last record that it was given. It
        must be closed (`aclose`).
        """

    async def page(
        self, wanted: Range, revision: int = 0, limit: int = 0, *, keys_only: bool = False
    ) -> Page:
        """Read keys of a range in key order, at a revision (0: now), at most `limit` (0: any).

        A large page may be cut short earlier, with `has_more`. With `keys_only` the values are
        empty.
        """

    async def read(self, *keys: bytes) -> Read:
        """Read some keys at one revision, linearizably."""

    async def swap(
        self, key: bytes, value: bytes, mod_revision: int, guard: Guard | None = None
    ) -> int:
        """Write a key if it still has this revision (0: is absent), and if the guard holds.

        Returns the revision of the write; 0 if it was not carried out.
        """

    async def delete(
        self, ranges: Sequence[Range], guard: Guard | None = None, through: int = 0
    ) -> int:
        """Delete some ranges in one transaction, if the guard holds.

        With `through`: and if nothing in the ranges was written after that revision. At most a
        hundred ranges. Returns its revision; 0 if it was not carried out.
        """

    async def compact(self, revision: int) -> None:
        """Forget the history before a revision; one that is compacted already is no error."""

    async def status(self) -> Status:
        """Ask the member that is used now how it is."""

    def use_endpoints(self, endpoints: Sequence[str]) -> None:
        """Find the same etcd at other addresses from now on, `host:port` each.

        A model has none, and need not define this.
        """
        return

    async def close(self) -> None:
        """Close the connections. Calls under way raise StoreError."""

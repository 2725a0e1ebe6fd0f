"""A model of an etcd cluster, in virtual time, with faults from a seed.

    model = EtcdModel(seed=7, faults=StoreFaults.rough())
    log = EtcdLog(model.store("one"), model.keys)
    model.link("one").cut()

All stores share one key space. What a request does is decided when it arrives there, and that is
in doubt for its caller whenever the port says so. Nothing happens between two events of the loop,
and nothing is random but by the seed: the same calls with the same seed see the same.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, Final, TypeVar

from paddock.log.etcd.keys import Keys
from paddock.log.etcd.store import (
    CompactedError,
    Guard,
    Page,
    Range,
    Read,
    Status,
    Store,
    Stored,
    StoreError,
    StoreForbiddenError,
    StoreFullError,
)
from paddock.log.interface import Record
from paddock.testing.simulation.key_space import KeySpace
from paddock.testing.simulation.store_faults import Span, StoreFaults
from paddock.testing.simulation.store_link import Link, Stream

T = TypeVar("T")

DEADLINE_S: Final = 5.0
# The deadline of an append doubles while none is answered.
APPEND_DEADLINE_S_MIN: Final = 1.0
APPEND_DEADLINE_S_MAX: Final = 4.0
PAGE_BYTES_MAX: Final = 4 << 20
# Two messages of a server do not arrive at the same time, so their order is that of their sending.
_APART_S: Final = 1e-6


class EtcdModel:
    """The cluster: its keys, and what has become of it."""

    def __init__(
        self,
        seed: int = 0,
        faults: StoreFaults | None = None,
        *,
        keys: Keys | None = None,
        quota_bytes: int = 0,
    ) -> None:
        self.faults = StoreFaults() if faults is None else faults
        self.keys = Keys("model") if keys is None else keys
        self.random = random.Random(seed)
        self.space = KeySpace(quota_bytes)
        self._links: dict[str, Link] = {}
        # Nothing is committed before; infinite while there is no quorum.
        self._stalled_until = 0.0
        self._waiting: list[Callable[[], None]] = []

    def link(self, name: str) -> Link:
        """Return the link of a server; it outlives its stores."""
        return self._links.setdefault(name, Link(name))

    def store(self, name: str) -> ModelStore:
        """Return a new connection of a server."""
        return ModelStore(self, self.link(name))

    # What happens to a cluster.

    def elect(self, seconds: float | None = None) -> None:
        """Let nothing be committed for a while."""
        if seconds is None:
            seconds = self.random.uniform(*self.faults.election_s)
        loop = asyncio.get_running_loop()
        self._stalled_until = max(self._stalled_until, loop.time() + seconds)
        loop.call_at(self._stalled_until + _APART_S, self._go_on)

    def lose_quorum(self) -> None:
        """Let nothing be committed, and no read be answered, before `regain_quorum`."""
        self._stalled_until = float("inf")

    def regain_quorum(self) -> None:
        """Carry out what has waited, however long ago its callers gave it up."""
        self._stalled_until = 0.0
        self._go_on()

    def backup(self) -> KeySpace:
        return self.space.copy()

    def restore(self, backup: KeySpace, *, breaks_streams: bool = True) -> None:
        """Go on from a backup: revisions go back. An empty `KeySpace` is another cluster."""
        self.space = backup.copy()
        if breaks_streams:
            for link in self._links.values():
                link.break_streams()

    def compact(self, revision: int) -> None:
        self.space.compact(revision)
        for link in self._links.values():
            for stream in link.streams:
                stream.compact(CompactedError(revision), revision)

    def fill(self) -> None:
        """Raise the alarm NOSPACE, until `make_space`."""
        self.space.is_full = True

    def raise_alarm(self) -> None:
        """Raise it in a moment, before anybody can be told: it is committed like a write."""
        delay_s = self.random.uniform(0.0, self.faults.latency_s[0])
        asyncio.get_running_loop().call_later(delay_s, self.fill)

    def make_space(self) -> None:
        self.space.defragment()
        self.space.disarm()

    # For the stores.

    @property
    def is_stalled(self) -> bool:
        return asyncio.get_running_loop().time() < self._stalled_until

    def when_committing(self, action: Callable[[], None]) -> None:
        """Do something now, or when the cluster commits again."""
        if self.is_stalled:
            self._waiting.append(action)
        else:
            action()

    def append(self, boot: bytes, number: int, payload: bytes) -> bool:
        record = self.space.append(self.keys, boot, number, payload)
        if record is None:
            return False
        if self.chance(self.faults.election):
            self.elect()
        for link in self._links.values():
            for stream in link.streams:
                stream.publish(record)
        return True

    def chance(self, probability: float) -> bool:
        return probability > 0 and self.random.random() < probability

    def between(self, span: Span) -> float:
        return self.random.uniform(*span)

    def _go_on(self) -> None:
        if not self.is_stalled:
            waiting, self._waiting = self._waiting, []
            for action in waiting:
                self.when_committing(action)


class ModelStore(Store):
    """The `Store` of one server."""

    def __init__(self, model: EtcdModel, link: Link) -> None:
        self._append_deadline_s = APPEND_DEADLINE_S_MIN
        self.name = link.name
        self.endpoint = "model"
        self.is_closed = False
        self._model = model
        self._link = link
        self._streams: list[Stream] = []
        self._asked: dict[asyncio.Future[Any], None] = {}
        # When the last request arrives, and the appends that did, in that order.
        self._arrives_at = 0.0
        self._appends: list[Callable[[], None]] = []

    async def append(self, boot: bytes, number: int, payload: bytes) -> bool:
        deadline_s = self._append_deadline_s
        try:
            put = await self._ask(
                lambda: self._write(self._model.append, boot, number, payload), deadline_s, True
            )
        except StoreError:
            self._append_deadline_s = min(2 * deadline_s, APPEND_DEADLINE_S_MAX)
            raise
        self._append_deadline_s = APPEND_DEADLINE_S_MIN
        return put

    async def page(
        self, wanted: Range, revision: int = 0, limit: int = 0, *, keys_only: bool = False
    ) -> Page:
        def read() -> Page:
            most = limit
            if self._model.chance(self._model.faults.page_cut):
                most = min(limit or 8, self._model.random.randint(1, 8))
            page = self._model.space.page(wanted, revision, most, PAGE_BYTES_MAX)
            if not keys_only:
                return page
            bare = (Stored(one.key, b"", one.mod_revision, one.version) for one in page.items)
            return Page(page.revision, tuple(bare), page.has_more)

        return await self._ask(read)

    async def read(self, *keys: bytes) -> Read:
        return await self._ask(lambda: self._model.space.read(keys))

    async def swap(
        self, key: bytes, value: bytes, mod_revision: int, guard: Guard | None = None
    ) -> int:
        def swap() -> int:
            return self._write(self._model.space.swap, key, value, mod_revision, guard)

        return await self._ask(swap)

    async def delete(
        self, ranges: Sequence[Range], guard: Guard | None = None, through: int = 0
    ) -> int:
        wanted = tuple(ranges)

        def delete() -> int:
            return self._write(self._model.space.delete, wanted, guard, through)

        return await self._ask(delete)

    async def compact(self, revision: int) -> None:
        await self._ask(lambda: self._write(self._model.compact, revision))

    async def status(self) -> Status:
        return await self._ask(self._status)

    async def tail(self, after: int) -> AsyncGenerator[Record, None]:
        self._check_open()
        model = self._model
        stream = Stream(self._link, after, model.faults, model.random)
        try:
            await self._ask(lambda: self._begin(stream, after))
            while True:
                yield await stream.take()
        finally:
            stream.is_closed = True
            if stream in self._streams:
                self._link.streams.remove(stream)
                self._streams.remove(stream)

    async def close(self) -> None:
        self.is_closed = True
        error = StoreError(f"{self._link.name}: the store is closed")
        for stream in self._streams:
            stream.fail(error)
        for answer in self._asked:
            if not answer.done():
                answer.set_exception(error)

    # One request.

    async def _ask(
        self, execute: Callable[[], T], deadline_s: float = DEADLINE_S, is_append: bool = False
    ) -> T:
        self._check_open()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        self._asked[answer] = None
        self._send(execute, answer, is_append)
        try:
            async with asyncio.timeout(deadline_s):
                return await answer
        except TimeoutError:
            raise StoreError(f"{self._link.name}: no answer in {deadline_s} s") from None
        finally:
            del self._asked[answer]

    def _send(self, execute: Callable[[], T], answer: asyncio.Future[T], is_append: bool) -> None:
        model, loop = self._model, asyncio.get_running_loop()
        if self._link.is_cut and not self._link.is_mute:
            # Nothing comes back that would tell of it.
            return
        if self._link.is_cut or model.chance(model.faults.request_lost):
            self._lose(answer)
            return

        def carry_out() -> None:
            self._reply(execute, answer)

        at = loop.time() + model.between(model.faults.latency_s) + self._link.delay_s
        if is_append and self._link.hoard_s:
            loop.call_at(at + self._link.hoard_s, self._queue_append, carry_out)
            self._lose(answer)
            return
        if model.chance(model.faults.late):
            at += model.between(model.faults.late_s)
        else:
            at = self._arrives_at = max(at, self._arrives_at + _APART_S)
        if is_append:
            loop.call_at(at, self._queue_append, carry_out)
        else:
            loop.call_at(at, model.when_committing, carry_out)

    def _queue_append(self, carry_out: Callable[[], None]) -> None:
        """Commit it in a moment, and its neighbours in any order meanwhile."""
        self._appends.append(carry_out)
        delay_s = self._model.between(self._model.faults.commit_s)
        asyncio.get_running_loop().call_later(
            delay_s, self._model.when_committing, self._commit_next
        )

    def _commit_next(self) -> None:
        is_swapped = len(self._appends) > 1 and self._model.chance(self._model.faults.swapped)
        self._appends.pop(1 if is_swapped else 0)()

    def _reply(self, execute: Callable[[], T], answer: asyncio.Future[T]) -> None:
        try:
            result = execute()
        except StoreError as error:
            self._after_reply(answer, _fail, answer, error)
        else:
            self._after_reply(answer, _succeed, answer, result)

    def _after_reply(
        self, answer: asyncio.Future[T], deliver: Callable[..., None], *arguments: object
    ) -> None:
        model = self._model
        if self._link.is_mute or model.chance(model.faults.reply_lost):
            self._lose(answer)
            return
        delay_s = model.between(model.faults.latency_s) + self._link.delay_s
        asyncio.get_running_loop().call_later(delay_s, deliver, *arguments)

    def _lose(self, answer: asyncio.Future[Any]) -> None:
        if self._model.random.random() < 0.5:
            error = StoreError(f"{self._link.name}: the connection broke")
            asyncio.get_running_loop().call_later(0.001, _fail, answer, error)

    # What is done in etcd.

    def _write(self, change: Callable[..., T], *arguments: Any) -> T:
        if self._link.forbidden:
            raise StoreForbiddenError(self._link.forbidden)
        space = self._model.space
        # It depends on where etcd notices it.
        space.crosses_quota = space.quota_bytes > 0 and self._model.chance(0.5)
        space.is_alarm_due = False
        result = change(*arguments)
        if space.is_alarm_due:
            self._model.raise_alarm()
            raise StoreFullError("etcd: database space exceeded")
        return result

    def _begin(self, stream: Stream, after: int) -> None:
        # A revision that is not there yet is waited for, without a word.
        records = self._model.space.appended(self._model.keys, after)
        if stream.is_closed:
            return
        for record in records:
            stream.publish(record)
        stream.is_behind = bool(records)
        self._link.streams.append(stream)
        self._streams.append(stream)

    def _status(self) -> Status:
        space = self._model.space
        return Status(
            version="3.4.23",
            revision=space.revision,
            database_bytes=space.database_bytes,
            used_bytes=space.used_bytes,
            quota_bytes=space.quota_bytes,
            is_full=space.is_full,
            endpoint=self.endpoint,
        )

    def _check_open(self) -> None:
        if self.is_closed:
            raise StoreError(f"{self._link.name}: the store is closed")


def _succeed(answer: asyncio.Future[T], result: T) -> None:
    if not answer.done():
        answer.set_result(result)


def _fail(answer: asyncio.Future[Any], error: StoreError) -> None:
    if not answer.done():
        answer.set_exception(error)

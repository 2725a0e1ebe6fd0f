"""The way from a server's process to the etcd of a world, which is a process of its own.

What a server asks is carried out in etcd's process: it is there whatever becomes of the server, and
arrives late or not at all as the model decides. A server that was killed or paused hears nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Coroutine, Sequence
from typing import Any, TypeVar

from paddock.log.etcd.store import Guard, Page, Range, Read, Status, Store, StoreError
from paddock.log.interface import Record
from paddock.testing.simulation.key_space import KeySpace
from paddock.testing.simulation.process import ProcessLoop
from paddock.testing.simulation.store_model import EtcdModel, ModelStore

T = TypeVar("T")


class WorldEtcd(EtcdModel):
    """The etcd of a world. It remembers all that was ever committed, for the judge."""

    def __init__(self, seed: int, process: ProcessLoop) -> None:
        super().__init__(seed)
        self.committed: list[tuple[float, Record]] = []
        # The machine of each boot that has ever proposed; with a `?` if its copy did, too, and
        # empty if its process was gone when its first batch was committed.
        self.boots: dict[bytes, str] = {}
        # The boots of which nothing is committed yet.
        self._stores: dict[bytes, RemoteStore] = {}
        self._is_restored = False
        self.process = process

    @property
    def last_index(self) -> int:
        """The index of the last record; 0 if there is none."""
        head = self.space.get(self.keys.head)
        return 0 if head is None else head.version

    def restore(self, backup: KeySpace, *, breaks_streams: bool = True) -> None:
        # What is committed from now on belongs to no log that anybody should follow.
        self._is_restored = True
        super().restore(backup, breaks_streams=breaks_streams)

    def note_boot(self, boot: bytes, machine: str, store: RemoteStore) -> None:
        if boot not in self.boots:
            self._stores[boot] = store
        known = self.boots.setdefault(boot, machine)
        if known != machine and not known.endswith("?"):
            self.boots[boot] = f"{min(known, machine, key=len)}?"

    def append(self, boot: bytes, number: int, payload: bytes) -> bool:
        put = super().append(boot, number, payload)
        if put and not self._is_restored:
            record = Record(self.last_index, payload, boot, number, self.space.revision)
            self.committed.append((self.process.true_time(), record))
            store = self._stores.pop(boot, None) if number == 0 else None
            if store is not None and store.is_over and not self.boots[boot].endswith("?"):
                self.boots[boot] = ""
        return put


class RemoteStore(Store):
    """The `Store` of one process."""

    def __init__(self, process: ProcessLoop, etcd: WorldEtcd, name: str) -> None:
        self.endpoint = "etcd"
        # Whether nobody hears any more what comes of what it has sent.
        self.is_over = False
        self._process = process
        self._etcd = etcd.process
        self._note_boot = etcd.note_boot
        self._name = name
        with etcd.process.enter():
            self._store: ModelStore = etcd.store(name)
        self._streams: list[_Stream] = []

    def abandon(self) -> None:
        """End its streams: the process is dead, and its connections with it."""
        self.is_over = True
        for stream in self._streams:
            stream.close()

    async def append(self, boot: bytes, number: int, payload: bytes) -> bool:
        self._note_boot(boot, self._name, self)
        return await self._ask(self._store.append(boot, number, payload))

    async def page(
        self, wanted: Range, revision: int = 0, limit: int = 0, *, keys_only: bool = False
    ) -> Page:
        return await self._ask(self._store.page(wanted, revision, limit, keys_only=keys_only))

    async def read(self, *keys: bytes) -> Read:
        return await self._ask(self._store.read(*keys))

    async def swap(
        self, key: bytes, value: bytes, mod_revision: int, guard: Guard | None = None
    ) -> int:
        return await self._ask(self._store.swap(key, value, mod_revision, guard))

    async def delete(
        self, ranges: Sequence[Range], guard: Guard | None = None, through: int = 0
    ) -> int:
        return await self._ask(self._store.delete(ranges, guard, through))

    async def compact(self, revision: int) -> None:
        await self._ask(self._store.compact(revision))

    async def status(self) -> Status:
        return await self._ask(self._store.status())

    async def tail(self, after: int) -> AsyncGenerator[Record, None]:
        stream = _Stream(self._process, self._etcd, self._store, after)
        self._streams.append(stream)
        try:
            while True:
                yield await stream.take()
        finally:
            stream.close()
            self._streams.remove(stream)

    async def close(self) -> None:
        self.is_over = True
        await self._ask(self._store.close())

    async def _ask(self, request: Coroutine[Any, Any, T]) -> T:
        answer: asyncio.Future[T] = self._process.create_future()
        task = self._etcd.spawn(request)
        task.add_done_callback(lambda done: self._process.run_soon(_answer, answer, done))
        return await answer


class _Stream:
    """A watch: what etcd's process reads of it, and what ours has not taken yet."""

    def __init__(
        self, process: ProcessLoop, etcd: ProcessLoop, store: ModelStore, after: int
    ) -> None:
        self._process = process
        self._etcd = etcd
        self._records: deque[Record] = deque()
        self._error: BaseException | None = None
        self._news: asyncio.Future[None] | None = None
        self._pump = etcd.spawn(self._read(store, after))

    async def take(self) -> Record:
        while not self._records:
            if self._error is not None:
                raise self._error
            self._news = self._process.create_future()
            await self._news
        return self._records.popleft()

    def close(self) -> None:
        self._etcd.run_soon(self._pump.cancel)

    async def _read(self, store: ModelStore, after: int) -> None:
        try:
            async for record in store.tail(after):
                self._process.run_soon(self._arrive, record)
        except StoreError as error:
            self._process.run_soon(self._fail, error)

    def _arrive(self, record: Record) -> None:
        self._records.append(record)
        self._tell()

    def _fail(self, error: StoreError) -> None:
        self._error = error
        self._tell()

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)


def _answer(answer: asyncio.Future[T], done: asyncio.Task[T]) -> None:
    if answer.done() or done.cancelled():
        return
    error = done.exception()
    if error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(done.result())

"""What the tests of the log in etcd share: a listener, servers on the model, virtual time."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from paddock.log.etcd.etcd_log import EtcdLog
from paddock.log.etcd.manifest import Cut, Manifest
from paddock.log.etcd.store import Range
from paddock.log.interface import LogError, Position, Record
from paddock.testing.clock import VirtualClockLoop
from paddock.testing.simulation.store_faults import StoreFaults
from paddock.testing.simulation.store_model import EtcdModel, ModelStore

T = TypeVar("T")


def virtually(main: Coroutine[Any, Any, T]) -> T:
    """Run in virtual time; fail if a task is left behind, or failed without anybody noticing."""
    complaints: list[dict[str, Any]] = []

    async def run() -> T:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        # A day of virtual time is over soon, where something is waited for in vain.
        async with asyncio.timeout(24 * 3600):
            result = await main
        # What was cancelled at the very end may end.
        await asyncio.sleep(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, left
        return result

    # What is there already need not be looked through.
    gc.freeze()
    try:
        with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
            result = runner.run(run())
            # An exception that nobody retrieved is complained of when its future is collected.
            gc.collect()
            assert not complaints, complaints
            return result
    finally:
        gc.unfreeze()


class Heard:
    """A listener that remembers everything."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.failure: LogError | None = None
        # While it is not done, there is no room.
        self._room: asyncio.Future[None] | None = None
        self._changed = asyncio.Event()

    def committed(self, record: Record) -> None:
        self.records.append(record)
        self._changed.set()

    def room(self) -> asyncio.Future[None] | None:
        return self._room

    def fill(self) -> None:
        """Have no room, until `make_room`."""
        self._room = asyncio.get_running_loop().create_future()

    def make_room(self) -> None:
        room, self._room = self._room, None
        # Who waited for it may have been cancelled.
        if room is not None and not room.done():
            room.set_result(None)

    def failed(self, error: LogError) -> None:
        assert self.failure is None, "told twice"
        self.failure = error
        self._changed.set()

    @property
    def indices(self) -> list[int]:
        return [one.index for one in self.records]

    @property
    def proposals(self) -> list[tuple[bytes | None, int]]:
        return [(one.server, one.number) for one in self.records]

    @property
    def position(self) -> Position:
        return position_of(self.records[-1])

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something holds, in a minute of virtual time; fail if it does not."""
        async with asyncio.timeout(60):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def index(self, index: int) -> None:
        """Wait until a record is told."""
        await self.until(lambda: bool(self.records) and self.records[-1].index >= index)

    async def failing(self) -> LogError:
        """Wait until it is told that the log is followed no more."""
        await self.until(lambda: self.failure is not None)
        assert self.failure is not None
        return self.failure


class Member:
    """A server: its store on a model, its log, and what it heard."""

    def __init__(self, model: EtcdModel, name: str, store: ModelStore | None = None) -> None:
        self.model = model
        self.boot = name.encode().rjust(8, b".")
        self.link = model.link(name)
        self.store = model.store(name) if store is None else store
        self.log = EtcdLog(self.store, model.keys)
        self.heard = Heard()
        self.next = 0

    async def follow(self, after: Position | None = None) -> None:
        await self.log.follow(self.heard, Position() if after is None else after)

    def propose(self, *payloads: bytes) -> None:
        """Propose batches, the next ones of its present boot."""
        if not self.log.server:
            self.log.begin(self.boot)
        for payload in payloads:
            self.log.propose(self.next, payload)
            self.next += 1

    async def write(self, count: int) -> None:
        """Propose batches, and wait until they came out."""
        wanted = {(self.boot, self.next + one) for one in range(count)}
        self.propose(*(b"%s %d" % (self.boot, self.next + one) for one in range(count)))
        await self.heard.until(lambda: wanted <= {*self.heard.proposals})

    async def close(self) -> None:
        await self.log.close()
        await self.store.close()


def position_of(record: Record) -> Position:
    assert record.server is not None
    return Position(record.index, record.revision, record.server, record.number)


async def start(model: EtcdModel, *names: str) -> list[Member]:
    """Start servers that follow the log from its beginning."""
    members = [Member(model, name) for name in names]
    for member in members:
        await member.follow()
    return members


async def close(*members: Member) -> None:
    for member in members:
        await member.close()


def trim(model: EtcdModel, last: Record, *, compacts: bool = True) -> None:
    """Do what snapshots and trimming do: a manifest at a record, and nothing up to it."""
    assert last.server is not None
    cut = Cut(last.index, last.revision, last.server, last.number)
    manifest = Manifest(cut, 1, "a snapshot", 1, 1, bytes(32), cut)
    space, keys = model.space, model.keys
    old = space.get(keys.manifest)
    space.swap(keys.manifest, manifest.encode(), 0 if old is None else old.mod_revision, None)
    batches = space.page(Range(keys.batches, keys.batches_end), 0, 0, 1 << 30).items
    trimmed = [one for one in batches if one.mod_revision <= last.revision]
    for one in trimmed:
        space.delete([Range(one.key)], None, 0)
    if compacts:
        model.compact(space.revision)


def quiet() -> EtcdModel:
    """Return a model without faults."""
    return EtcdModel()


def rough(seed: int) -> EtcdModel:
    return EtcdModel(seed, StoreFaults.rough())

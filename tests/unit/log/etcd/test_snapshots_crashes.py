"""Two servers upload and trim at once, and fail at every call: a reader can always build the state.

A seeded world: servers that write snapshots and trim, a writer that appends, duplicates that come
late, readers, answers that are lost, servers that crash. After every single call that etcd carries
out, its keys are looked at, as a new server would: the manifest's snapshot must be whole, and all
batches behind it and behind the previous one must be there.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from paddock.log.etcd.backup import ServiceHead, SnapshotPiece, read_service
from paddock.log.etcd.calls import Calls
from paddock.log.etcd.keys import Keys
from paddock.log.etcd.manifest import Cut, ManifestReplacedError, decode_manifest
from paddock.log.etcd.service import Service
from paddock.log.etcd.snapshots import upload
from paddock.log.etcd.store import Range, StoreError
from paddock.log.etcd.trimming import trim
from paddock.log.interface import Record
from tests.support.memory_store import Fault, MemoryEtcd, MemoryStore

KEYS = Keys("shop")
STEPS = 1200
# What is there at most: the current and the previous snapshot, and one of each server, and what a
# late call of its earlier one has left.
SNAPSHOTS_MAX = 6


async def no_sleep(seconds: float) -> None:
    pass


def apply(state: bytes, record: Record) -> bytes:
    return hashlib.sha256(state + record.payload).digest()


class World:
    """One etcd, and all that happens to it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.etcd = MemoryEtcd(KEYS)
        self.etcd.put((KEYS.id, Service(bytes(16)).encode()))
        # The state at each index.
        self.states = [bytes(32)]
        # Its cuts: what a snapshot taken there says.
        self.cuts = [Cut()]
        self.members = {self.random.randbytes(8): 0 for _ in range(2)}
        # What each actor waits for: its turn.
        self.waiting: dict[str, asyncio.Future[None]] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.uploads = self.trims = self.readings = self.crashes = 0

    def append(self, boot: bytes, number: int) -> None:
        if not self.etcd.append(boot, number, self.random.randbytes(5)):
            return
        record = self.etcd.records[-1]
        if number == self.members.get(boot):
            self.members[boot] += 1
        self.states.append(apply(self.states[-1], record))
        self.cuts.append(Cut(record.index, record.revision, boot, number, dict(self.members)))

    def write(self) -> None:
        """Append the next batch of a member, or a duplicate; or exchange a member."""
        chosen = self.random.random()
        boot = self.random.choice(list(self.members))
        if chosen < 0.05 and self.members[boot] > 5:
            del self.members[boot]
            self.append(self.random.randbytes(8), 0)
            self.members[self.etcd.records[-1].server or b""] = 1
        elif chosen < 0.15 and self.etcd.records:
            late = self.random.choice(self.etcd.records)
            self.append(late.server or b"", late.number)
        else:
            self.append(boot, self.members[boot])

    def content(self, index: int) -> bytes:
        """Return the snapshot at an index, of several pieces."""
        return self.states[index] * (1 + index % 4)

    def faults(self) -> Iterator[Fault]:
        kinds = [Fault.BEFORE, Fault.AFTER, Fault.LATE]
        while True:
            yield self.random.choice(kinds) if self.random.random() < 0.1 else Fault.NONE

    def store(self, actor: str) -> MemoryStore:
        store = MemoryStore(self.etcd)
        store.faults = self.faults()

        async def turn() -> None:
            self.waiting[actor] = asyncio.get_running_loop().create_future()
            await self.waiting[actor]

        store.turn = turn
        return store

    async def serve(self, actor: str) -> None:
        """Write a snapshot, not always of the newest state, and trim."""
        store = self.store(actor)
        calls = Calls(sleep=no_sleep, attempts_max=5)
        index = max(1, len(self.etcd.records) - self.random.randrange(10))
        if index >= len(self.cuts):
            return
        content = [self.content(index)]
        manifest = await upload(
            store, KEYS, content, self.cuts[index], 1, self.random.randbytes, calls=calls
        )
        self.uploads += 1
        await trim(store, KEYS, manifest, calls=calls)
        self.trims += 1

    async def read(self, actor: str) -> None:
        """Build the state as a backup does."""
        store = self.store(actor)
        snapshot = b""
        state: bytes | None = None
        head: ServiceHead | None = None
        async for piece in read_service(store, KEYS, calls=Calls(sleep=no_sleep)):
            if isinstance(piece, ServiceHead):
                head = piece
            elif isinstance(piece, SnapshotPiece):
                snapshot += piece.content
            else:
                state = apply(state or snapshot[:32] or bytes(32), piece)
        assert head is not None
        if head.manifest is not None:
            assert snapshot == self.content(head.manifest.index)
        assert (state or snapshot[:32] or bytes(32)) == self.states[head.index]
        self.readings += 1

    async def settle(self) -> None:
        for _ in range(4):
            await asyncio.sleep(0)

    async def step(self) -> None:
        chosen = self.random.random()
        if chosen < 0.2:
            self.write()
        elif chosen < 0.25:
            self.etcd.run_late()
        else:
            await self.advance(self.random.choice(["one", "two", "reader"]))

    async def advance(self, actor: str) -> None:
        """Let an actor make one call, or crash; or begin."""
        task = self.tasks.get(actor)
        if task is None:
            # Servers that begin again and again would only end each other's uploads.
            if self.random.random() < 0.9:
                return
            work: Coroutine[Any, Any, None]
            work = self.read(actor) if actor == "reader" else self.serve(actor)
            task = self.tasks[actor] = asyncio.create_task(work)
        elif self.random.random() < 0.01:
            task.cancel()
            self.crashes += 1
        elif actor in self.waiting:
            self.waiting.pop(actor).set_result(None)
        await self.settle()
        if task.done():
            del self.tasks[actor]
            self.waiting.pop(actor, None)
            if not task.cancelled():
                error = task.exception()
                allowed = isinstance(error, (ManifestReplacedError, StoreError, type(None)))
                assert allowed or "not newer" in str(error), repr(error)

    def check(self) -> None:
        """Build the state from the keys as they are."""
        etcd = self.etcd
        stored = etcd.items.get(KEYS.manifest)
        manifest = None if stored is None else decode_manifest(stored)
        cut, kept = Cut(), 0
        state = bytes(32)
        if manifest is not None and manifest.name:
            cut, kept = manifest.cut, manifest.trimmed.revision if manifest.trimmed else 0
            pieces = [KEYS.snapshot_piece(manifest.name, n) for n in range(manifest.chunks)]
            content = b"".join(etcd.items[key].value for key in pieces)
            assert content == self.content(cut.index)
            assert hashlib.sha256(content).digest() == manifest.sha256
            state = content[:32]
        found = etcd.select(Range(KEYS.batches, KEYS.batches_end))
        batches = sorted((etcd.items[key].mod_revision, key) for key in found)
        behind = [(revision, key) for revision, key in batches if revision > kept]
        assert behind == [
            (record.revision, KEYS.batch(record.server or b"", record.number))
            for record in etcd.records
            if record.revision > kept
        ]
        for record in etcd.records[cut.index :]:
            state = apply(state, record)
        assert state == self.states[-1]
        names = {
            key.split(b"/")[-2] for key in etcd.select(Range(KEYS.snapshots, KEYS.snapshots_end))
        }
        assert len(names) <= SNAPSHOTS_MAX, names

    async def finish(self) -> None:
        """End in peace: then only what is needed is there."""
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)
        while self.etcd.late:
            self.etcd.run_late()
            self.check()
        calls = Calls(sleep=no_sleep)
        store = MemoryStore(self.etcd)
        for _ in range(2):
            self.write_surely()
            cut = self.cuts[-1]
            content = [self.content(cut.index)]
            manifest = await upload(
                store, KEYS, content, cut, 1, self.random.randbytes, calls=calls
            )
            await trim(store, KEYS, manifest, calls=calls)
            self.check()
        assert len(self.etcd.select(Range(KEYS.snapshots, KEYS.snapshots_end))) == manifest.chunks
        assert len(self.etcd.select(Range(KEYS.batches, KEYS.batches_end))) == 1

    def write_surely(self) -> None:
        boot = next(iter(self.members))
        self.append(boot, self.members[boot])


async def run_world(seed: int) -> World:
    world = World(seed)
    for _ in range(STEPS):
        await world.step()
        world.check()
    await world.finish()
    return world


@pytest.mark.parametrize("seed", range(5))
def test_a_reader_can_always_build_the_state(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Small ones, so that each snapshot and each trimming takes several calls.
    monkeypatch.setattr("paddock.log.etcd.snapshots.PIECE_BYTES", 16)
    monkeypatch.setattr("paddock.log.etcd.snapshots._CHECK_PIECES", 3)
    monkeypatch.setattr("paddock.log.etcd.trimming.KEYS_MAX", 3)
    world = asyncio.run(run_world(seed))
    assert world.uploads > 3
    assert world.trims
    assert world.readings
    assert world.crashes

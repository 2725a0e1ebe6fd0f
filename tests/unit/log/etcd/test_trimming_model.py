"""Servers write, follow, upload and trim on the model of etcd, and newcomers join, from a seed.

Whoever begins at the manifest finds its snapshot and every record behind it, and everybody is told
the same, whatever is lost, late, or carried out twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import random

import pytest

from paddock.log.etcd.calls import Calls
from paddock.log.etcd.manifest import Cut, ManifestReplacedError, read_manifest
from paddock.log.etcd.snapshots import download, upload
from paddock.log.etcd.store import Range, StoreError
from paddock.log.etcd.trimming import trim
from paddock.log.interface import LogError, Position, Record, TrimmedError
from paddock.testing.simulation.store_faults import StoreFaults
from paddock.testing.simulation.store_model import EtcdModel
from tests.unit.log.etcd.helpers import Heard, Member, virtually

SEEDS = 6
_ROUNDS = 60


class Fold:
    """What the records mean: a state, and the next number of each boot."""

    def __init__(self) -> None:
        self.states = [bytes(32)]
        self.records: list[Record] = []
        # The cuts at which nothing was held, in order.
        self.cuts = [Cut()]
        self._next: dict[bytes, int] = {}
        self._held: set[tuple[bytes, int]] = set()
        self._ended: set[bytes] = set()

    def take(self, record: Record) -> None:
        """Take a record that anybody was told of; all must be told the same."""
        assert record.index <= len(self.records) + 1, "a record was missed"
        if record.index <= len(self.records):
            assert self.records[record.index - 1] == record
            return
        self.records.append(record)
        self.states.append(hashlib.sha256(self.states[-1] + record.payload).digest())
        boot, number = record.server or b"", record.number
        if boot not in self._ended and number >= self._next.setdefault(boot, 0):
            self._held.add((boot, number))
        while (boot, self._next.get(boot, -1)) in self._held:
            self._held.remove((boot, self._next[boot]))
            self._next[boot] += 1
        if not self._held:
            cut = Cut(record.index, record.revision, boot, number, dict(self._next))
            self.cuts.append(cut)

    def end(self, boot: bytes) -> None:
        """Let nothing of a boot count any more, and forget what it held."""
        self._ended.add(boot)
        self._next.pop(boot, None)
        self._held = {one for one in self._held if one[0] != boot}

    def content(self, index: int) -> bytes:
        """Return the snapshot at an index, of several pieces."""
        return self.states[index] * (3 + index % 5)


class Listener(Heard):
    """A listener whose records must be those of everybody."""

    def __init__(self, fold: Fold, after: Position) -> None:
        super().__init__()
        self.fold = fold
        self.next = after.index + 1

    def committed(self, record: Record) -> None:
        assert record.index == self.next
        self.next += 1
        self.fold.take(record)
        super().committed(record)


class Campaign:
    """Two servers that are both on duty, and newcomers."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        faults = StoreFaults.rough()
        # So often that batches come back after they were trimmed.
        faults.late = 0.05
        self.model = EtcdModel(seed, faults)
        self.fold = Fold()
        self.members = [Member(self.model, name) for name in ("one", "two")]
        self.boots = self.uploads = self.trims = self.joined = self.restarts = 0
        self.complaints: list[str] = []

    async def run(self) -> None:
        for member in self.members:
            await self.start(member)
        duties = [asyncio.create_task(self.duty(member)) for member in self.members]
        for number in range(_ROUNDS):
            member = self.random.choice(self.members)
            if member.heard.failure is not None:
                assert isinstance(member.heard.failure, TrimmedError)
                await self.start(member)
                self.restarts += 1
            member.propose(*(self.random.randbytes(9) for _ in range(self.random.randint(1, 6))))
            await asyncio.sleep(self.random.choice([0.0, 0.01, 0.5, 3.0]))
            if number % 10 == 9:
                await self.join()
            if number % 20 == 19:
                self.begin(member)
        self.model.faults.calm()
        for task in duties:
            task.cancel()
        await asyncio.gather(*duties, return_exceptions=True)
        # What is late arrives.
        await asyncio.sleep(120)
        await self.join()
        await self.finish()
        for member in self.members:
            await member.close()

    def begin(self, member: Member) -> None:
        """Propose under a new name; the old one may be told of for long."""
        self.boots += 1
        self.fold.end(member.boot)
        member.boot = b"boot%04d" % self.boots
        member.next = 0
        member.log.begin(member.boot)

    async def start(self, member: Member) -> None:
        """Take the newest snapshot, and follow the log behind it."""
        calls = Calls(asyncio.get_running_loop().time)
        while True:
            try:
                manifest = await read_manifest(member.store, self.model.keys, calls)
                after = Position() if manifest is None else manifest.position
                if manifest is not None:
                    pieces = download(member.store, self.model.keys, manifest, calls=calls)
                    content = b"".join([piece async for piece in pieces])
                    assert content == self.fold.content(manifest.index)
                member.heard = Listener(self.fold, after)
                await member.follow(after)
            except (TrimmedError, ManifestReplacedError, StoreError):
                continue
            self.begin(member)
            return

    async def join(self) -> None:
        """Let a newcomer come to the end of the log."""
        newcomer = Member(self.model, "new")
        await self.start(newcomer)
        self.joined += 1
        await newcomer.close()

    async def duty(self, member: Member) -> None:
        """Write snapshots and trim, again and again; a pause lets the other one succeed, too."""
        keys, calls = self.model.keys, Calls(asyncio.get_running_loop().time)
        while True:
            await asyncio.sleep(self.random.uniform(0.1, 3.0))
            cut = self.fold.cuts[-1]
            content = [self.fold.content(cut.index)]
            try:
                manifest = await upload(
                    member.store, keys, content, cut, 1, self.random.randbytes, calls=calls
                )
                self.uploads += 1
                await trim(member.store, keys, manifest, calls=calls)
                self.trims += 1
            except LogError as error:
                if not isinstance(error, (ManifestReplacedError, StoreError)):
                    self.complaints.append(str(error))

    async def finish(self) -> None:
        """End in peace: then only what is needed is there."""
        keys, space = self.model.keys, self.model.space
        [member, _] = self.members
        for _ in range(2):
            self.begin(member)
            await member.write(1)
            cut = self.fold.cuts[-1]
            content = [self.fold.content(cut.index)]
            manifest = await upload(member.store, keys, content, cut, 1, self.random.randbytes)
            await trim(member.store, keys, manifest)
        pieces = space.page(Range(keys.snapshots, keys.snapshots_end), 0, 0, 1 << 30)
        assert len(pieces.items) == manifest.chunks
        batches = space.page(Range(keys.batches, keys.batches_end), 0, 0, 1 << 30)
        assert len(batches.items) == 1


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whoever_begins_at_the_manifest_is_told_everything(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paddock.log.etcd.snapshots.PIECE_BYTES", 8)
    monkeypatch.setattr("paddock.log.etcd.trimming.KEYS_MAX", 4)

    async def play() -> Campaign:
        campaign = Campaign(seed)
        await campaign.run()
        return campaign

    campaign = virtually(play())
    assert campaign.uploads > 2
    assert campaign.trims
    assert all("is not newer" in one for one in campaign.complaints)
    assert campaign.joined > _ROUNDS // 10

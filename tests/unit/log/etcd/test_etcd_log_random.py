"""Servers propose and follow while everything goes wrong, from a seed: they are told the same.

A failing seed is played again by its test alone.
"""

from __future__ import annotations

import asyncio
import random

import pytest

from paddock.log.interface import LogError, Record, TrimmedError
from paddock.testing.simulation.store_faults import StoreFaults
from paddock.testing.simulation.store_model import EtcdModel, ModelStore
from tests.unit.log.etcd.helpers import Heard, Member, position_of, trim, virtually

SEEDS = 200
_STEPS = 40


class Witness(ModelStore):
    """A store that remembers which appends were answered."""

    def __init__(self, model: EtcdModel, name: str) -> None:
        super().__init__(model, model.link(name))
        self.answered: set[tuple[bytes, int, bytes]] = set()

    async def append(self, boot: bytes, number: int, payload: bytes) -> bool:
        is_new = await super().append(boot, number, payload)
        self.answered.add((boot, number, payload))
        return is_new


class Campaign:
    """Three servers, what was answered to them, and what happens to them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.model = EtcdModel(seed, StoreFaults.rough())
        self.stores = [Witness(self.model, name) for name in ("one", "two", "three")]
        self.members = [Member(self.model, one.name, one) for one in self.stores]
        self.boots = 0
        # The log as it was told to anybody, by index; and the snapshots' place.
        self.told: dict[int, Record] = {}
        self.base = 0
        self.restarts = 0

    async def run(self) -> None:
        for member in self.members:
            await self._follow_until_it_works(member)
        for _ in range(_STEPS):
            await self._step()
            await asyncio.sleep(self.random.choice([0.0, 0.001, 0.01, 0.3, 2.0]))
            for member in self.members:
                if member.heard.failure is not None:
                    await self._go_on(member)
        await self._settle()
        for member in self.members:
            await member.close()

    async def _step(self) -> None:
        member = self.random.choice(self.members)
        match self.random.choices(
            ["propose", "cut", "mute", "heal", "break", "withdraw", "restart", "trim", "stall"],
            [30, 2, 2, 8, 2, 1, 1, 1, 1],
        )[0]:
            case "propose":
                if not member.log.server:
                    self._begin(member)
                count = self.random.randint(1, 4)
                member.propose(*(b"%d" % self.random.getrandbits(64) for _ in range(count)))
            case "cut":
                member.link.cut()
            case "mute":
                member.link.cut_replies()
            case "heal":
                member.link.heal()
            case "break":
                member.link.break_streams()
            case "withdraw":
                member.log.withdraw()
            case "restart":
                member.link.heal()
                await self._restart(member)
            case "trim":
                self._trim()
            case "stall":
                self.model.elect()

    def _begin(self, member: Member) -> None:
        self.boots += 1
        member.boot = b"boot%04d" % self.boots
        member.next = 0
        member.log.begin(member.boot)

    def _trim(self) -> None:
        """Take a snapshot of what a server has, and trim up to it."""
        member = self.random.choice(self.members)
        records = member.heard.records
        if records and records[-1].index > self.base:
            self._check(member)
            self.base = records[-1].index
            trim(self.model, records[-1])

    async def _go_on(self, member: Member) -> None:
        """A server was told that its log ended, which only trimming is a reason for."""
        error = member.heard.failure
        assert isinstance(error, TrimmedError), error
        member.link.heal()
        await self._restart(member)

    async def _restart(self, member: Member) -> None:
        """Begin anew from the last snapshot, or from what it has if that is newer."""
        self.restarts += 1
        self._check(member)
        member.log.withdraw()
        last = member.heard.records[-1:]
        member.heard = Heard()
        if last and last[0].index > self.base and self.random.random() < 0.5:
            member.heard.records = last
        elif self.base:
            member.heard.records = [self.told[self.base]]
        await self._follow_until_it_works(member)

    async def _follow_until_it_works(self, member: Member) -> None:
        while True:
            try:
                if member.heard.records:
                    await member.follow(position_of(member.heard.records[-1]))
                else:
                    await member.follow()
                return
            except TrimmedError:
                member.heard.records = [self.told[self.base]]
            except LogError:
                pass

    async def _settle(self) -> None:
        """Let everything heal, and see that everybody has everything."""
        self.model.faults.calm()
        for member in self.members:
            member.link.heal()
        await asyncio.sleep(70)
        for member in self.members:
            if member.heard.failure is not None:
                await self._go_on(member)
            if not member.log.server:
                self._begin(member)
            await member.write(1)
        last = self.model.space.read([self.model.keys.head]).found[0]
        assert last is not None
        for member in self.members:
            await member.heard.index(last.version)
            assert member.heard.failure is None
            assert member.heard.indices[-1] == last.version
            self._check(member)
        # Everything was told to somebody, and what was answered is part of it.
        assert sorted(self.told) == [*range(1, last.version + 1)]
        told = {(one.server, one.number, one.payload) for one in self.told.values()}
        for store in self.stores:
            assert store.answered <= told

    def _check(self, member: Member) -> None:
        """Compare what a server was told with what others were."""
        records = member.heard.records
        if records:
            assert member.heard.indices == [*range(records[0].index, records[-1].index + 1)]
        for record in records:
            assert self.told.setdefault(record.index, record) == record


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_server_is_told_the_same_whatever_happens(seed: int) -> None:
    async def scenario() -> None:
        await Campaign(seed).run()

    virtually(scenario())

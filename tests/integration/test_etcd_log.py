"""The shared log on a real etcd: followed, compacted, killed, restored."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from paddock.log.etcd.etcd_log import EtcdLog
from paddock.log.etcd.etcd_store import EtcdStore
from paddock.log.etcd.keys import Keys
from paddock.log.etcd.options import EtcdOptions
from paddock.log.interface import LogError, OtherHistoryError, Position, Record
from tests.support.etcd import Etcd, EtcdCluster, find_etcdctl

pytestmark = pytest.mark.judge

_PATIENCE_S = 60.0
_names = itertools.count()


class Member:
    """A server's log, and what it was told."""

    def __init__(self, endpoints: tuple[str, ...], keys: Keys) -> None:
        self.boot = os.urandom(8)
        self.store = EtcdStore(EtcdOptions(endpoints), keys)
        self.log = EtcdLog(self.store, keys)
        self.records: list[Record] = []
        self.failure: LogError | None = None
        self.next = 0
        self._changed = asyncio.Event()

    def committed(self, record: Record) -> None:
        self.records.append(record)
        self._changed.set()

    def room(self) -> None:
        pass

    def failed(self, error: LogError) -> None:
        self.failure = error
        self._changed.set()

    async def follow(self) -> None:
        await self.log.follow(self, Position())

    def propose(self, count: int) -> None:
        if not self.log.server:
            self.log.begin(self.boot)
        for _ in range(count):
            self.log.propose(self.next, b"%s %d" % (self.boot, self.next))
            self.next += 1

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(_PATIENCE_S):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def told(self, count: int) -> None:
        await self.until(lambda: len(self.records) >= count)

    async def failing(self) -> LogError | None:
        await self.until(lambda: self.failure is not None)
        return self.failure

    async def close(self) -> None:
        await self.log.close()
        await self.store.close()


def run(
    endpoints: tuple[str, ...], names: int, use: Callable[[list[Member], Keys], Awaitable[None]]
) -> None:
    async def main() -> None:
        keys = Keys(f"log-{next(_names)}")
        members = [Member(endpoints, keys) for _ in range(names)]
        try:
            await use(members, keys)
        finally:
            for member in members:
                await member.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not {one for one in left if "paddock" in repr(one)}

    asyncio.run(main())


def check_whole(members: list[Member], count: int) -> None:
    for member in members:
        assert [one.index for one in member.records] == [*range(1, count + 1)]
        assert member.records == members[0].records
    expected = {(one.boot, number) for one in members for number in range(one.next)}
    assert {(one.server, one.number) for one in members[0].records} == expected


def test_servers_are_told_the_same(shared_etcd: Etcd) -> None:
    async def use(members: list[Member], keys: Keys) -> None:
        for member in members:
            await member.follow()
        for _ in range(20):
            for member in members:
                member.propose(4)
            await asyncio.sleep(0)
        for member in members:
            await member.told(240)
        check_whole(members, 240)
        assert all(member.log.figures.reopenings == 0 for member in members)

    run((shared_etcd.endpoint,), 3, use)


def test_a_compacted_log_is_read_in_pages(etcd: Etcd) -> None:
    async def use(members: list[Member], keys: Keys) -> None:
        one, two, late = members
        for member in (one, two):
            await member.follow()
            member.propose(100)
        await one.told(200)
        revision = (await one.store.read(keys.head)).revision
        await one.store.compact(revision)
        await late.follow()
        assert late.log.figures.page_reads == 1
        one.propose(1)
        for member in members:
            await member.told(201)
        check_whole(members, 201)

    run((etcd.endpoint,), 3, use)


def test_everything_comes_out_when_the_leader_is_killed(etcd_cluster: EtcdCluster) -> None:
    async def use(members: list[Member], _: Keys) -> None:
        for member in members:
            await member.follow()
            member.propose(50)
        etcd_cluster.leader().kill()
        for member in members:
            member.propose(50)
        for member in members:
            await member.told(200)
        check_whole(members, 200)

    run(etcd_cluster.endpoints, 2, use)


def test_a_restored_etcd_is_another_history(etcd: Etcd, tmp_path: Path) -> None:
    def restore() -> None:
        etcd.kill()
        etcd.wipe()
        etcd.data.rmdir()
        command = [find_etcdctl(), "snapshot", "restore", str(backup), "--data-dir"]
        command += [str(etcd.data), "--name", etcd.member]
        command += ["--initial-cluster", f"{etcd.member}={etcd.peer_url}"]
        command += ["--initial-advertise-peer-urls", etcd.peer_url]
        environment = {**os.environ, "ETCDCTL_API": "3"}
        subprocess.run(command, check=True, capture_output=True, env=environment)
        etcd.start()

    async def use(members: list[Member], _: Keys) -> None:
        one, two = members
        for member in members:
            await member.follow()
        one.propose(5)
        await two.told(5)
        await asyncio.to_thread(etcd.ctl, "snapshot", "save", str(backup))
        one.propose(5)
        for member in members:
            await member.told(10)
        await asyncio.to_thread(restore)
        for member in members:
            assert isinstance(await member.failing(), OtherHistoryError)
            assert len(member.records) == 10

    backup = tmp_path / "backup"
    run((etcd.endpoint,), 2, use)

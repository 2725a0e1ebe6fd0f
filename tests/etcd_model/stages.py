"""Where scripts are played: a real etcd of three members, or the simulation's model of it."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

from paddock.log.etcd.etcd_store import EtcdStore
from paddock.log.etcd.keys import Keys
from paddock.log.etcd.options import EtcdOptions
from paddock.log.etcd.store import Range, Store, StoreError
from paddock.testing.simulation.key_space import KeySpace
from paddock.testing.simulation.store_faults import StoreFaults
from paddock.testing.simulation.store_model import EtcdModel
from tests.etcd_model.calls import DONE, Answer
from tests.support.etcd import Etcd, EtcdCluster, find_etcdctl

NAMES: Final = ("one", "two", "three")
# Of a cluster that is filled.
SMALL_QUOTA_BYTES: Final = 3 << 20
_PAUSE_S: Final = 0.1
# How long a member is paused, and how long it is dead: an election takes about as long.
_PAUSED_S: Final = (0.5, 2.5)
_BEGIN_ATTEMPTS: Final = 100


class Stage(Protocol):
    """A cluster with three stores on it, and what may happen to it."""

    keys: Keys

    @property
    def stores(self) -> Mapping[str, Store]: ...

    async def begin(self) -> int:
        """Make it as good as new; return the revision that everything is compacted to."""

    async def find_leader(self) -> None:
        """Get ready for the next call, so that nothing is waited for in it."""

    def strike(self, chances: random.Random) -> None:
        """Have the leader fail, at once."""

    async def heal(self) -> None:
        """Wait until the failure has been noticed, and end it."""

    async def backup(self) -> Answer: ...

    async def restore(self) -> Answer: ...

    async def make_space(self) -> Answer:
        """Defragment, and disarm the alarm."""

    async def close(self) -> None: ...


async def prepare(store: Store, keys: Keys) -> int:
    """Delete everything and compact the history; return its revision."""
    for _ in range(_BEGIN_ATTEMPTS):
        try:
            revision = await store.delete([Range(keys.head, keys.skips_end)])
            await store.compact(revision)
        except StoreError:
            await asyncio.sleep(_PAUSE_S)
        else:
            return revision
    raise AssertionError("etcd does not recover")


class EtcdStage(Stage):
    """Three members, and a store that begins with each of them."""

    def __init__(self, cluster: EtcdCluster, keys: Keys) -> None:
        self.keys = keys
        self._cluster = cluster
        self._leader: Etcd | None = None
        self._wait_s = 0.0
        self._stores: dict[str, Store] = {}
        for name, member in zip(NAMES, cluster.members, strict=True):
            options = EtcdOptions(cluster.in_order(member))
            self._stores[name] = EtcdStore(options, keys)

    @property
    def stores(self) -> Mapping[str, Store]:
        return self._stores

    async def begin(self) -> int:
        return await prepare(self._stores[NAMES[0]], self.keys)

    async def find_leader(self) -> None:
        self._leader = await asyncio.to_thread(self._cluster.leader)

    def strike(self, chances: random.Random) -> None:
        assert self._leader is not None, "find_leader comes first"
        self._wait_s = chances.uniform(*_PAUSED_S)
        if chances.random() < 0.5:
            self._leader.kill()
        else:
            self._leader.pause()

    async def heal(self) -> None:
        await asyncio.sleep(self._wait_s)
        await asyncio.to_thread(self._cluster.start)

    async def backup(self) -> Answer:
        await asyncio.to_thread(self._save)
        return DONE

    async def restore(self) -> Answer:
        await asyncio.to_thread(self._restore)
        return DONE

    async def make_space(self) -> Answer:
        def tidy_up() -> None:
            for member in self._cluster.members:
                member.ctl("defrag")
            self._cluster.members[0].ctl("alarm", "disarm")

        await asyncio.to_thread(tidy_up)
        return DONE

    async def close(self) -> None:
        for store in self._stores.values():
            await store.close()

    @property
    def _file(self) -> Path:
        return self._cluster.folder / "backup"

    def _save(self) -> None:
        member = self._cluster.leader()
        # A linearizable read: what was answered by another member is applied in this one, too.
        member.ctl("get", "any")
        self._file.unlink(missing_ok=True)
        member.ctl("snapshot", "save", str(self._file))

    def _restore(self) -> None:
        for member in self._cluster.members:
            member.kill()
        for member in self._cluster.members:
            member.wipe()
            member.data.rmdir()
            peers = ",".join(f"{name}={url}" for name, url in member.peers.items())
            command = [find_etcdctl(), "snapshot", "restore", str(self._file)]
            command += ["--data-dir", str(member.data), "--name", member.member]
            command += ["--initial-cluster", peers]
            command += ["--initial-cluster-token", self._cluster.folder.name]
            command += ["--initial-advertise-peer-urls", member.peer_url]
            environment = {**os.environ, "ETCDCTL_API": "3"}
            subprocess.run(command, check=True, capture_output=True, env=environment)
            member.launch()
        # None of them says that it is well, if the alarm was in the backup.
        self._cluster.leader()


class ModelStage(Stage):
    """The simulation's etcd, in virtual time."""

    def __init__(self, seed: int, keys: Keys) -> None:
        self.keys = keys
        self.model = EtcdModel(seed, keys=keys, quota_bytes=SMALL_QUOTA_BYTES)
        self._random = random.Random(seed)
        self._stores = {name: self.model.store(name) for name in NAMES}
        self._backup: KeySpace | None = None

    @property
    def stores(self) -> Mapping[str, Store]:
        return self._stores

    async def begin(self) -> int:
        return await prepare(self._stores[NAMES[0]], self.keys)

    async def find_leader(self) -> None:
        return

    def strike(self, chances: random.Random) -> None:
        rough = StoreFaults.rough()
        faults = self.model.faults
        faults.reply_lost = faults.request_lost = 0.3
        faults.stream_broken, faults.stream_silent = rough.stream_broken, rough.stream_silent
        faults.late, faults.late_s = 0.2, (0.5, 5.0)
        self.model.elect()
        self.model.link(chances.choice(NAMES)).break_streams()

    async def heal(self) -> None:
        await asyncio.sleep(2.0)
        self.model.faults.calm()

    async def backup(self) -> Answer:
        await asyncio.sleep(self._random.uniform(0, 0.01))
        self._backup = self.model.backup()
        await asyncio.sleep(self._random.uniform(0, 0.01))
        return DONE

    async def restore(self) -> Answer:
        assert self._backup is not None, "there is a backup"
        self.model.restore(self._backup)
        return DONE

    async def make_space(self) -> Answer:
        self.model.make_space()
        return DONE

    async def close(self) -> None:
        for store in self._stores.values():
            await store.close()

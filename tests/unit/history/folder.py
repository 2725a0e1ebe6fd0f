"""Makes data folders with a past that is known: the state after each zxid."""

from __future__ import annotations

import contextlib
import queue
from pathlib import Path
from random import Random
from typing import Any

from paddock.log.file.file_log import FileLog
from paddock.protocol import opcodes
from paddock.protocol.acl import ACL, ALL, READ, Identity
from paddock.protocol.requests import CreateRequest, SetDataRequest, VersionRequest
from paddock.state.entry import Batch
from paddock.state.snapshot import Snapshot
from paddock.storage.layout import FORMAT
from paddock.storage.snapshots import SnapshotStore
from tests.property.dump import dump
from tests.support.logs import Reports
from tests.unit.state.driver import OPEN, Connection, World

READERS: list[ACL | None] = [
    ACL(ALL, Identity("digest", "bob:hash")),
    ACL(READ, Identity("world", "anyone")),
]
PATHS = [b"/a", b"/a/x", b"/a/y", b"/b", b"/b/x"]


class PastFolder:
    """A data folder that is written batch by batch, each in a segment of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.world = World()
        self.index = 0
        # The state after each zxid, and the time of the last entry with it.
        self.states: dict[int, dict[str, Any]] = {0: dump(self.world.machine)}
        self.times: dict[int, int] = {}
        for name in ("log", "snapshots"):
            (path / name).mkdir(parents=True)
        (path / "format").write_bytes(FORMAT)
        self._log = FileLog(path / "log", segment_bytes=1, step_bytes=1)
        self._durable: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._log.start(Reports(self._log, lambda index, *_: self._durable.put(index)))
        self._store = SnapshotStore(path / "snapshots")
        self._digest = self.world.machine.digest()
        self._written = 0

    def note(self) -> None:
        """Remember the state as it is now."""
        machine = self.world.machine
        self.states[machine.zxid] = dump(machine)
        self.times[machine.zxid] = machine.time_ms

    def commit(self) -> None:
        """Write what was applied since the last time as one batch."""
        entries = self.world.entries[self._written :]
        if not entries:
            return
        self._written = len(self.world.entries)
        payload = Batch(entries, self.index, self._digest).encode()
        self.index += 1
        self._log.propose(self.index, payload)
        assert self._durable.get(timeout=60) == self.index
        self._digest = self.world.machine.digest()

    def snapshot(self) -> None:
        self.commit()
        writer = self._store.begin(self.index)
        for chunk in Snapshot(self.world.machine).chunks():
            writer.append(chunk)
        writer.commit()

    def close(self) -> None:
        self.commit()
        self._log.close()

    def segment(self, index: int) -> Path:
        return self.path / "log" / f"{index:020d}.log"

    def __enter__(self) -> PastFolder:
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(Exception):
            self.close()


def live(folder: PastFolder, draw: Random, steps: int) -> None:
    """Let clients write at random, with snapshots now and then."""
    world = folder.world
    clients: list[Connection] = []
    for _ in range(steps):
        kind = draw.random()
        if not clients or kind < 0.08:
            client = world.open(is_exact=draw.random() < 0.5)
            client.be(Identity("ip", "10.0.0.7"))
            clients.append(client)
        elif kind < 0.12:
            world.expire(clients.pop().session, 1)
        else:
            _write(draw.choice(clients), draw)
        folder.note()
        if draw.random() < 0.6:
            folder.commit()
        if draw.random() < 0.05:
            folder.snapshot()
    folder.commit()


def _write(client: Connection, draw: Random) -> None:
    path, data = draw.choice(PATHS), b"%d" % draw.randrange(1000)
    kind = draw.randrange(6)
    if kind == 0:
        client.create(path, data, draw.choice((0, 1)))
    elif kind == 1:
        client.delete(path)
    elif kind == 2:
        client.set_acl(path, draw.choice((OPEN, READERS)))
    elif kind == 3:
        client.multi(
            (opcodes.CREATE, CreateRequest(draw.choice(PATHS), data, OPEN, 0)),
            (opcodes.SET_DATA, SetDataRequest(path, data, -1)),
            (opcodes.DELETE, VersionRequest(draw.choice(PATHS), -1)),
        )
    else:
        client.set(path, data)

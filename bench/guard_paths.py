"""The hot paths whose instructions `make bench-guard` counts.

    python -m bench.guard_paths ROUNDS

Each path runs some times to warm up, and then ROUNDS times between two calls of `mark`, which
valgrind sees. Afterwards the replies are checked, because a refusal is quick, too. The process
prints one line of JSON: the number of operations of each path, and the conditions of the counts.
"""

from __future__ import annotations

import asyncio
import gc
import io
import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Final

import paddock
from bench.guard_about import combination, versions
from bench.guard_stage import (
    DATA,
    SESSION_TIMEOUT_MS,
    CannedServer,
    Heart,
    KeptDisk,
    Peer,
    StillLoop,
    encoded,
    request,
)
from bench.servers import BenchError
from paddock.client.client import Client
from paddock.log.interface import Record
from paddock.protocol import opcodes
from paddock.protocol.acl import OPEN, Identity
from paddock.protocol.requests import (
    AddWatchRequest,
    CreateRequest,
    SetDataRequest,
    WatchedRequest,
)
from paddock.state.access import Identities
from paddock.state.entry import Batch, Entry
from paddock.state.machine import StateMachine, session_body
from paddock.state.snapshot import Snapshot, restore
from paddock.storage.replay import Replay
from paddock.storage.snapshots import SnapshotWriter, read_chunks

# How many requests come in one read, or how many watchers there are.
CROWD: Final = 100
# Rounds before the count: the interpreter specialises its code first.
WARM_UP_ROUNDS: Final = 3
# The session whose writes are replayed, and who it is.
_SESSION: Final = 7
_WHO: Final = Identities((Identity("ip", "127.0.0.1"),))
# CPython's allocator: the size of a pool, the steps of the sizes, and the largest one.
POOL_BYTES: Final = 16 << 10
SIZE_STEP: Final = 16
SMALL_BYTES: Final = 512


class HotPath:
    """One hot path, ready to run again and again."""

    async def take(self, rounds: int) -> None:
        """Run so many rounds; all operations are answered at the end."""
        raise NotImplementedError

    def check(self, rounds: int) -> None:
        """Check the replies of so many rounds, and drop them. Raises BenchError."""
        raise NotImplementedError

    async def close(self) -> None:
        """Leave nothing behind."""


class Reads(HotPath):
    """Queries, in one read or in several."""

    def __init__(self, peer: Peer, reads: list[bytes]) -> None:
        self._peer = peer
        # The bytes of each round.
        self._reads = reads

    async def take(self, rounds: int) -> None:
        reads, receive = self._reads, self._peer.connection.data_received
        for _ in range(rounds):
            for read in reads:
                receive(read)

    def check(self, rounds: int) -> None:
        self._peer.check(rounds * CROWD)


class Writes(HotPath):
    """Writes, in one read; every round has its own requests."""

    def __init__(self, heart: Heart, peer: Peer, rounds: list[bytes]) -> None:
        self._heart = heart
        self._peer = peer
        self._rounds = iter(rounds)

    async def take(self, rounds: int) -> None:
        settle, receive = self._heart.settle, self._peer.connection.data_received
        for _ in range(rounds):
            receive(next(self._rounds))
            await settle()

    def check(self, rounds: int) -> None:
        self._peer.check(rounds * CROWD)


class Events(HotPath):
    """One node that changes again and again, and many watchers."""

    def __init__(
        self, heart: Heart, writer: Peer, change: bytes, watchers: list[Peer], renew: bytes | None
    ) -> None:
        self._heart = heart
        self._writer = writer
        self._change = change
        self._watchers = watchers
        # The request of each watcher before each change: it sets a one-shot watch.
        self._renew = renew

    async def take(self, rounds: int) -> None:
        settle, change = self._heart.settle, self._writer.connection.data_received
        watchers = [one.connection.data_received for one in self._watchers]
        for _ in range(rounds):
            if self._renew is not None:
                for receive in watchers:
                    receive(self._renew)
            change(self._change)
            await settle()

    def check(self, rounds: int) -> None:
        self._writer.check(rounds)
        asked = 0 if self._renew is None else rounds
        for watcher in self._watchers:
            watcher.check(asked, events=rounds)


class Replays(HotPath):
    """Records of the log that a start replays; every round has its own."""

    def __init__(self, records: list[Record]) -> None:
        self._records = iter(records)
        self._replay = Replay(StateMachine(), 0)
        self._replay.apply(next(self._records))
        self._nodes = len(self._replay.machine.tree)

    async def take(self, rounds: int) -> None:
        apply, records = self._replay.apply, self._records
        for _ in range(rounds):
            apply(next(records))

    def check(self, rounds: int) -> None:
        self._nodes = _grown(self._replay.machine, self._nodes, rounds)


class Snapshots(HotPath):
    """Snapshots of a state, as a server writes them; or one that is loaded, as at a start."""

    def __init__(self, machine: StateMachine, *, loads: bool) -> None:
        self._machine = machine
        self._disk = KeptDisk()
        self._files: list[bytes] = []
        self._loaded: list[StateMachine] = []
        self._whole = self._written() if loads else b""

    async def take(self, rounds: int) -> None:
        for _ in range(rounds):
            if self._whole:
                self._loaded.append(_read(self._whole))
            else:
                self._files.append(self._written())

    def check(self, rounds: int) -> None:
        loaded = self._loaded if self._whole else [*map(_read, self._files)]
        if len(loaded) != rounds:
            raise BenchError(f"{len(loaded)} snapshots of {rounds}")
        for machine in loaded:
            _grown(machine, len(StateMachine().tree) + 1, 1)
        self._files, self._loaded = [], []

    def _written(self) -> bytes:
        """Return the file of a snapshot of the state."""
        writer = SnapshotWriter(self._disk, Path("snapshot"), 1)
        for chunk in Snapshot(self._machine).chunks():
            writer.append(chunk)
        writer.commit()
        return self._disk.take()


def _read(whole: bytes) -> StateMachine:
    return restore(read_chunks(io.BytesIO(whole), len(whole), 1))


def _grown(machine: StateMachine, before: int, rounds: int) -> int:
    """Return how many nodes there are, if so many rounds have made all that are new."""
    nodes = len(machine.tree)
    if nodes != before + rounds * CROWD:
        raise BenchError(f"{nodes} nodes of {before + rounds * CROWD}")
    return nodes


class ClientGets(HotPath):
    """Gets by a client, so many in flight."""

    def __init__(self, client: Client, server: CannedServer, path: str, window: int) -> None:
        self._window = window
        self._client = client
        self._server = server
        self._path = path
        self._data = b""

    async def take(self, rounds: int) -> None:
        get, path, several = self._client.get, self._path, range(self._window)
        for _ in range(rounds * CROWD // self._window):
            for future in [get(path) for _ in several]:
                self._data, _ = await future

    def check(self, rounds: int) -> None:
        data, self._data = self._data, b""
        if data != DATA:
            raise BenchError(f"the client got {data!r}")

    async def close(self) -> None:
        self._server.serve_end()
        await self._client.close()


async def _reads(operation: int, window: int) -> HotPath:
    heart, paths = Heart(), _paths("node", CROWD)
    peer = await heart.peer()
    await heart.ask(peer, [_create(path) for path in (b"/guard", *paths)])
    requests = [request(operation, WatchedRequest(path, False)) for path in paths]
    starts = range(0, CROWD, window)
    return Reads(peer, [b"".join(requests[start : start + window]) for start in starts])


async def get(_: int) -> HotPath:
    """Gets of a hundred nodes that come in one read."""
    return await _reads(opcodes.GET_DATA, CROWD)


async def get_alone(_: int) -> HotPath:
    """Gets of a hundred nodes, each in a read of its own."""
    return await _reads(opcodes.GET_DATA, 1)


async def exists(_: int) -> HotPath:
    """As `get`."""
    return await _reads(opcodes.EXISTS, CROWD)


async def set_(rounds: int) -> HotPath:
    """Sets of a hundred nodes that come in one read, up to the reply; the log is in memory."""
    heart, paths = Heart(), _paths("node", CROWD)
    peer = await heart.peer()
    await heart.ask(peer, [_create(path) for path in (b"/guard", *paths)])
    requests = [_set(path) for path in paths]
    return Writes(heart, peer, [b"".join(requests)] * rounds)


async def create(rounds: int) -> HotPath:
    """As `set`, of new nodes of one parent."""
    heart = Heart()
    peer = await heart.peer()
    await heart.ask(peer, [_create(b"/guard")])
    reads = [b"".join(map(_create, _paths(f"node-{one:04d}", CROWD))) for one in range(rounds)]
    return Writes(heart, peer, reads)


async def mix(rounds: int) -> HotPath:
    """Ten sets, each with nine gets behind it, in one read: the gets wait for the sets."""
    heart, paths = Heart(), _paths("node", CROWD)
    peer = await heart.peer()
    await heart.ask(peer, [_create(path) for path in (b"/guard", *paths)])
    requests = [
        request(opcodes.GET_DATA, WatchedRequest(path, False)) if number % 10 else _set(path)
        for number, path in enumerate(paths)
    ]
    return Writes(heart, peer, [b"".join(requests)] * rounds)


def _records(rounds: int) -> Iterator[Record]:
    """Return a record that opens a session and makes a node, and one of creates for each round."""
    opened = Entry(opcodes.CREATE_SESSION, session_body(SESSION_TIMEOUT_MS, b"p"), _SESSION)
    entries = [opened, _entry(b"/guard")]
    for index in range(1, rounds + 2):
        # The state that its proposer had is not known here.
        yield Record(index, Batch(entries, -1, 0).encode())
        entries = [_entry(path) for path in _paths(f"node-{index:04d}", CROWD)]


def _entry(path: bytes) -> Entry:
    body = encoded(CreateRequest(path, DATA, list(OPEN), 0))
    return Entry(opcodes.CREATE, body, _SESSION, 1, identities=_WHO)


async def replay(rounds: int) -> HotPath:
    """A hundred creates in a record of the log, which a start replays."""
    return Replays([*_records(rounds)])


def _state() -> StateMachine:
    replay = Replay(StateMachine(), 0)
    for record in _records(1):
        replay.apply(record)
    return replay.machine


async def snapshot(_: int) -> HotPath:
    """A snapshot of a hundred nodes."""
    return Snapshots(_state(), loads=False)


async def load(_: int) -> HotPath:
    """A hundred nodes, loaded from a snapshot."""
    return Snapshots(_state(), loads=True)


async def _events(renew: bytes | None, begin: bytes | None) -> HotPath:
    heart = Heart()
    writer = await heart.peer()
    await heart.ask(writer, [_create(b"/guard")])
    watchers = [await heart.peer() for _ in range(CROWD)]
    for watcher in watchers:
        if begin is not None:
            await heart.ask(watcher, [begin])
    return Events(heart, writer, _set(b"/guard"), watchers, renew)


async def watch_event(_: int) -> HotPath:
    """A hundred connections that each set a watch by a get, then one set: the event of each."""
    return await _events(request(opcodes.GET_DATA, WatchedRequest(b"/guard", True)), None)


async def persistent_event(_: int) -> HotPath:
    """The same with persistent watches: no request between two events."""
    return await _events(None, request(opcodes.ADD_WATCH, AddWatchRequest(b"/guard", 0)))


async def _client_gets(rounds: int, window: int) -> HotPath:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, StillLoop)
    server = loop.canned = CannedServer(rounds * CROWD)
    client = paddock.connect("127.0.0.1:2181", session_timeout=SESSION_TIMEOUT_MS / 1000)
    await client.start()
    server.serve_gets("/guard")
    return ClientGets(client, server, "/guard", window)


async def client_get(rounds: int) -> HotPath:
    """A hundred gets in flight by one client."""
    return await _client_gets(rounds, CROWD)


async def client_get_alone(rounds: int) -> HotPath:
    """Gets by a client, one after the other."""
    return await _client_gets(rounds, 1)


# Each is created for the total number of rounds.
PATHS: Final[dict[str, Callable[[int], Awaitable[HotPath]]]] = {
    "get": get,
    "get alone": get_alone,
    "exists": exists,
    "set": set_,
    "create": create,
    "mix": mix,
    "replay": replay,
    "snapshot": snapshot,
    "load": load,
    "watch event": watch_event,
    "persistent event": persistent_event,
    "client get": client_get,
    "client get alone": client_get_alone,
}


def mark() -> None:
    """Mark where a count begins or ends: nothing else here calls this C function."""
    os.getsid(0)


def half_full_pools() -> list[object]:
    """Return objects that leave room between them, as long as they live.

    Small objects of a size share pools. Where one that comes and goes is the last of its pool, or
    the first of a new one, each time costs a hundred instructions more. Whether that is so depends
    on all earlier allocations. So for each size there is a pool that is neither full nor empty.
    """
    kept: list[object] = [object() for _ in range(2 * POOL_BYTES // SIZE_STEP)][::2]
    kept += [1 << 40 | number for number in range(2 * POOL_BYTES // (2 * SIZE_STEP))][::2]
    for size in range(3 * SIZE_STEP, SMALL_BYTES + 1, SIZE_STEP):
        kept += [bytes(size - sys.getsizeof(b"")) for _ in range(2 * POOL_BYTES // size)][::2]
    return kept


async def take(make: Callable[[int], Awaitable[HotPath]], rounds: int) -> int:
    """Run one path, and return the number of its operations between the two marks."""
    path = await make(WARM_UP_ROUNDS + rounds)
    await path.take(WARM_UP_ROUNDS)
    path.check(WARM_UP_ROUNDS)
    kept = half_full_pools()
    mark()
    await path.take(rounds)
    mark()
    del kept
    path.check(rounds)
    await path.close()
    return rounds * CROWD


def take_all(rounds: int) -> dict[str, int]:
    """Run every path in turn, and return the operations of each."""
    operations = {}
    for name, make in PATHS.items():
        with asyncio.Runner(loop_factory=StillLoop) as runner:
            operations[name] = runner.run(take(make, rounds))
    return operations


def _paths(prefix: str, count: int) -> list[bytes]:
    return [f"/guard/{prefix}-{number:04d}".encode() for number in range(count)]


def _create(path: bytes) -> bytes:
    return request(opcodes.CREATE, CreateRequest(path, DATA, list(OPEN), 0))


def _set(path: bytes) -> bytes:
    return request(opcodes.SET_DATA, SetDataRequest(path, DATA, -1))


def main() -> None:
    """Run every path, and print the operations and the conditions."""
    # The time of a collection depends on all earlier allocations.
    gc.disable()
    operations = take_all(int(sys.argv[1]))
    report = {"operations": operations, "combination": combination(), "versions": versions()}
    print(json.dumps(report))


if __name__ == "__main__":
    main()

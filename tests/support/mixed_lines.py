"""Programs with kazoo and programs with Paddock that contend for the same things, and their judge.

Each program is a process: `python -m tests.support.mixed_lines kazoo HOSTS BASE SEED`, or `paddock`
in place of `kazoo`. For as long as it lives it takes a lock, a side of a read-write lock or a lease
of a semaphore, all in kazoo's layout, and writes down that it came in and that it goes out: each
time in one transaction with a check of the node by which it holds it. So a record proves that the
node was there, and the order of the records is the service's. A program that lost its connection or
its session while it held something begins again, with another session.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from paddock import Client, PaddockError, connect
from paddock.layouts import place_of
from paddock.recipes import Grant, Lock, ReadWriteLock, Semaphore

LIBRARIES: Final = ("kazoo", "paddock")
KINDS: Final = ("lock", "read", "write", "lease")
LEASES: Final = 2
SESSION_TIMEOUT_S: Final = 1.0

# Longer than any wait in a test, and shorter than its deadline.
_PATIENCE_S: Final = 40.0


@dataclass(frozen=True, slots=True)
class Record:
    """What a program wrote while it held something."""

    library: str
    kind: str
    # The name of the node by which it was held.
    node: str
    is_end: bool

    @property
    def number(self) -> int:
        place = place_of(self.node)
        assert place is not None, f"{self.node} is no place in a line"
        return place.number

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()


def judge(records: Iterable[Record]) -> None:
    """Raise AssertionError if two held at once what one may hold, or not in the order of a line."""
    found = list(records)
    _judge_line([one for one in found if one.kind == "lock"])
    _judge_line([one for one in found if one.kind in ("read", "write")])
    _judge_leases([one for one in found if one.kind == "lease"])


def _judge_line(records: list[Record]) -> None:
    """A contender that excludes others comes after all before it, and before all behind it."""
    for place, one in enumerate(records):
        if one.kind == "read":
            continue
        for earlier in records[:place]:
            assert earlier.number <= one.number, f"{earlier} was in before {one}"
        for later in records[place:]:
            assert later.number >= one.number, f"{later} was in after {one}"


def _judge_leases(records: list[Record]) -> None:
    """Of those who came in, no more than allowed go out later."""
    held: list[str] = []
    ends = {one.node for one in records if one.is_end}
    for one in records:
        if one.is_end:
            held.remove(one.node)
        elif one.node in ends:
            held.append(one.node)
        assert len(held) <= LEASES, f"{held} are leases at the same time"


class Program:
    """One process, which is to be ended."""

    def __init__(self, library: str, hosts: str, base: str, seed: int) -> None:
        self._command = (library, hosts, base, str(seed))
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.support.mixed_lines", *self._command),
            stdin=asyncio.subprocess.DEVNULL,
            cwd=Path(__file__).parents[2],
        )

    def signal(self, number: int) -> None:
        assert self._process is not None
        assert self._process.returncode is None, f"{self._command} has ended by itself"
        self._process.send_signal(number)

    async def kill(self) -> None:
        """End it as `kill -9` does, if it has not ended."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()


class _LostError(Exception):
    """A program of kazoo's holds something no more."""


def _play_kazoo(hosts: str, base: str, random: Random) -> None:
    while True:
        client = KazooClient(
            hosts=hosts,
            timeout=SESSION_TIMEOUT_S,
            connection_retry={"max_tries": -1, "delay": 0.05, "backoff": 1, "max_jitter": 0.0},
        )
        try:
            client.start(timeout=_PATIENCE_S)
            while True:
                _visit_with_kazoo(client, base, random.choice(KINDS))
        except (KazooException, KazooTimeoutError, _LostError):
            # The session takes everything with it.
            pass
        finally:
            client.stop()
            client.close()


def _visit_with_kazoo(client: KazooClient, base: str, kind: str) -> None:
    with _held_by_kazoo(client, base, kind) as path:
        for is_end in (False, True):
            transaction = client.transaction()
            transaction.check(path, -1)
            record = Record("kazoo", kind, path.rpartition("/")[2], is_end)
            transaction.create(f"{base}/records/r-", record.encode(), sequence=True)
            if any(isinstance(one, Exception) for one in transaction.commit()):
                raise _LostError(path)
            client.sync(base)


@contextlib.contextmanager
def _held_by_kazoo(client: KazooClient, base: str, kind: str) -> Iterator[str]:
    name = f"kazoo {client.client_id[0]:x}"
    holder: Any
    if kind == "lease":
        holder = client.Semaphore(f"{base}/semaphore", name, max_leases=LEASES)
    else:
        make = {"lock": client.Lock, "read": client.ReadLock, "write": client.WriteLock}[kind]
        holder = make(f"{base}/lock" if kind == "lock" else f"{base}/both", name)
    if not holder.acquire(timeout=_PATIENCE_S):
        raise _LostError(kind)
    yield holder.create_path if kind == "lease" else f"{holder.path}/{holder.node}"
    # Not after an error: the session is given up then.
    holder.release()


async def _play_paddock(hosts: str, base: str, random: Random) -> None:
    while True:
        with contextlib.suppress(PaddockError):
            async with connect(hosts, session_timeout=SESSION_TIMEOUT_S) as client:
                while True:
                    await _visit(client, base, random)


async def _visit(client: Client, base: str, random: Random) -> None:
    kind = random.choice(KINDS)
    name = b"paddock %x" % client.session_id
    if kind == "lock":
        async with Lock(client, f"{base}/lock", data=name, layout="kazoo") as grant:
            await _record(client, base, grant, kind)
    elif kind == "lease":
        path = f"{base}/semaphore"
        async with Semaphore(client, path, leases=LEASES, data=name, layout="kazoo") as grant:
            await _record(client, base, grant, kind)
    else:
        lock = ReadWriteLock(client, f"{base}/both", data=name, layout="kazoo")
        async with lock.write if kind == "write" else lock.read as grant:
            await _record(client, base, grant, kind)
            # A writer goes on as a reader, with nobody in between.
            reading = await lock.read.acquire() if kind == "write" else None
        if reading is not None:
            await _record(client, base, reading, "read")
            await reading.release()


async def _record(client: Client, base: str, grant: Grant, kind: str) -> None:
    for is_end in (False, True):
        record = Record("paddock", kind, grant.path.rpartition("/")[2], is_end)
        async with grant.guard() as transaction:
            transaction.create(f"{base}/records/r-", record.encode(), sequential=True)
        await client.sync(base)


def main(library: str, hosts: str, base: str, seed: str) -> None:
    if library == "kazoo":
        _play_kazoo(hosts, base, Random(int(seed)))
    else:
        asyncio.run(_play_paddock(hosts, base, Random(int(seed))))


if __name__ == "__main__":
    main(*sys.argv[1:])

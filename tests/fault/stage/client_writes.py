"""What clients write while connections are lost under them, and what must be there then.

Each writer does one kind of write, one after the other, below a node of its own and with data that
is never used twice, so what is found tells which of them have happened. The rules it checks:

* an acknowledged write has happened, once;
* one that was answered with ConnectionLostError has happened once or not at all;
* nothing else has happened.

A writer in doubt looks, after a `sync`: from then on its session has moved, and what it sent before
cannot happen any more.
"""

from __future__ import annotations

import abc
import asyncio
import itertools

from paddock import BadVersionError, Client, ConnectionLostError, NoNodeError


class Progress:
    """Counts acknowledged writes, and wakes tasks that wait for more of them."""

    def __init__(self) -> None:
        self.count = 0
        self._changed = asyncio.Event()

    def add(self) -> None:
        self.count += 1
        self._changed.set()

    async def wait_more(self, count: int) -> None:
        """Wait for so many more."""
        wanted = self.count + count
        while self.count < wanted:
            self._changed.clear()
            await self._changed.wait()


class Writer(abc.ABC):
    """One kind of write of one client, again and again."""

    #: How many are under way at a time. The more, the more are caught by a blow between being done
    #: and being answered.
    lanes = 1

    def __init__(self, client: Client, folder: str, progress: Progress) -> None:
        self.client = client
        self.folder = folder
        self.acknowledged = 0
        self.unknown = 0
        self._progress = progress
        self._numbers = itertools.count(1)

    async def prepare(self) -> None:
        """Make the nodes that it works on."""
        await self.client.create(self.folder, b"")

    async def run(self, over: asyncio.Event) -> None:
        """Write until it is over, or what came of a write is wrong."""
        async with asyncio.TaskGroup() as lanes:
            for _ in range(self.lanes):
                lanes.create_task(self._run_lane(over))

    async def _run_lane(self, over: asyncio.Event) -> None:
        while not over.is_set():
            # Something fails here when a rule is broken, and then all of the test does.
            if await self.write(b"%s %d" % (self.folder.encode(), next(self._numbers))):
                self.acknowledged += 1
                self._progress.add()
            else:
                self.unknown += 1

    @abc.abstractmethod
    async def write(self, data: bytes) -> bool:
        """Write once; tell whether it was acknowledged, or if not, that nobody knows."""

    @abc.abstractmethod
    async def check(self, judge: Client) -> None:
        """Compare what is there with what must be, once nothing is under way."""


class Sets(Writer):
    """Sets of one node that nobody else writes, with a version or without."""

    def __init__(
        self, client: Client, folder: str, progress: Progress, *, is_conditional: bool
    ) -> None:
        super().__init__(client, folder, progress)
        self._is_conditional = is_conditional
        self._version = 0
        self._data = b""

    async def write(self, data: bytes) -> bool:
        before, after = (self._version, self._data), (self._version + 1, data)
        try:
            stat = await self.client.set(
                self.folder, data, version=self._version if self._is_conditional else -1
            )
        except ConnectionLostError:
            await self.client.sync(self.folder)
            found = await self.client.get(self.folder)
            state = (found.stat.version, found.data)
            assert state in (before, after), f"{self.folder}: {state} after {before}"
            self._version, self._data = state
            return False
        assert stat.version == after[0], f"{self.folder}: {stat.version} after {before}"
        self._version, self._data = after
        return True

    async def check(self, judge: Client) -> None:
        found = await judge.get(self.folder)
        assert (found.stat.version, found.data) == (self._version, self._data)


class Counts(Writer):
    """A counter that several clients raise, each on condition that nobody else has."""

    def __init__(self, client: Client, folder: str, progress: Progress, others: list[Counts]):
        super().__init__(client, folder, progress)
        self._all = others
        self._all.append(self)

    async def prepare(self) -> None:
        if self._all[0] is self:
            await self.client.create(self.folder, b"0")

    async def write(self, data: bytes) -> bool:
        while True:
            value, stat = await self.client.get(self.folder)
            assert int(value) == stat.version, f"{self.folder}: {value!r} at {stat.version}"
            try:
                await self.client.set(self.folder, b"%d" % (stat.version + 1), version=stat.version)
            except BadVersionError:
                # Another client was faster, or our read was stale; a sync brings us up to date.
                await self.client.sync(self.folder)
            except ConnectionLostError:
                return False
            else:
                return True

    async def check(self, judge: Client) -> None:
        value, stat = await judge.get(self.folder)
        acknowledged = sum(one.acknowledged for one in self._all)
        unknown = sum(one.unknown for one in self._all)
        assert int(value) == stat.version
        assert acknowledged <= stat.version <= acknowledged + unknown


class Creates(Writer):
    """Sequential creates; protected ones are always acknowledged, in spite of lost replies."""

    lanes = 8

    def __init__(
        self, client: Client, folder: str, progress: Progress, *, is_protected: bool
    ) -> None:
        super().__init__(client, folder, progress)
        self._is_protected = is_protected
        self._made: dict[bytes, str] = {}
        self._doubtful: set[bytes] = set()

    async def write(self, data: bytes) -> bool:
        try:
            self._made[data] = await self.client.create(
                f"{self.folder}/n-", data, sequential=True, protected=self._is_protected
            )
        except ConnectionLostError:
            assert not self._is_protected
            self._doubtful.add(data)
            return False
        return True

    async def check(self, judge: Client) -> None:
        check_made(await data_below(judge, self.folder), self._made, self._doubtful)


class Transactions(Writer):
    """Transactions of a sequential create and a set, which happen together or not at all."""

    lanes = 8

    def __init__(self, client: Client, folder: str, progress: Progress) -> None:
        super().__init__(client, folder, progress)
        self._counter = f"{folder}-count"
        self._made: dict[bytes, str] = {}
        self._versions: dict[str, int] = {}
        self._doubtful: set[bytes] = set()

    async def prepare(self) -> None:
        await super().prepare()
        await self.client.create(self._counter, b"")

    async def write(self, data: bytes) -> bool:
        transaction = self.client.transaction()
        transaction.create(f"{self.folder}/n-", data, sequential=True).set(self._counter, data)
        try:
            path, stat = await transaction.commit()
        except ConnectionLostError:
            self._doubtful.add(data)
            return False
        self._made[data] = path
        self._versions[path] = stat.version
        return True

    async def check(self, judge: Client) -> None:
        found = await data_below(judge, self.folder)
        check_made(found, self._made, self._doubtful)
        # Both counted the same, always.
        assert sorted(found) == [f"{self.folder}/n-{number:010}" for number in range(len(found))]
        assert all(int(path[-10:]) + 1 == version for path, version in self._versions.items())
        data, stat = await judge.get(self._counter)
        assert stat.version == len(found)
        assert data == (found[max(found)] if found else b"")


class Reads(Writer):
    """Reads of what another client writes: they never fail, and never go back in time."""

    def __init__(self, client: Client, folder: str, progress: Progress) -> None:
        super().__init__(client, folder, progress)
        self._version = 0

    async def prepare(self) -> None:
        """The node is another writer's."""

    async def write(self, data: bytes) -> bool:
        try:
            version = (await self.client.get(self.folder)).stat.version
        except NoNodeError:
            # Our server has not heard of it yet.
            version = 0
        assert version >= self._version, f"{self.folder}: {version} after {self._version}"
        self._version = version
        return True

    async def check(self, judge: Client) -> None:
        assert self._version <= (await judge.get(self.folder)).stat.version


async def data_below(judge: Client, folder: str) -> dict[str, bytes]:
    """Return the data of each child, by path."""
    paths = [f"{folder}/{name}" for name in await judge.children(folder)]
    found = await asyncio.gather(*(judge.get(path) for path in paths))
    return {path: node.data for path, node in zip(paths, found, strict=True)}


def check_made(found: dict[str, bytes], made: dict[bytes, str], doubtful: set[bytes]) -> None:
    """Compare nodes with the creates that were acknowledged, and those that nobody knows of."""
    times = list(found.values())
    assert len(times) == len(set(times)), "something was created twice"
    by_data = {data: path for path, data in found.items()}
    assert made.items() <= by_data.items(), f"lost: {made.items() - by_data.items()}"
    assert by_data.keys() <= made.keys() | doubtful

"""A thousand watches and some streams of one client, and what each of them must have told.

Whether a node has changed since a watch was set is read from the server: the zxid of its last
change says so. Then the watch has fired once, otherwise it has not, and is still set.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from enum import Enum, auto
from random import Random
from typing import Final

from paddock import (
    Client,
    ConnectionLostError,
    Event,
    EventType,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    SessionState,
    Stat,
)


class Kind(Enum):
    """How a one-shot watch is set."""

    DATA = auto()
    EXISTS = auto()
    EXISTS_NOT = auto()
    CHILDREN = auto()


#: So many of each kind, and of those that stay: a thousand in all.
ONE_SHOT: Final = {Kind.DATA: 350, Kind.EXISTS: 150, Kind.EXISTS_NOT: 200, Kind.CHILDREN: 200}
PERSISTENT: Final = 80
RECURSIVE: Final = 20

#: So many nodes are changed at a time.
_AT_ONCE: Final = 8

#: What a watch of a kind may be told of.
_EVENTS: Final = {
    Kind.DATA: {EventType.CHANGED, EventType.DELETED},
    Kind.EXISTS: {EventType.CHANGED, EventType.DELETED},
    Kind.EXISTS_NOT: {EventType.CREATED},
    Kind.CHILDREN: {EventType.CHILDREN_CHANGED},
}


async def surely(
    client: Client, call: Callable[[], Awaitable[object]], *fine: type[Exception]
) -> None:
    """Repeat something until it is answered, with success or with one of these errors."""
    while True:
        try:
            await call()
        except ConnectionLostError:
            await client.wait_connected()
        except fine:
            return
        else:
            return


class OneShot:
    """One watch, from when it is set until it fires."""

    def __init__(self, kind: Kind, path: str) -> None:
        self.kind = kind
        self.path = path
        self.events: list[Event] = []
        self._before: int | None = None

    def __call__(self, event: Event) -> None:
        if event.type is not EventType.NONE:
            self.events.append(event)

    def __str__(self) -> str:
        return f"{self.kind.name} {self.path}"

    async def set(self, client: Client) -> None:
        """Set it, and take note of what it is set on."""
        stat: Stat | None
        match self.kind:
            case Kind.DATA:
                stat = (await client.get(self.path, watch=self)).stat
            case Kind.EXISTS | Kind.EXISTS_NOT:
                stat = await client.exists(self.path, watch=self)
            case Kind.CHILDREN:
                stat = (await client.children_with_stat(self.path, watch=self)).stat
        assert (stat is None) is (self.kind is Kind.EXISTS_NOT), f"{self}: {stat}"
        self._before = self._zxid(stat)

    def check(self, stat: Stat | None) -> None:
        """Compare what it was told with what became of the node."""
        told = [event.type for event in self.events]
        expected = int(self._zxid(stat) != self._before)
        assert len(told) == expected, f"{self}: {told} after {self._before}, now {stat}"
        assert all(event.path == self.path for event in self.events)
        assert set(told) <= _EVENTS[self.kind], f"{self}: {told}"

    def _zxid(self, stat: Stat | None) -> int | None:
        """The node's last change of the kind that concerns it; None while there is no node."""
        if stat is None:
            return None
        return stat.pzxid if self.kind is Kind.CHILDREN else stat.mzxid


class Lasting:
    """A persistent watch, or a recursive one."""

    def __init__(self, path: str, *, is_recursive: bool) -> None:
        self.path = path
        self.is_recursive = is_recursive
        # What is changed in order to see it told.
        self.target = f"{path}/below/deep" if is_recursive else path
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        if event.type is not EventType.NONE:
            self.events.append(event)

    def check(self) -> None:
        """See that one change was told, once, and nothing else."""
        told = [(event.type, event.path) for event in self.events]
        assert told == [(EventType.CHANGED, self.target)], f"{self.path}: {told}"


class Watches:
    """All watches of one client; another one changes what they watch."""

    def __init__(self, client: Client, changer: Client, folder: str, random: Random) -> None:
        self._client = client
        self._changer = changer
        self._random = random
        self._numbers = itertools.count(1)
        self._fired = 0
        self.one_shot = [
            OneShot(kind, f"{folder}/{kind.name.lower()}{number}")
            for kind, count in ONE_SHOT.items()
            for number in range(count)
        ]
        self.lasting = [
            Lasting(f"{folder}/lasting{number}", is_recursive=number < RECURSIVE)
            for number in range(PERSISTENT + RECURSIVE)
        ]
        self._folder = folder

    def __len__(self) -> int:
        return len(self.one_shot) + len(self.lasting)

    @property
    def fired(self) -> int:
        """How many one-shot watches have fired, were seen to be right, and were set again."""
        return self._fired

    async def set(self) -> None:
        """Make the nodes and set all watches."""
        changer = self._changer
        await changer.create(self._folder)
        await asyncio.gather(*(self._restore(watch) for watch in self.one_shot))
        await asyncio.gather(
            *(changer.create(watch.target, make_parents=True) for watch in self.lasting)
        )
        await self._client.sync()
        await asyncio.gather(*(watch.set(self._client) for watch in self.one_shot))
        await asyncio.gather(
            *(
                self._client.add_watch(watch.path, watch, recursive=watch.is_recursive)
                for watch in self.lasting
            )
        )

    async def change_some(self, count: int, over: asyncio.Event) -> None:
        """Change nodes of so many watches, some more than once, until it is over."""
        some = self._random.sample(self.one_shot, count)
        others = self._random.sample(self.lasting, len(self.lasting) // 2)
        while not over.is_set():
            lasting = self._random.choice(others)
            await asyncio.gather(
                *(self._change(watch) for watch in self._random.choices(some, k=_AT_ONCE)),
                surely(self._changer, lambda: self._touch(lasting.target)),  # noqa: B023
            )

    async def change_all(self) -> None:
        """Change the node of every watch once."""
        await asyncio.gather(*(self._change(watch) for watch in self.one_shot))

    async def check(self) -> None:
        """Compare each with its node, while nothing changes, and set again what has fired."""
        # Events come before the answer to whatever is asked after the change.
        await self._client.sync()
        await self._changer.sync()
        stats = await asyncio.gather(*(self._changer.exists(watch.path) for watch in self.one_shot))
        for watch, stat in zip(self.one_shot, stats, strict=True):
            watch.check(stat)
        fired = [watch for watch in self.one_shot if watch.events]
        again = [OneShot(watch.kind, watch.path) for watch in fired]
        self._fired += len(fired)
        self.one_shot = [watch for watch in self.one_shot if not watch.events] + again
        await asyncio.gather(*(self._restore(watch) for watch in again))
        await self._client.sync()
        await asyncio.gather(*(watch.set(self._client) for watch in again))
        await self._check_lasting()

    async def _check_lasting(self) -> None:
        """Touch every node; again if the connection was lost, as no event is replayed then."""
        changes: list[SessionState] = []
        listener = changes.append
        self._client.add_listener(listener)
        while True:
            changes.clear()
            for watch in self.lasting:
                watch.events.clear()
            await asyncio.gather(*(self._touch(watch.target) for watch in self.lasting))
            await self._client.sync()
            if not changes:
                break
        self._client.remove_listener(listener)
        for watch in self.lasting:
            watch.check()

    async def _restore(self, watch: OneShot) -> None:
        """Have the node there, or not, as a watch of this kind wants it."""
        if watch.kind is Kind.EXISTS_NOT:
            await surely(self._changer, lambda: self._changer.delete(watch.path), NoNodeError)
        else:
            await surely(self._changer, lambda: self._changer.create(watch.path), NodeExistsError)

    async def _change(self, watch: OneShot) -> None:
        """Change a node in a way that its watch is for, or try to."""
        client, path = self._changer, watch.path
        number = next(self._numbers)
        try:
            match watch.kind:
                case Kind.CHILDREN:
                    await client.create(f"{path}/{number}")
                case Kind.EXISTS_NOT:
                    await client.create(path)
                case _ if number % 5 == 0:
                    await client.delete(path)
                case _:
                    await client.set(path, b"%d" % number)
        except (ConnectionLostError, NoNodeError, NodeExistsError):
            # Whatever happened: what is there tells.
            pass

    async def _touch(self, path: str) -> Stat:
        return await self._changer.set(path, b"%d" % next(self._numbers))


class Stream:
    """The tree as known to a client that follows a stream."""

    def __init__(self, client: Client, path: str, *, is_recursive: bool) -> None:
        self._client = client
        self._path = path
        self._is_recursive = is_recursive
        self.tree: dict[str, bytes] = {}
        self._mzxids: dict[str, int] = {}
        self._told = asyncio.Event()

    def __str__(self) -> str:
        return f"{'recursive ' if self._is_recursive else ''}stream of {self._path}"

    async def follow(self) -> None:
        """Take what comes, for ever."""
        async for change in self._client.watch(self._path, recursive=self._is_recursive):
            if change.stat is None:
                self.tree.pop(change.path, None)
            else:
                assert change.data is not None
                before = self._mzxids.get(change.path, 0)
                assert change.stat.mzxid > before, f"{self}: {change} after {before}"
                self._mzxids[change.path] = change.stat.mzxid
                self.tree[change.path] = change.data
            self._told.set()

    async def arrive(self, tree: dict[str, bytes]) -> None:
        """Wait until this is what it knows."""
        wanted = {
            path: data
            for path, data in tree.items()
            if path == self._path or (self._is_recursive and path.startswith(f"{self._path}/"))
        }
        try:
            while self.tree != wanted:
                self._told.clear()
                await self._told.wait()
        except asyncio.CancelledError:
            differing = sorted(
                path for path in {*wanted, *self.tree} if wanted.get(path) != self.tree.get(path)
            )
            print(f"{self} has not arrived: {differing}")
            raise


class Streams:
    """Streams of one client, on a small tree that another one keeps changing."""

    NODES: Final = ("a", "b", "c")

    def __init__(self, client: Client, changer: Client, folder: str, random: Random) -> None:
        self._changer = changer
        self._folder = folder
        self._random = random
        self._nodes = [f"{folder}/{name}" for name in self.NODES]
        self.streams = [
            Stream(client, folder, is_recursive=True),
            *(Stream(client, node, is_recursive=False) for node in self._nodes),
        ]

    async def prepare(self) -> None:
        await self._changer.create(self._folder)

    async def change(self, over: asyncio.Event) -> None:
        """Create, change and delete until it is over."""
        client = self._changer
        number = 0
        while not over.is_set():
            number += 1
            node = self._random.choice(self._nodes)
            path = node if self._random.random() < 0.7 else f"{node}/{self._random.randrange(5)}"
            try:
                match self._random.randrange(4):
                    case 0:
                        await client.create(path, b"%d" % number)
                    case 1:
                        await client.delete(path)
                    case _:
                        await client.set(path, b"%d" % number)
            except (ConnectionLostError, NoNodeError, NodeExistsError, NotEmptyError):
                pass

    async def check(self) -> None:
        """See all of them arrive at what is there, while nothing changes."""
        await self._changer.sync()
        tree = {self._folder: (await self._changer.get(self._folder)).data}
        waiting = [self._folder]
        while waiting:
            above = waiting.pop()
            for name in await self._changer.children(above):
                path = f"{above}/{name}"
                tree[path] = (await self._changer.get(path)).data
                waiting.append(path)
        for stream in self.streams:
            await stream.arrive(tree)

"""Masters of a file system, which replicate their log through a room.

Every master has all files in memory, and changes them only by the entries of the log. The holder of
the lock writes the log. From time to time it makes a checkpoint: it opens a new channel, saves the
files as they were at that point, and deletes the older channels. So the log stays short: a new
master loads the checkpoint and reads the rest. When the leader crashes, the next one opens a new
channel. When it reads the opening of this channel, it has read everything before it, and leads.

alpha leads with []
alpha has saved ['/bin', '/etc']
beta follows with ['/bin', '/etc', '/home']
alpha crashes
beta leads with ['/bin', '/etc', '/home']
gamma follows with ['/bin', '/etc', '/home', '/home/ada']
channels that are left: [1, 2]
"""

import asyncio
import json
import sys
from collections.abc import Callable

import paddock
from paddock.recipes import ChannelDeleted, ChannelOpened, Grant, Lock, LogEntry, LogRoom

CHECKPOINT = "/dfs/checkpoint"


class Master:
    """A master: it follows the log, and leads while it holds the lock."""

    def __init__(self, name: str, client: paddock.Client) -> None:
        self.name = name
        self.files: list[str] = []
        self.room = LogRoom(client, "/dfs/log")
        self.lock = Lock(client, "/dfs/leader", data=name.encode())
        self._client = client
        # The files as they were when the newest channel was opened.
        self._opened = -1
        self._files_then: list[str] = []
        self._has_changed = asyncio.Condition()

    async def follow(self) -> None:
        """Follow the log from the last checkpoint on, without end."""
        while True:
            expected = first = await self._load()
            async for event in self.room.follow():
                match event:
                    case ChannelOpened(channel) if channel > expected:
                        # A whole channel is missing since that checkpoint: load the newer one.
                        break
                    case ChannelOpened(channel):
                        expected = channel + 1
                        self._opened, self._files_then = channel, list(self.files)
                    case LogEntry(channel, _, data) if channel >= first:
                        self.files.append(data.decode())
                    case ChannelDeleted(channel, is_complete=False) if channel >= first:
                        # We were away for too long: a newer checkpoint has what we missed.
                        break
                async with self._has_changed:
                    self._has_changed.notify_all()

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until the log has made a condition true."""
        async with self._has_changed:
            await self._has_changed.wait_for(condition)

    async def open_channel(self, grant: Grant) -> None:
        """Open a new channel, and wait until all entries before it were read."""
        self.channel = await self.room.open_channel(grant=grant)
        await self.wait_until(lambda: self._opened >= self.channel.number)

    async def make_checkpoint(self, grant: Grant) -> None:
        """Save the files, and delete the channels that they were made from."""
        await self.open_channel(grant)
        saved = json.dumps({"first": self.channel.number, "files": self._files_then})
        async with grant.guard() as transaction:
            transaction.set(CHECKPOINT, saved.encode())
        for channel in await self.room.channels():
            if channel.number < self.channel.number:
                await channel.delete(grant=grant)
        print(self.name, "has saved", self._files_then)

    async def _load(self) -> int:
        data, _ = await self._client.get(CHECKPOINT)
        saved = json.loads(data)
        self.files = saved["files"]
        first: int = saved["first"]
        return first


async def play_alpha(hosts: str, has_written: asyncio.Event) -> None:
    """Lead, write, make a checkpoint, write more, and crash."""
    async with paddock.connect(hosts) as client, asyncio.TaskGroup() as group:
        alpha = Master("alpha", client)
        following = group.create_task(alpha.follow())
        async with alpha.lock as grant:
            await alpha.open_channel(grant)
            print("alpha leads with", alpha.files)
            await alpha.channel.append(b"/bin", grant=grant)
            await alpha.channel.append(b"/etc", grant=grant)
            await alpha.make_checkpoint(grant)
            await alpha.channel.append(b"/home", grant=grant)
            await has_written.wait()
            print("alpha crashes")
            following.cancel()


async def main(hosts: str = "127.0.0.1:2181") -> None:
    has_followed = asyncio.Event()
    async with paddock.connect(hosts) as client, asyncio.TaskGroup() as group:
        nothing = json.dumps({"first": 0, "files": []}).encode()
        await client.create(CHECKPOINT, nothing, make_parents=True, exist_ok=True)
        group.create_task(play_alpha(hosts, has_followed))

        beta = Master("beta", client)
        tasks = [group.create_task(beta.follow())]
        await beta.wait_until(lambda: "/home" in beta.files)
        print("beta follows with", beta.files)
        has_followed.set()
        async with beta.lock as grant:
            await beta.open_channel(grant)
            print("beta leads with", beta.files)
            await beta.channel.append(b"/home/ada", grant=grant)

            gamma = Master("gamma", client)
            tasks.append(group.create_task(gamma.follow()))
            await gamma.wait_until(lambda: "/home/ada" in gamma.files)
            print("gamma follows with", gamma.files)
            print("channels that are left:", [one.number for one in await beta.room.channels()])
        for task in tasks:
            task.cancel()


paddock.run(main(*sys.argv[1:]))

"""One client writes a log, and another follows it, also into a new channel.

ChannelOpened(channel=0)
LogEntry(channel=0, number=0, data=b'mkdir /a')
ChannelOpened(channel=1)
"""

import sys

import paddock
from paddock.recipes import LogRoom


async def main(hosts: str = "127.0.0.1:2181") -> None:
    async with paddock.connect(hosts) as client, paddock.connect(hosts) as other:
        room, events = LogRoom(client, "/log"), LogRoom(other, "/log").follow()
        channel = await room.open_channel()
        await channel.append(b"mkdir /a")
        print(await anext(events), await anext(events), sep="\n")
        await room.open_channel()
        print(await anext(events))


paddock.run(main(*sys.argv[1:]))

"""A persistent node is created again after another client has deleted it.

b'ready'
again b'ready'
"""

import sys

import paddock
from paddock.recipes import PersistentNode


async def main(hosts: str = "127.0.0.1:2181") -> None:
    async with paddock.connect(hosts) as client, PersistentNode(client, "/workers/7", b"ready"):
        data, first = await client.get("/workers/7")
        print(data)
        await client.delete("/workers/7")
        async for change in client.watch("/workers/7"):
            if change.stat is not None and change.stat.czxid > first.czxid:
                print("again", change.data)
                break


paddock.run(main(*sys.argv[1:]))

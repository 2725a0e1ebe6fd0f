"""Ten workers swap two nodes, in either order, with one lock per node: no deadlock.

b'left' and b'right'"""

import asyncio
import sys

import paddock
from paddock.recipes import Lock, MultiLock


async def main(hosts: str = "127.0.0.1:2181") -> None:
    async def swap(*nodes: str) -> None:
        async with MultiLock([Lock(client, f"/locks{node}") for node in nodes]) as grant:
            here, there = [(await client.get(node)).data for node in nodes]
            await grant.guard().set(nodes[0], there).set(nodes[1], here).commit()

    async with paddock.connect(hosts) as client:
        for node, data in ("/a", b"left"), ("/b", b"right"):
            await client.create(node, data, exist_ok=True)
        await asyncio.gather(*(swap(*pair) for pair in (("/a", "/b"), ("/b", "/a")) * 5))
        print((await client.get("/a")).data, "and", (await client.get("/b")).data)


paddock.run(main(*sys.argv[1:]))

"""A cache follows a part of the tree, and reports its changes.

created /fruit
changed /fruit
"""

import sys

import paddock
from paddock.recipes import Cache, ChangeKind


async def main(hosts: str = "127.0.0.1:2181") -> None:
    async with paddock.connect(hosts) as client, Cache(client, "/fruit") as cache:
        await client.create("/fruit", b"green", exist_ok=True)
        async for change in cache.changes():
            print(change.kind, change.path)
            if change.kind is ChangeKind.CHANGED:
                break
            await client.set(change.path, b"ripe")


paddock.run(main(*sys.argv[1:]))

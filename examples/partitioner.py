"""Two workers divide two shards between them.

one has a
two has b
"""

import asyncio
import sys

import paddock
from paddock.recipes import Partitioner


async def main(hosts: str = "127.0.0.1:2181") -> None:
    async with paddock.connect(hosts) as client, Partitioner(client, "/shards", ["a", "b"]) as one:
        shares = one.shares()
        await anext(shares)
        async with Partitioner(client, "/shards", ["a", "b"]) as two:
            print("one has", *sorted((await anext(shares)).items))
            asked = asyncio.ensure_future(anext(shares))
            print("two has", *sorted((await anext(two.shares())).items))
        await asked


paddock.run(main(*sys.argv[1:]))

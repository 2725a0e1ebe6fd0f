"""Two workers share a lock: one holder at a time, in FIFO order.

worker 1 is at it, after 0 others
worker 2 is at it, after 1 others
"""

import asyncio
import sys

import paddock
from paddock.recipes import Lock


async def main(hosts: str = "127.0.0.1:2181") -> None:
    async def work(name: str) -> None:
        async with Lock(client, "/locks/report", data=name.encode()) as grant:
            print(f"{name} is at it, after {sum(grant.token > one for one in tokens)} others")
            tokens.append(grant.token)

    async with paddock.connect(hosts) as client:
        tokens = list[int]()
        await asyncio.gather(work("worker 1"), work("worker 2"))


paddock.run(main(*sys.argv[1:]))

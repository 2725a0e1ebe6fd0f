"""Three workers share a counter; every addition counts once, even if a reply is lost.

counted 30
"""

import asyncio
import sys

import paddock
from paddock.recipes import Counter


async def main(hosts: str = "127.0.0.1:2181") -> None:
    async def work() -> None:
        async with paddock.connect(hosts) as client:
            for _ in range(10):
                await Counter(client, "/visits").add()

    await asyncio.gather(work(), work(), work())
    async with paddock.connect(hosts) as client:
        print("counted", await Counter(client, "/visits").get())


paddock.run(main(*sys.argv[1:]))

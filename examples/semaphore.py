"""Five jobs share two printers: never more than two print at a time.

5 jobs are done, at most 2 at a time
"""

import asyncio
import sys

import paddock
from paddock.recipes import Semaphore


async def main(hosts: str = "127.0.0.1:2181") -> None:
    async def job() -> int:
        async with Semaphore(client, "/printers", leases=2):
            await asyncio.sleep(0.2)
            return len(await Semaphore(client, "/printers", leases=2).holders())

    async with paddock.connect(hosts) as client:
        holders = await asyncio.gather(*(job() for _ in range(5)))
        print(len(holders), "jobs are done, at most", max(holders), "at a time")


paddock.run(main(*sys.argv[1:]))

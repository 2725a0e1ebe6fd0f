"""A consumer takes jobs from a queue, the most urgent one first.

attempt 1: call the fire brigade
attempt 1: water the flowers
"""

import sys

import paddock
from paddock.recipes import Queue


async def main(hosts: str = "127.0.0.1:2181") -> None:
    async with paddock.connect(hosts) as client:
        queue = Queue(client, "/jobs", attempts_max=3)
        await queue.put(b"water the flowers")
        await queue.put(b"call the fire brigade", priority=1)
        while await queue.size():
            async with queue.take() as item:
                print(f"attempt {item.attempts}: {item.data.decode()}")


paddock.run(main(*sys.argv[1:]))

"""A master assigns tasks to a worker, and the client that submitted them gets the results.

['APPLES', 'PEARS']
"""

import sys

import paddock
from paddock.recipes import Master, Task, TaskClient, Worker


async def shout(task: Task) -> bytes:
    return task.data.upper()


async def main(hosts: str = "127.0.0.1:2181") -> None:
    async with paddock.connect(hosts) as client:
        client.start_task(Master(client, "/office").serve())
        client.start_task(Worker(client, "/office", shout).serve())
        tasks = TaskClient(client, "/office")
        print([(await tasks.run(data)).data.decode() for data in (b"apples", b"pears")])


paddock.run(main(*sys.argv[1:]))

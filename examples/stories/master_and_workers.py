"""A master, two workers and a client: a worker dies in the middle of a task, then the master does.

The tasks of the dead worker go to the other one, and a second master takes over. Every task has
exactly one result.

first master leads
ann begins with the first task
ann is gone
bob begins with the first task
the first task: done by bob, attempt 2
first master is gone
second master leads
bob begins with the second task
the second task: done by bob, attempt 1
"""

import asyncio
import sys

import paddock
from paddock.recipes import GrantEvent, Master, Task, TaskClient, Worker

OFFICE = "/office"


async def lead(client: paddock.Client, name: str) -> None:
    """Be the master whenever there is no other."""
    master = Master(client, OFFICE)

    def tell(event: GrantEvent) -> None:
        if event is GrantEvent.ACQUIRED:
            print(f"{name} leads")

    master.add_listener(tell)
    await master.serve()


async def work(client: paddock.Client, name: str, seconds: float, begun: asyncio.Event) -> None:
    """Execute the assigned tasks; each takes so many seconds."""

    async def handle(task: Task) -> bytes:
        print(f"{name} begins with {task.data.decode()}")
        begun.set()
        await asyncio.sleep(seconds)
        return task.data

    await Worker(client, OFFICE, handle, name=name).serve()


async def want(tasks: TaskClient, data: str) -> None:
    """Submit a task, and print its result."""
    status = await tasks.run(data.encode())
    print(f"{data}: {status.state} by {status.worker}, attempt {status.attempts}")


async def gone(client: paddock.Client, name: str) -> None:
    """End a client's session, as if its process had gone."""
    print(f"{name} is gone")
    await client.close()


async def main(hosts: str = "127.0.0.1:2181") -> None:
    """Play the story; each role has its own session, as a process would have."""
    clients = [paddock.connect(hosts, session_timeout=4) for _ in range(5)]
    first, second, ann, bob, customer = clients
    for client in clients:
        await client.start()
    first.start_task(lead(first, "first master"))
    ann_began, bob_began = asyncio.Event(), asyncio.Event()
    ann.start_task(work(ann, "ann", 3600, ann_began))
    tasks = TaskClient(customer, OFFICE)
    wanting = asyncio.create_task(want(tasks, "the first task"))
    await ann_began.wait()
    bob.start_task(work(bob, "bob", 0.1, bob_began))
    second.start_task(lead(second, "second master"))
    await gone(ann, "ann")
    await wanting
    await gone(first, "first master")
    await want(tasks, "the second task")
    for client in clients:
        await client.close()


paddock.run(main(*sys.argv[1:]))

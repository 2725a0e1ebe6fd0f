"""Count the messages of a lock hand-over while many clients wait, in a process of its own.

    python -m bench.lock_growth CLIENT WAITERS PORT

One client holds the lock, WAITERS wait for it, and it is handed over some times. A proxy between
all of them and the server sees every message except pings. The process prints the messages of one
hand-over: from the moment when all wait until the connections are quiet again.
"""

import asyncio
import contextlib
import json
import os
import queue
import sys
import threading
import time
from dataclasses import asdict
from typing import Any, Final

from kazoo.client import KazooClient

import paddock
from bench import clients
from bench.client_load import SESSION_TIMEOUT_S, clean_up, prepare
from bench.recipes import Growth
from paddock.recipes import Grant, Lock
from paddock.testing import FaultProxy

HAND_OVERS: Final = 5
# The number of kazoo clients is limited, since each has its own threads.
KAZOO_CLIENTS: Final = 10
QUIET_S: Final = 0.5


class Counter:
    """Counts the messages that a proxy sees between two quiet moments."""

    def __init__(self, proxy: FaultProxy) -> None:
        self._proxy = proxy
        self._before: tuple[int, int, int] | None = None

    def wait_quiet(self) -> None:
        """Wait until there was no message for some time, and no request is in flight."""
        counted = (-1, -1, -1)
        while (now := self._counts()) != counted or now[0] != now[1]:
            counted = now
            time.sleep(QUIET_S)

    def begin(self) -> None:
        self.wait_quiet()
        self._before = self._counts()

    def end(self) -> Growth:
        """Return the messages per hand-over since the beginning."""
        self.wait_quiet()
        assert self._before is not None, "it has begun"
        requests, replies, events = self._before
        new_requests = self._proxy.requests[requests:]
        new_replies = self._proxy.replies[replies:]
        payloads = [one.payload for one in new_requests] + [one.payload for one in new_replies]
        size = sum(4 + len(payload) for payload in payloads)
        counts = len(new_requests), len(new_replies), len(self._proxy.events) - events, size
        return Growth(*(count / HAND_OVERS for count in counts))

    def _counts(self) -> tuple[int, int, int]:
        return len(self._proxy.requests), len(self._proxy.replies), len(self._proxy.events)


async def with_paddock(hosts: str, path: str, waiters: int, counter: Counter) -> Growth:
    async with contextlib.AsyncExitStack() as stack:
        connect = paddock.connect
        locks = [
            Lock(
                await stack.enter_async_context(connect(hosts, session_timeout=SESSION_TIMEOUT_S)),
                path,
            )
            for _ in range(waiters + 1)
        ]
        grant = await locks[0].acquire()
        waiting: set[asyncio.Task[Grant]] = {
            asyncio.create_task(lock.acquire()) for lock in locks[1:]
        }
        await asyncio.to_thread(counter.begin)
        for _ in range(HAND_OVERS):
            await grant.release()
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            grant = done.pop().result()
        growth = await asyncio.to_thread(counter.end)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await grant.release()
        return growth


def with_kazoo(hosts: str, path: str, waiters: int, counter: Counter) -> Growth:
    with contextlib.ExitStack() as stack:
        crew = []
        for _ in range(KAZOO_CLIENTS):
            client = KazooClient(hosts, timeout=SESSION_TIMEOUT_S)
            client.start()
            stack.callback(client.close)
            stack.callback(client.stop)
            crew.append(client)
        holders: queue.SimpleQueue[Any] = queue.SimpleQueue()

        def wait_for(lock: Any) -> None:
            lock.acquire()
            holders.put(lock)

        locks = [crew[number % KAZOO_CLIENTS].Lock(path) for number in range(waiters + 1)]
        wait_for(locks[0])
        threads = [threading.Thread(target=wait_for, args=(lock,)) for lock in locks[1:]]
        for thread in threads:
            thread.start()
        counter.begin()
        for _ in range(HAND_OVERS):
            holders.get().release()
            # Put back: it is the next to release.
            holders.put(holders.get())
        growth = counter.end()
        for _ in threads[HAND_OVERS:]:
            holders.get().release()
        for thread in threads:
            thread.join()
        return growth


def main() -> int:
    name, waiters, port = sys.argv[1:]
    path = f"/bench-{os.getpid()}-{time.time_ns()}"
    direct = f"127.0.0.1:{port}"
    asyncio.run(prepare(direct, path))
    with FaultProxy(("127.0.0.1", int(port))) as proxy:
        counter = Counter(proxy)
        if name == clients.KAZOO:
            growth = with_kazoo(proxy.hosts, path, int(waiters), counter)
        else:
            growth = asyncio.run(with_paddock(proxy.hosts, path, int(waiters), counter))
    asyncio.run(clean_up(direct, path))
    print(json.dumps(asdict(growth)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A program in one session after the other, as a process: it holds a lock, and says when.

    python -m tests.fault.stage.session_program asyncio 127.0.0.1:2181

Each line is `holding` and the token. It ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import sys
import threading

import paddock
import paddock.sync
from paddock.recipes import Lock
from paddock.sync.recipes import Lock as BlockingLock

TIMEOUT_S = 1.0
LOCKS = "/programs"


def say(token: int) -> None:
    print("holding", token, flush=True)


async def run(hosts: str) -> None:
    async def work(client: paddock.Client) -> None:
        async with Lock(client, f"{LOCKS}/asyncio") as grant:
            say(grant.token)
            await asyncio.sleep(3600)

    connect = lambda: paddock.connect(hosts, session_timeout=TIMEOUT_S)  # noqa: E731
    running = asyncio.create_task(paddock.run_in_sessions(connect, work))
    await asyncio.to_thread(sys.stdin.read)
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled(), running


def run_blocking(hosts: str) -> None:
    is_over = threading.Event()

    def end() -> None:
        sys.stdin.read()
        is_over.set()

    threading.Thread(target=end, daemon=True).start()

    def work(client: paddock.sync.Client) -> None:
        with BlockingLock(client, f"{LOCKS}/blocking") as grant:
            say(grant.token)
            while not is_over.wait(0.05):
                # What a body does is what tells it.
                grant.check()

    connect = lambda: paddock.sync.connect(hosts, session_timeout=TIMEOUT_S)  # noqa: E731
    paddock.sync.run_in_sessions(connect, work)


if __name__ == "__main__":
    if sys.argv[1] == "asyncio":
        paddock.run(run(sys.argv[2]))
    else:
        run_blocking(sys.argv[2])

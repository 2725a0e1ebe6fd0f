"""How long a service serves nobody when one of its processes is killed.

A client writes without a pause, one request after the other. What counts is its longest wait, from
the last write that was answered to the next one; the client reconnects by itself.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Final

import paddock

BEFORE_S: Final = 2.0
AFTER_S: Final = 12.0
# An attempt to connect takes a third of it at most: a server may accept one and not answer it.
SESSION_TIMEOUT_S: Final = 6.0


def longest_wait_ms(ports: list[int], kill: Callable[[], None]) -> tuple[float, float]:
    """Write through some servers, and kill something meanwhile.

    Returns the longest wait before the kill and from then on, in milliseconds.
    """
    return asyncio.run(_measure(",".join(f"127.0.0.1:{port}" for port in ports), kill))


async def _measure(hosts: str, kill: Callable[[], None]) -> tuple[float, float]:
    async with paddock.connect(hosts, session_timeout=SESSION_TIMEOUT_S) as client:
        with contextlib.suppress(paddock.NodeExistsError):
            await client.create("/outage")
        before = await _write(client, BEFORE_S)
        writing = asyncio.create_task(_write(client, AFTER_S))
        await asyncio.sleep(0.2)
        await asyncio.get_running_loop().run_in_executor(None, kill)
        return before, await writing


async def _write(client: paddock.Client, seconds: float) -> float:
    """Write for so long; return the longest wait."""
    last = time.monotonic()
    end = last + seconds
    longest = 0.0
    while last < end:
        with contextlib.suppress(paddock.ConnectionLostError):
            await client.set("/outage", b"x")
            now = time.monotonic()
            longest, last = max(longest, now - last), now
        if time.monotonic() - last > seconds + 60:
            break
    return longest * 1000

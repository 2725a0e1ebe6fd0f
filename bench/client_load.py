"""One run of one client, in a process of its own.

    python -m bench.client_load CLIENT OP WINDOW PORT SERVERPID SECONDS WARMUP

The client keeps WINDOW operations in flight: for each reply it sends another request. The process
prints the operations per second, and the CPU time of each operation on both sides.
"""

import asyncio
import contextlib
import itertools
import json
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from kazoo.client import KazooClient

import paddock
import paddock.sync
from bench import clients

DATA: Final = b"x" * 100
SESSION_TIMEOUT_S: Final = 30.0
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


class Meter:
    """Decides when a run is over, and counts operations since the warm-up."""

    def __init__(self, window: int, server_pid: int, seconds: float, warmup_s: float) -> None:
        self._window = window
        self._server_pid = server_pid
        self._seconds = seconds
        self._warm_at = time.perf_counter() + warmup_s
        # Clock, our CPU time and the server's: after the warm-up, and at the end.
        self._begin: tuple[float, float, float] | None = None
        self._end = (0.0, 0.0, 0.0)
        self._operations = 0

    def wants_more(self) -> bool:
        """Count a completed window, except for the first call; return whether to continue."""
        now = time.perf_counter()
        if self._begin is None:
            if now >= self._warm_at:
                self._begin = self._look()
            return True
        self._operations += self._window
        if now < self._begin[0] + self._seconds:
            return True
        self._end = self._look()
        return False

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Exclude the work in this scope from the measurement."""
        before = self._look()
        yield
        if self._begin is not None:
            began, ours, theirs = (
                begin + now - then
                for begin, now, then in zip(self._begin, self._look(), before, strict=True)
            )
            self._begin = began, ours, theirs

    def result(self) -> clients.Run:
        assert self._begin is not None, "it has run"
        took, ours, theirs = (
            end - begin for begin, end in zip(self._begin, self._end, strict=True)
        )
        each_us = 1e6 / self._operations
        return clients.Run(self._operations / took, ours * each_us, theirs * each_us)

    def _look(self) -> tuple[float, float, float]:
        fields = Path(f"/proc/{self._server_pid}/stat").read_text().rpartition(")")[2].split()
        server_s = (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
        return time.perf_counter(), time.process_time(), server_s


def _calls(client: Any, base: str, suffix: str = "") -> dict[str, Callable[[], Any]]:
    """Return each operation of a client as a function without arguments; all have these names."""
    get, set_, create = (getattr(client, op + suffix) for op in clients.OPS)
    numbers = itertools.count()
    return {
        "get": lambda: get(base),
        "set": lambda: set_(base, DATA),
        "create": lambda: create(f"{base}/{next(numbers)}", DATA),
    }


def with_kazoo(hosts: str, base: str, op: str, window: int, meter: Meter) -> None:
    client = KazooClient(hosts, timeout=SESSION_TIMEOUT_S)
    client.start()
    try:
        if window == 1:
            call = _calls(client, base)[op]
            while meter.wants_more():
                call()
            return
        call = _calls(client, base, "_async")[op]
        flight = deque(call() for _ in range(window))
        while meter.wants_more():
            for _ in range(window):
                flight.popleft().get()
                flight.append(call())
        for result in flight:
            result.get()
    finally:
        client.stop()
        client.close()


async def with_paddock(
    hosts: str, base: str, op: str, window: int, meter: Meter, *, exact: bool = True
) -> None:
    async with paddock.connect(hosts, session_timeout=SESSION_TIMEOUT_S, exact=exact) as client:
        call = _calls(client, base)[op]
        flight = deque(call() for _ in range(window))
        while meter.wants_more():
            for _ in range(window):
                await flight.popleft()
                flight.append(call())
        await asyncio.gather(*flight)


def with_paddock_sync(hosts: str, base: str, op: str, meter: Meter) -> None:
    with paddock.sync.connect(hosts, session_timeout=SESSION_TIMEOUT_S, exact=True) as client:
        call = _calls(client, base)[op]
        while meter.wants_more():
            call()


async def prepare(hosts: str, base: str) -> None:
    async with paddock.connect(hosts) as client:
        await client.create(base, DATA)


async def clean_up(hosts: str, base: str) -> None:
    async with paddock.connect(hosts) as client:
        await client.delete_tree(base)


def main() -> int:
    name, op, window, port, server_pid, seconds, warmup_s = sys.argv[1:]
    hosts = f"127.0.0.1:{port}"
    base = f"/bench-{os.getpid()}-{time.time_ns()}"
    asyncio.run(prepare(hosts, base))
    meter = Meter(int(window), int(server_pid), float(seconds), float(warmup_s))
    if name == clients.KAZOO:
        with_kazoo(hosts, base, op, int(window), meter)
    elif name == clients.BLOCKING:
        with_paddock_sync(hosts, base, op, meter)
    elif name == clients.PLAIN:
        asyncio.run(with_paddock(hosts, base, op, int(window), meter))
    else:
        exact = name != clients.ORDINARY
        paddock.run(with_paddock(hosts, base, op, int(window), meter, exact=exact))
    asyncio.run(clean_up(hosts, base))
    print(json.dumps(asdict(meter.result())))
    return 0


if __name__ == "__main__":
    sys.exit(main())

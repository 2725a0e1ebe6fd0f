"""One run on etcd's JSON gateway, in a process of its own.

    python -m bench.etcd_load OP CONNECTIONS PORT SECONDS WARMUP

Each connection sends a request, waits for its reply, and sends the next one. The process prints the
requests per second, and their latency.
"""

import asyncio
import json
import sys
import time
from dataclasses import asdict
from typing import cast

import uvloop

from bench import etcd
from paddock.cli.bench.plan import Cell
from paddock.cli.bench.tally import Tally


class Asker(asyncio.Protocol):
    """One connection, which repeats the same request."""

    def __init__(self, request: bytes, tally: Tally, ended: asyncio.Event) -> None:
        self._request = request
        self._tally = tally
        self._ended = ended
        self._transport: asyncio.Transport | None = None
        self._received = b""
        self._asked_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._ask()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if not end or len(body) < _length(head):
            return
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(self._received.decode(errors="replace"))
        self._tally.note(time.perf_counter() - self._asked_at)
        self._received = b""
        self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended.set()

    def _ask(self) -> None:
        assert self._transport is not None, "it is connected"
        self._asked_at = time.perf_counter()
        self._transport.write(self._request)


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    raise RuntimeError("an answer without a length")


async def run(
    op: str, connections: int, port: int, seconds: float, warmup_s: float
) -> etcd.EtcdRun:
    tally = Tally()
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    def asker() -> Asker:
        return Asker(etcd.request(op), tally, ended)

    transports = [
        (await loop.create_connection(asker, "127.0.0.1", port))[0] for _ in range(connections)
    ]
    await asyncio.sleep(warmup_s)
    tally.begin()
    await asyncio.sleep(seconds)
    tally.end()
    found = tally.result(Cell(op, connections))
    if ended.is_set() or found.p50_ms is None or found.p99_ms is None:
        raise RuntimeError("etcd has closed a connection, or does not answer")
    for transport in transports:
        transport.abort()
    return etcd.EtcdRun(op, connections, found.rate, found.p50_ms * 1000, found.p99_ms * 1000)


def main() -> int:
    op, connections, port, seconds, warmup_s = sys.argv[1:]
    found = uvloop.run(run(op, int(connections), int(port), float(seconds), float(warmup_s)))
    print(json.dumps(asdict(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

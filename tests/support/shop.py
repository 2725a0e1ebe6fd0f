"""The nodes and clients of a shop, for pictures of a service in use.

    python -m tests.support.shop HOSTS

When everything is there, it says `ready`, and a moment before the configuration was changed. It
goes on until it is terminated, with requests in waves. Two workers wait for each other; one client
was killed, one stopped, and one has closed its session. All of it is done by clients as programs
have them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import signal
import sys
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any, Final

import paddock
from paddock import Client
from paddock.recipes import (
    Barrier,
    DoubleBarrier,
    Election,
    Lock,
    Membership,
    Queue,
    ReadWriteLock,
    Semaphore,
    ServiceInstance,
    ServiceRegistry,
)

# The shortest that a server with the usual tick grants.
SHORT_S: Final = 4.0
SKUS: Final = 240
PAYMENT: Final = {
    "provider": "acme-pay",
    "currency": "EUR",
    "retry": {"attempts": 3, "pause_ms": 250},
    "methods": ["card", "transfer", "voucher"],
    "is_live": True,
}


class Shop:
    """The clients, and what they do meanwhile."""

    def __init__(self, hosts: str) -> None:
        self._hosts = hosts
        self._clients = contextlib.AsyncExitStack()
        self._tasks: set[asyncio.Task[None]] = set()
        # Killed at the end: it stands still until nobody needs its silence any more.
        self._stopped: list[asyncio.subprocess.Process] = []

    async def open(self) -> str:
        """Fill the tree, and let everybody come; return a moment of this, as ISO 8601 has it."""
        first = await self._client("web")
        await self._fill(first)
        filled = datetime.now(UTC).isoformat(timespec="milliseconds")
        await self._lose_clients()
        self._start(self._waves(first))
        await self._coordinate()
        await self._deploy(first)
        return filled.replace("+00:00", "Z")

    async def close(self) -> None:
        """Let everybody go, if the service is still there."""
        for worker in self._stopped:
            worker.kill()
        for task in self._tasks:
            task.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SHORT_S):
                await asyncio.gather(*self._tasks, return_exceptions=True)
                await self._clients.aclose()

    async def _client(self, name: str) -> Client:
        client = paddock.connect(self._hosts, session_timeout=20.0)
        await self._clients.enter_async_context(client)
        await client.add_auth("digest", f"{name}:secret".encode())
        return client

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.add(asyncio.create_task(work))

    async def _fill(self, client: Client) -> None:
        for path, data in {
            "/config": b"",
            "/config/payment.json": json.dumps(PAYMENT).encode(),
            "/config/mail.json": b'{"from": "shop@example.com", "per_minute": 120}',
            "/config/features": b"",
            "/config/features/checkout-v2": b"off",
            "/config/features/wishlist": b"on",
            "/catalogue": b"",
            "/jobs": b"",
            "/locks": b"",
            "/steps": b"",
        }.items():
            await client.create(path, data)
        await client.create("/zookeeper/quota/catalogue")
        for name, data in {"limits": b"count=250,bytes=-1", "stats": b"count=1,bytes=0"}.items():
            await client.create(f"/zookeeper/quota/catalogue/zookeeper_{name}", data)
        async with client.transaction() as transaction:
            for number in range(SKUS):
                transaction.create(f"/catalogue/sku-{number:04}", b'{"stock": %d}' % (number % 17))

    async def _lose_clients(self) -> None:
        """Have sessions that end: killed, stopped and closed ones."""
        for number, lost in enumerate((signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM)):
            worker = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tests.support.shop", self._hosts, f"import-{number + 1}"),
                stdout=asyncio.subprocess.PIPE,
            )
            assert worker.stdout is not None
            assert await worker.stdout.readline() == b"ready\n"
            worker.send_signal(lost)
            if lost == signal.SIGSTOP:
                self._stopped.append(worker)
            else:
                self._start(_until_ended(worker))

    async def _coordinate(self) -> None:
        for number, name in enumerate(("search-1", "search-2", "basket-1")):
            service = name.partition("-")[0]
            registry = await self._clients.enter_async_context(
                ServiceRegistry(await self._client(service), "/services")
            )
            await registry.register(ServiceInstance(service, name, f"10.0.0.{number + 11}", 8080))
        billing, stock = await self._client("billing"), await self._client("stock")
        await Lock(billing, "/locks/orders", data=b"billing").acquire()
        await Lock(stock, "/locks/stock", data=b"stock").acquire()
        self._start(_wait_for(Lock(billing, "/locks/stock", data=b"billing")))
        self._start(_wait_for(Lock(stock, "/locks/orders", data=b"stock")))
        report = await self._client("report")
        self._start(_wait_for(Lock(report, "/locks/orders", data=b"report")))
        reader = ReadWriteLock(await self._client("export"), "/locks/prices", data=b"export")
        await reader.read.acquire()
        prices = ReadWriteLock(report, "/locks/prices", data=b"report")
        self._start(_wait_for(prices.write))
        for number in range(4):
            mailer = await self._client("mailer")
            election = Election(mailer, "/leader", data=b"scheduler-%d" % (number + 1))
            await election.start()
            self._clients.push_async_callback(election.stop)
            await Membership(mailer, "/workers").join(f"mailer-{number + 1}")
            permit = Semaphore(mailer, "/jobs/mail-slots", leases=2, data=b"mailer-%d" % number)
            self._start(_wait_for(permit))
        self._start(_meet(DoubleBarrier(mailer, "/steps/nightly", 3)))
        await Barrier(mailer, "/steps/release").close()
        queue = Queue(mailer, "/jobs/mail")
        for number in range(12):
            await queue.put(b'{"order": %d}' % (4711 + number))
        self._start(_take(queue))

    async def _deploy(self, client: Client) -> None:
        """Change the configuration, as the history of a day has it."""
        await client.set("/config/features/checkout-v2", b"10 %")
        await client.create("/config/features/gift-cards", b"on")
        await client.delete("/config/features/wishlist")
        await client.set("/config/payment.json", json.dumps({**PAYMENT, "is_live": False}).encode())
        await client.set("/config/features/checkout-v2", b"50 %")
        await client.set("/config/payment.json", json.dumps(PAYMENT).encode())

    async def _waves(self, client: Client) -> None:
        """Read and write, sometimes more and sometimes less."""
        for step in range(1 << 30):
            amount = 60 + round(45 * math.sin(step / 9) + 12 * math.sin(step / 2.3))
            paths = [f"/catalogue/sku-{(step * 31 + one) % SKUS:04}" for one in range(amount)]
            await asyncio.gather(*map(client.get, paths))
            await client.set(paths[0], b'{"stock": %d}' % (step % 40))
            await asyncio.sleep(0.2)


async def _wait_for(lock: Any) -> None:
    await lock.acquire()
    await asyncio.Event().wait()


async def _meet(barrier: DoubleBarrier) -> None:
    await barrier.enter()


async def _take(queue: Queue) -> None:
    async with queue.take():
        await asyncio.Event().wait()


async def _until_ended(worker: asyncio.subprocess.Process) -> None:
    await worker.wait()


async def _work(hosts: str, name: str, ends: asyncio.Event) -> None:
    """Hold a lock, until it ends."""
    async with paddock.connect(hosts, session_timeout=SHORT_S) as client:
        await client.create("/imports", exist_ok=True)
        await Lock(client, f"/locks/{name}", data=name.encode()).acquire()
        await client.create(f"/imports/{name}", b"row 1 of 4096", ephemeral=True)
        await client.set(f"/imports/{name}", b"row 1024 of 4096")
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await ends.wait()


async def _run(hosts: str, worker: str | None = None) -> None:
    ends = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ends.set)
    if worker is not None:
        await _work(hosts, worker, ends)
        return
    shop = Shop(hosts)
    try:
        sys.stdout.write(f"ready {await shop.open()}\n")
        sys.stdout.flush()
        await ends.wait()
    finally:
        await shop.close()


if __name__ == "__main__":
    asyncio.run(_run(*sys.argv[1:]))

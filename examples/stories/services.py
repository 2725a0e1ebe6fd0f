"""Services that register, are discovered, and share the work.

Three shops sell fruit, each a server of its own with a session of its own. A customer finds them in
the registry and buys from them in turn. One shop breaks, and is avoided after three failures;
an operator closes one from outside; and a new shop opens while the customer buys. The new shop
loses its session, like a program that was paused for too long, and is registered again by itself.

open: anna, bert, carl
bought from anna, bert, carl, anna, bert, carl
bert is broken
bought from anna, carl, anna, carl, anna, carl
open: anna, bert
open: anna, bert, dora
bought from anna, dora, anna, dora
dora has lost its session, and is back
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import paddock
from paddock.recipes import Choice, ServiceInstance, ServiceProvider, ServiceRegistry
from paddock.testing import expire_session

BASE = "/town"


class Shop:
    """A server that sells fruit, until it breaks."""

    def __init__(self, name: str, client: paddock.Client) -> None:
        self.name = name
        self.is_broken = False
        self.client = client
        self._registry = ServiceRegistry(client, BASE)

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[Shop]:
        """Serve on a port that the system chooses, and register it."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = server.sockets[0].getsockname()[1]
        async with server, self._registry:
            await self._registry.register(
                ServiceInstance("fruit", self.name, "127.0.0.1", port, payload={"sells": "plums"})
            )
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.is_broken:
            writer.write(f"{self.name}\n".encode())
        writer.close()


async def buy(provider: ServiceProvider, count: int) -> list[str]:
    """Buy so many times, from any shop that can sell; return the names of the shops."""
    sellers: list[str] = []
    while len(sellers) < count:
        shop = provider.choose()
        if shop is None:
            raise LookupError("all shops are closed")
        reader, writer = await asyncio.open_connection(shop.address, shop.port)
        answer = (await reader.readline()).decode().strip()
        writer.close()
        if answer:
            sellers.append(answer)
        else:
            provider.report_error(shop)
            if provider.is_down(shop):
                print(f"{shop.id} is broken")
    return sellers


async def show_open(provider: ServiceProvider, *names: str) -> None:
    """Wait until exactly these shops are open."""
    async for instances in provider.watch():
        if [one.id for one in instances] == list(names):
            break
    print("open:", ", ".join(names))


async def main(hosts: str = "127.0.0.1:2181") -> None:
    async with AsyncExitStack() as town:

        async def open_shop(name: str) -> Shop:
            client = await town.enter_async_context(paddock.connect(hosts))
            return await town.enter_async_context(Shop(name, client).opened())

        shops = [await open_shop(name) for name in ("anna", "bert", "carl")]
        customer = await town.enter_async_context(paddock.connect(hosts))
        registry = await town.enter_async_context(ServiceRegistry(customer, BASE))
        provider = await town.enter_async_context(
            ServiceProvider(registry, "fruit", Choice.ROUND_ROBIN, errors_max=3, down_seconds=600)
        )

        await show_open(provider, "anna", "bert", "carl")
        print("bought from", ", ".join(await buy(provider, 6)))

        shops[1].is_broken = True
        while not provider.is_down(provider.instances[1]):
            await buy(provider, 1)
        # The turn depends on when the change was noticed.
        while (await buy(provider, 1)) != ["carl"]:
            pass
        print("bought from", ", ".join(await buy(provider, 6)))

        async with paddock.connect(hosts) as operator:
            await ServiceRegistry(operator, BASE).unregister("fruit", "carl")
        await show_open(provider, "anna", "bert")

        dora = await open_shop("dora")
        await show_open(provider, "anna", "bert", "dora")
        while (await buy(provider, 1)) != ["dora"]:
            pass
        print("bought from", ", ".join(await buy(provider, 4)))

        before = (await customer.get(f"{BASE}/fruit/dora")).stat.ephemeral_owner
        host, _, port = hosts.rpartition(":")
        session = dora.client.session_id, dora.client.session_password
        await expire_session((host, int(port)), *session)
        async for change in customer.watch(f"{BASE}/fruit/dora"):
            if change.stat is not None and change.stat.ephemeral_owner != before:
                print("dora has lost its session, and is back")
                break


paddock.run(main(*sys.argv[1:]))

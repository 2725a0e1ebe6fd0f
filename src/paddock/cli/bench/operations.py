"""The operations of a load, each as a function without arguments."""

import itertools
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeAlias

from paddock.cli.bench.site import Site
from paddock.client.client import Client
from paddock.recipes.locks.lock import Lock

Ask: TypeAlias = Callable[[], Awaitable[object]]

# Of a mix, one in so many is a write.
_WRITE_EVERY: Final = 10


def asking(operation: str, client: Client, site: Site, data: bytes, number: int) -> Ask:
    """Return the call of one client; clients of a cell have different numbers."""
    names = (f"{number}-{count}" for count in itertools.count())
    match operation:
        case "get":
            return partial(client.get, site.node)
        case "exists":
            return partial(client.exists, site.node)
        case "children":
            return partial(client.children, site.parent)
        case "set":
            return partial(client.set, site.node, data)
        case "create":
            return lambda: client.create(f"{site.created}/{next(names)}", data)
        case "ephemeral":
            return lambda: _come_and_go(client, f"{site.created}/{next(names)}", data)
        case "mix":
            turns = itertools.cycle([False] * (_WRITE_EVERY - 1) + [True])
            return lambda: client.set(site.node, data) if next(turns) else client.get(site.node)
        case "lock":
            return partial(_hold, Lock(client, site.lock))
    raise AssertionError(f"no such operation: {operation}")


async def _come_and_go(client: Client, path: str, data: bytes) -> None:
    await client.create(path, data, ephemeral=True)
    await client.delete(path)


async def _hold(lock: Lock) -> None:
    async with lock:
        pass

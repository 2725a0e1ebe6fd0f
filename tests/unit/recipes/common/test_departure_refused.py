"""A service that refuses to delete, as on a full disk: nobody's node stands in the way for long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

import pytest

from paddock import Client, connect
from paddock.errors import SystemFailureError
from paddock.recipes import Lock, Semaphore
from paddock.recipes.locks.holder import Holder
from paddock.testing import EmbeddedServer, run_virtually

Make = Callable[[Client], Holder]


def refuse_deletes(client: Client, monkeypatch: pytest.MonkeyPatch, count: int) -> list[str]:
    """Refuse some deletes of a client; return the list of what was asked."""
    asked: list[str] = []
    delete = client.delete

    def refusing(path: str) -> asyncio.Future[None]:
        asked.append(path)
        if len(asked) > count:
            return delete(path)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.set_exception(SystemFailureError("delete", path))
        return future

    monkeypatch.setattr(client, "delete", refusing)
    return asked


@pytest.mark.parametrize(
    "make", [lambda client: Lock(client, "/it"), lambda client: Semaphore(client, "/it", leases=1)]
)
def test_a_release_that_is_refused_is_tried_on(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with (
            EmbeddedServer() as server,
            connect(server.hosts, random=Random(1)) as holder,
            connect(server.hosts, random=Random(2)) as other,
        ):
            grant = await make(holder).acquire()
            waiting = asyncio.ensure_future(make(other).acquire())
            await asyncio.sleep(1)
            asked = refuse_deletes(holder, monkeypatch, 3)
            with pytest.raises(SystemFailureError):
                await grant.release()
            assert not waiting.done()
            async with asyncio.timeout(60):
                await (await waiting).release()
            # And not once more than it took.
            await asyncio.sleep(10)
            assert len(asked) == 4

    run_virtually(main())


def test_somebody_who_gives_up_waiting_leaves_as_soon_as_the_service_lets_him(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        async with (
            EmbeddedServer() as server,
            connect(server.hosts, random=Random(1)) as first,
            connect(server.hosts, random=Random(2)) as second,
        ):
            held = await Lock(first, "/it").acquire()
            refuse_deletes(second, monkeypatch, 2)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await Lock(second, "/it").acquire()
            await held.release()
            async with asyncio.timeout(60):
                await (await Lock(first, "/it").acquire()).release()

    run_virtually(main())

"""A waiter whose node was deleted by others: when it learns of it."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from paddock import LockStateError, connect
from paddock.recipes import Lock
from paddock.testing import EmbeddedServer, FaultProxy, run_virtually


@pytest.mark.parametrize("by", ["release", "reconnect"])
def test_a_waiter_whose_node_was_deleted_learns_it_when_it_looks_again(by: str) -> None:
    async def scenario() -> None:
        async with (
            EmbeddedServer() as server,
            FaultProxy(server.address) as proxy,
            connect(server.hosts, random=Random(1)) as first,
            connect(proxy.hosts, random=Random(2)) as second,
        ):
            grant = await Lock(first, "/lock").acquire()
            waiting = asyncio.ensure_future(Lock(second, "/lock").acquire())
            await asyncio.sleep(1)
            [place] = {*await first.children("/lock")} - {grant.path.rpartition("/")[2]}
            await first.delete(f"/lock/{place}")
            await asyncio.sleep(100)
            assert not waiting.done()
            if by == "release":
                await grant.release()
            else:
                proxy.cut()
            with pytest.raises(LockStateError, match="our place in the line was deleted"):
                await waiting

    run_virtually(scenario())

"""Incidents whose causes are known here, and hidden from `paddock explain`: it has to name them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from paddock import Client, connect
from paddock.history.stories import lock as lock_story
from paddock.history.stories import session as session_story
from paddock.recipes import Lock
from paddock.recipes.common.retry import wait_gone
from paddock.server.config.config import ServerConfig
from paddock.testing import EmbeddedServer, FaultProxy
from paddock.testing.faults import Direction
from tests.support.command import ended_here

TIMEOUT = 1.0
CONFIG = ServerConfig(port=0, tick_time_ms=100)


async def holding(hosts: str, path: str, **settings: float) -> tuple[Client, str]:
    """Return a client that holds a lock, and the node of it."""
    client = connect(hosts, session_timeout=TIMEOUT, **settings)  # type: ignore[arg-type]
    await client.start()
    lock = Lock(client, path)
    await lock.acquire()
    (name,) = await client.children(path)
    return client, f"{path}/{name}"


def explained(data: Path, *arguments: str) -> dict[str, Any]:
    done = ended_here("explain", *arguments, "--json", "--data", str(data))
    assert done.status == 0, done
    found: dict[str, Any] = json.loads(done.output)
    return found


def cause_of(data: Path, session: int) -> object:
    return explained(data, "session", f"0x{session:x}")["cause"]


async def cut_off(client: Client, proxy: FaultProxy) -> None:
    """Nothing comes through any more, in neither direction, and nobody says so."""
    for direction in (Direction.TO_SERVER, Direction.TO_CLIENT):
        proxy.blackhole(direction)


async def killed(client: Client, proxy: FaultProxy) -> None:
    """The process of the client ends: its system closes the connection."""
    await client._session.abandon()


async def closed(client: Client, proxy: FaultProxy) -> None:
    await client.close()


INCIDENTS = {
    "cut off": (cut_off, session_story.CLIENT_SILENT, lock_story.EXPIRED),
    "killed": (killed, session_story.CLIENT_GONE, lock_story.EXPIRED),
    "closed": (closed, session_story.CLOSED, lock_story.CLOSED),
}


@pytest.mark.parametrize("name", INCIDENTS)
def test_why_a_holder_lost_its_lock(name: str, tmp_path: Path) -> None:
    happen, cause, how = INCIDENTS[name]
    data = tmp_path / "data"

    async def main() -> tuple[int, int]:
        async with (
            EmbeddedServer(data, CONFIG) as server,
            FaultProxy(server.address) as proxy,
            connect(server.hosts) as other,
        ):
            holder, node = await holding(proxy.hosts, "/lock")
            waiting = asyncio.create_task(Lock(other, "/lock").acquire())
            session = holder.session_id
            await happen(holder, proxy)
            async with asyncio.timeout(60):
                await wait_gone(other, node)
                await waiting
            await holder._session.abandon()
            return session, other.session_id

    session, successor = asyncio.run(main())
    assert cause_of(data, session) == cause
    told = explained(data, "lock", "/lock")
    # The successor has closed its own.
    former, last = told["former"]
    assert (former["session"], former["how"]) == (f"0x{session:x}", how)
    assert (last["session"], last["held"]) == (f"0x{successor:x}", former["went"])


def test_a_lock_that_a_second_client_has_deleted(tmp_path: Path) -> None:
    data = tmp_path / "data"

    async def main() -> tuple[int, int]:
        async with EmbeddedServer(data, CONFIG) as server, connect(server.hosts) as other:
            holder, node = await holding(server.hosts, "/lock")
            await other.delete(node)
            session = holder.session_id
            await holder.close()
            return session, other.session_id

    session, culprit = asyncio.run(main())
    (former,) = explained(data, "lock", "/lock")["former"]
    assert (former["session"], former["how"]) == (f"0x{session:x}", lock_story.DELETED_BY_OTHER)
    text = ended_here("explain", "lock", "/lock", "--data", str(data)).output
    assert f"deleted by another session, 0x{culprit:x} (ip:127.0.0.1)" in text
    (change,) = [
        one for one in explained(data, "node", former["path"])["last"] if one["kind"] == "deleted"
    ]
    assert change["session"] == f"0x{culprit:x}"


def test_what_the_history_does_not_know(tmp_path: Path) -> None:
    data = tmp_path / "data"

    async def main() -> None:
        async with EmbeddedServer(data, CONFIG) as server, connect(server.hosts):
            pass

    asyncio.run(main())
    done = ended_here("explain", "session", "0x123", "--data", str(data))
    assert (done.status, done.errors) == (1, "paddock: session 0x123: is not in the history\n")
    for what in ("node", "lock"):
        done = ended_here("explain", what, "/none", "--data", str(data))
        assert (done.status, done.errors) == (1, "paddock: /none: is not in the history\n")

"""What is recognised is kept, told of every change, and read anew when changes were missed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from paddock import connect
from paddock.client.client import Client
from paddock.dashboard import coordinating
from paddock.recipes import Lock
from paddock.server.config.config import ServerConfig
from paddock.testing import EmbeddedServer
from tests.support.asgi import until
from tests.support.dashboard import dashboard


class Fake:
    """Recognises nothing, and notes what it is told."""

    made: list[Fake]

    def __init__(self, root: str) -> None:
        self.root = root
        self.needs_look = True
        self.looks = self.restarts = 0
        self.changed: list[str] = []
        self.is_closed = False
        self.made.append(self)

    async def look(self, client: Client, /) -> int:
        assert await client.exists(self.root) is not None
        self.needs_look = False
        self.looks += 1
        return 1

    def note_change(self, path: str, /) -> None:
        self.changed.append(path)
        self.needs_look = True

    def restart(self) -> None:
        self.restarts += 1
        self.needs_look = True

    async def close(self) -> None:
        self.is_closed = True

    def fields(self) -> dict[str, Any]:
        return {"recipes": [], "waits": [], "deadlocks": [], "looked": self.looks}


def test_it_is_looked_at_once_and_again_after_a_change(tmp_path: Path) -> None:
    async def main() -> None:
        made: list[Fake] = []
        Fake.made = made
        async with EmbeddedServer(tmp_path) as server, connect(server.hosts) as client:
            await client.create("/locks")
            await client.create("/other")
            async with dashboard(server.hosts, recognise=Fake) as stage:
                first, second = await stage.browser(), await stage.browser()
                watched = stage.dashboard.people.base.watched
                query = {"root": "/locks"}
                await first.get("/api/coordination", **query)
                await until(lambda: watched.watches == [("/locks", True)])
                # The watch was not there yet; from the second time on it is.
                await first.get("/api/coordination", **query)
                [fake] = made
                restarts, looks = fake.restarts, fake.looks
                for browser in (first, second):
                    answer = (await browser.get("/api/coordination", **query)).json()
                    assert answer["looked"] == looks
                assert (len(made), fake.restarts) == (1, restarts)
                await client.create("/other/a")
                await client.create("/locks/a")
                await client.create("/locks/a/b")
                await until(lambda: len(fake.changed) == 2)
                assert fake.changed == ["/locks/a", "/locks/a/b"]
                answer = (await second.get("/api/coordination", **query)).json()
                assert answer["looked"] == looks + 1
                # While there was no connection, changes may have been missed.
                await server.restart()
                await until(lambda: not stage.dashboard.people.base.is_connected)
                await until(lambda: stage.dashboard.people.base.is_connected)
                await first.get("/api/coordination", **query)
                assert fake.restarts > restarts
                assert (await first.get("/api/coordination", root="no")).status == 400
            assert fake.is_closed

    asyncio.run(main())


def test_a_lock_is_shown_with_its_holder_and_who_waits_from_where() -> None:
    async def main() -> None:
        config = ServerConfig(port=0, four_letter_words=frozenset({"*"}))
        async with (
            EmbeddedServer(None, config) as server,
            connect(server.hosts) as holding,
            connect(server.hosts) as waiting,
            dashboard(server.hosts) as stage,
        ):
            browser = await stage.browser()
            grant = await Lock(holding, "/locks/report").acquire()
            waits = asyncio.ensure_future(Lock(waiting, "/locks/report").acquire())

            async def lock() -> Any:
                found = (await browser.get("/api/coordination", root="/")).json()
                locks = [one for one in found["recipes"] if one["path"] == "/locks/report"]
                return locks[0] if locks else {"holders": [], "waiters": []}

            while not (shown := await lock())["waiters"]:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            [holder], [waiter] = shown["holders"], shown["waiters"]
            assert (shown["kind"], shown["layout"]) == ("lock", "Paddock")
            assert holder["session"] == f"0x{holding.session_id:x}"
            assert waiter["session"] == f"0x{waiting.session_id:x}"
            assert holder["address"].startswith("127.0.0.1:")
            await grant.release()
            await (await waits).release()
            while (await lock())["holders"]:  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    asyncio.run(main())


def test_what_nobody_asks_for_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        made: list[Fake] = []
        Fake.made = made
        async with EmbeddedServer() as server, dashboard(server.hosts, recognise=Fake) as stage:
            browser = await stage.browser()
            watched = stage.dashboard.people.base.watched
            await browser.get("/api/coordination", root="/")
            await until(lambda: watched.watches == [("/", True)])
            monkeypatch.setattr(coordinating, "KEPT_SECONDS", -1.0)
            await browser.get("/api/coordination", root="/zookeeper")
            assert [one.is_closed for one in made] == [True, False]
            await until(lambda: watched.watches == [("/zookeeper", True)])

    asyncio.run(main())

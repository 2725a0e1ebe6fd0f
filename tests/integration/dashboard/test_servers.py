"""Servers and sessions, as the dashboard shows them: what is told, and what is lacking."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from paddock import connect
from paddock.client.client import Client
from paddock.dashboard.figures import PERCENTILES
from paddock.dashboard.past import Place
from paddock.dashboard.people import Service
from paddock.server.config.config import ServerConfig
from paddock.testing import EmbeddedServer
from tests.support.asgi import awaited
from tests.support.dashboard import Stage, dashboard

WORDS = frozenset({"srvr", "mntr", "cons", "dump", "wchc"})


def test_the_overview_has_every_server_and_comes_each_second() -> None:
    async def main() -> None:
        config = ServerConfig(port=0, four_letter_words=WORDS)
        async with EmbeddedServer(None, config) as server, EmbeddedServer() as gone:
            hosts = f"{server.hosts},{gone.hosts}"
            await gone.stop()
            async with connect(server.hosts) as client, dashboard(hosts) as stage:
                await client.create("/app")
                browser = await stage.browser()
                async with browser.live("/") as events:
                    await awaited(events, "overview")
                    live = await awaited(events, "overview")
                overview = (await browser.get("/api/overview")).json()
                row, away = overview["servers"]
                assert (row["server"], row["problem"]) == (server.hosts, None)
                assert (row["mode"], row["lag"]) == ("standalone", 0)
                assert row["sessions"] == 2
                assert row["nodes"] > 1
                assert away["problem"] is not None
                [problem] = overview["problems"]
                assert problem["severity"] == "bad"
                assert gone.hosts in problem["what"]
                names = ("requests_per_second", "sessions", "watches", "nodes", *PERCENTILES)
                for name in names:
                    assert len(live["series"][name]) == 1
                    assert len(overview["series"][name]) >= 2 - (name == "requests_per_second")
                lacking = (await browser.get("/api/sessions")).json()["lacking"]
                assert lacking[0]["why"] == f"{gone.hosts} does not answer."
                about = (await browser.get("/api/about")).json()
                assert about["is_paddock"] is True
                assert "paddock" in about["version"]
                assert about["servers"] == [server.hosts, gone.hosts]

    asyncio.run(main())


def test_what_a_server_does_not_tell_is_lacking_with_the_way_to_have_it() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, dashboard(server.hosts) as stage:
            browser = await stage.browser()
            async with browser.live() as events:
                await awaited(events, "overview")
            lacking = (await browser.get("/api/about")).json()["lacking"]
            assert {word for one in lacking for word in one} == {"what", "why", "how"}
            assert any("4lw.commands.whitelist" in one["how"] for one in lacking)
            assert any("--data" in one["how"] for one in lacking)
            sessions = (await browser.get("/api/sessions")).json()
            assert sessions["sessions"] == []
            assert "cons and dump" in sessions["lacking"][0]["why"]

    asyncio.run(main())


@pytest.mark.parametrize("by_admin_server", [False, True])
def test_sessions_are_told_by_words_or_by_the_admin_server_and_why_others_ended(
    tmp_path: Path, by_admin_server: bool
) -> None:
    async def main() -> None:
        config = ServerConfig(port=0, four_letter_words=WORDS)
        if by_admin_server:
            config = ServerConfig(port=0, admin_port=0)
        async with EmbeddedServer(tmp_path, config) as server, connect(server.hosts) as client:
            place = Place(data=tmp_path)
            if by_admin_server:
                assert server._server is not None
                port = server._server.config_with_ports().admin_port
                place = Place(data=tmp_path, admin=f"http://127.0.0.1:{port}")
            async with dashboard(server.hosts, place=place) as stage:
                await look(stage, client, server.hosts)

    async def look(stage: Stage, client: Client, hosts: str) -> None:
        browser = await stage.browser()
        await client.add_auth("digest", b"alice:secret")
        for number in range(25):
            await client.create(f"/worker-{number:02}", ephemeral=True)
        async with connect(hosts) as other:
            over = f"0x{other.session_id:x}"
        own = f"0x{client.session_id:x}"
        while True:
            answer = (await browser.get("/api/sessions")).json()
            # A second later, they are in the file.
            if any(one["session"] == over for one in answer["ended"]):
                break
            await asyncio.sleep(0.05)
        [ended] = [one for one in answer["ended"] if one["session"] == over]
        assert (ended["cause"], ended["text"]) == ("closed", "Its client closed it.")
        [shown] = [one for one in answer["sessions"] if one["session"] == own]
        assert shown["address"].startswith("127.0.0.1:")
        assert shown["timeout_ms"] == 10_000
        assert "digest:alice" in shown["identities"]
        assert (len(shown["ephemerals"]), shown["ephemeral_count"]) == (20, 25)
        assert shown["server"] == hosts
        assert answer["lacking"] == []
        async with browser.live() as events:
            overview = await awaited(events, "overview")
        assert overview["servers"][0]["sessions"] >= 2
        assert (await browser.get("/api/about")).json()["lacking"] == []
        assert (await browser.get("/api/session", id="nonsense")).status == 400

    asyncio.run(main())


def test_a_session_that_has_begun_since_the_servers_were_asked_is_shown() -> None:
    """A view may link to it that has seen it elsewhere, such as in a line for a lock."""

    async def main() -> None:
        config = ServerConfig(port=0, four_letter_words=WORDS)
        async with EmbeddedServer(config=config) as server, dashboard(server.hosts) as stage:
            browser = await stage.browser()
            before = (await browser.get("/api/sessions")).json()
            async with connect(server.hosts) as client:
                session = f"0x{client.session_id:x}"
                assert all(one["session"] != session for one in before["sessions"])
                told = await browser.get("/api/session", id=session)
                assert told.json()["session"]["session"] == session
            assert (await browser.get("/api/session", id="0x1")).status == 404

    asyncio.run(main())


def test_a_chroot_is_the_root_of_the_page() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, connect(server.hosts) as client:
            await client.create("/app/below", make_parents=True)
            async with dashboard("", service=Service(f"{server.hosts}/app")) as stage:
                browser = await stage.browser()
                about = (await browser.get("/api/about")).json()
                assert (about["root"], about["servers"]) == ("/app", [server.hosts])
                root = (await browser.get("/api/children", path="/")).json()
                assert [one["name"] for one in root["children"]] == ["below"]

    asyncio.run(main())

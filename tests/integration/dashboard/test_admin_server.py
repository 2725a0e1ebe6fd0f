"""A dashboard that has nothing but the admin server of a service, which asks for a password."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from paddock import connect
from paddock.dashboard.figures import PERCENTILES
from paddock.dashboard.past import Place
from paddock.protocol.acl import digest_id
from paddock.server.admin.rate_limits import WRONG_MAX
from paddock.server.config.config import ServerConfig
from paddock.testing import EmbeddedServer
from tests.support.asgi import awaited
from tests.support.dashboard import dashboard


def config(folder: Path) -> ServerConfig:
    """Return a server that tells nothing but `srvr` on its client port."""
    password = folder / "password"
    password.write_text("monitor:secret\n")
    password.chmod(0o600)
    return ServerConfig(
        port=0,
        admin_port=0,
        admin_password_file=password,
        super_digest=digest_id("super:top"),
    )


def place(server: EmbeddedServer, *, admin_password: str, admin_auth: str = "") -> Place:
    assert server._server is not None
    url = f"http://127.0.0.1:{server._server.config_with_ports().admin_port}"
    return Place(admin=url, admin_password=admin_password, admin_auth=admin_auth)


def test_the_admin_server_alone_tells_of_servers_sessions_and_changes(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            EmbeddedServer(tmp_path / "data", config(tmp_path)) as server,
            connect(server.hosts) as client,
            dashboard(
                server.hosts,
                place=place(server, admin_password="monitor:secret", admin_auth="digest:super:top"),
            ) as stage,
        ):
            await client.create("/app", b"v1")
            await client.set("/app", b"v2")
            worker = await client.create("/worker", ephemeral=True)
            browser = await stage.browser()
            async with browser.live("/") as events:
                await awaited(events, "overview")
                overview = await awaited(events, "overview")
            assert overview["servers"][0]["sessions"] == 2
            assert overview["series"].keys() >= PERCENTILES.keys()
            own = f"0x{client.session_id:x}"
            found = (await browser.get("/api/sessions")).json()
            [row] = [one for one in found["sessions"] if one["session"] == own]
            assert (row["ephemerals"], row["timeout_ms"]) == ([worker], 10_000)
            assert row["address"].startswith("127.0.0.1:")
            # Why sessions ended is in files alone, and so are states.
            assert ["--data" in one["how"] for one in found["lacking"]] == [True]
            about = (await browser.get("/api/about")).json()
            assert about["history"] is None
            assert ["--data" in one["how"] for one in about["lacking"]] == [True]
            changes = (await browser.get("/api/history", path="/app")).json()["changes"]
            assert [one["kind"] for one in changes] == ["changed", "created"]
            told = (await browser.get("/api/session", id=own)).json()
            assert "not over" in told["story"]["title"]
            assert (await browser.get("/api/node", path="/", at="0x1")).status == 409

    asyncio.run(main())


def test_a_wrong_password_is_said_and_not_tried_again_and_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            EmbeddedServer(None, config(tmp_path)) as server,
            dashboard(server.hosts, place=place(server, admin_password="monitor:x")) as stage,
        ):
            browser = await stage.browser()
            async with browser.live("/") as events:
                await awaited(events, "overview")
                await awaited(events, "overview")
            answers: list[Any] = [
                (await browser.get(f"/api/{name}")).json()["lacking"]
                for name in ("about", "sessions")
            ]
            for lacking in answers:
                assert "The admin server refuses: 401 Unauthorized." in lacking[0]["why"]
            assert server._server is not None
            guesses = server._server.admin_limits.guesses._wrong
            assert [len(times) for times in guesses.values()] == [1]

    asyncio.run(main())


def test_the_past_is_not_asked_for_again_with_credentials_that_were_refused(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with EmbeddedServer(tmp_path / "data", config(tmp_path)) as server:
            named = place(server, admin_password="monitor:secret", admin_auth="digest:super:wrong")
            async with dashboard(server.hosts, place=named) as stage:
                browser = await stage.browser()
                # More often than the server would hear it.
                for _ in range(WRONG_MAX + 2):
                    answer = await browser.get("/api/history", path="/")
                    assert answer.status == 409
                    assert answer.json()["error"] == (
                        "The admin server refuses: Not authorized: it takes the superuser."
                        " Start the dashboard with another --admin-auth."
                    )
                assert server._server is not None
                guesses = server._server.admin_limits.guesses._wrong
                assert [len(times) for times in guesses.values()] == [1]
                # So the rest of the page goes on.
                async with browser.live("/") as events:
                    await awaited(events, "overview")
                    overview = await awaited(events, "overview")
                assert overview["servers"][0]["sessions"] == 1

    asyncio.run(main())

"""The dashboard on Apache ZooKeeper: the same walk, and what it cannot tell is said."""

from __future__ import annotations

import asyncio
import base64

import pytest

from paddock import connect
from paddock.dashboard.figures import PERCENTILES
from tests.conformance.differences import EVENTS_HAVE_A_ZXID
from tests.support.asgi import awaited
from tests.support.dashboard import dashboard
from tests.support.server import Server, named_release


@pytest.mark.judge
def test_the_same_walk_on_apache_zookeeper(shared_apache: Server) -> None:
    async def main() -> None:
        hosts = f"{shared_apache.host}:{shared_apache.port}"
        async with connect(hosts) as client, dashboard(hosts, allow_writes=True) as stage:
            await client.create("/dashboard-walk", b"v1")
            worker = await client.create("/dashboard-walk/worker", ephemeral=True)
            browser = await stage.browser()
            async with browser.live("/dashboard-walk") as events:
                await awaited(events, "resync")
                overview = await awaited(events, "overview")
                root = (await browser.get("/api/children", path="/dashboard-walk")).json()
                assert [(one["name"], one["kind"]) for one in root["children"]] == [
                    ("worker", "ephemeral")
                ]
                fields = {
                    "path": "/dashboard-walk",
                    "data": base64.b64encode(b"v2").decode(),
                    "version": 0,
                }
                assert (await browser.post("/api/set", fields)).status == 200
                changed = await awaited(events, "changed", path="/dashboard-walk")
                now = await client.exists("/dashboard-walk")
                assert now is not None
                tells = EVENTS_HAVE_A_ZXID.on(shared_apache)
                zxid = f"0x{now.mzxid:x}" if tells else None
                assert (changed["kind"], changed["zxid"]) == ("changed", zxid)
                assert (await browser.post("/api/set", fields)).status == 409
            found = (await browser.get("/api/search", q="walk")).json()
            assert found["found"] == ["/dashboard-walk"]
            node = (await browser.get("/api/node", path=worker)).json()
            assert node["owner"] == f"0x{client.session_id:x}"
            assert overview["series"].keys() >= PERCENTILES.keys()
            [row] = overview["servers"]
            assert (row["mode"], row["problem"]) == ("standalone", None)
            assert row["version"].startswith(str(named_release(shared_apache)))
            sessions = (await browser.get("/api/sessions")).json()
            [own] = [one for one in sessions["sessions"] if one["session"] == node["owner"]]
            assert own["address"].startswith("127.0.0.1:")
            assert (own["timeout_ms"], own["ephemerals"]) == (10_000, [worker])
            about = (await browser.get("/api/about")).json()
            assert (about["is_paddock"], about["history"]) == (False, None)
            for lacking in (sessions["lacking"], about["lacking"]):
                assert ["--data" in one["how"] for one in lacking] == [True]
            preview = {"path": "/dashboard-walk", "preview": True}
            count = (await browser.post("/api/delete", preview)).json()["count"]
            whole = {"path": "/dashboard-walk", "version": 1, "is_recursive": True, "count": count}
            assert (await browser.post("/api/delete", whole)).json() == {"count": 2}

    asyncio.run(main())

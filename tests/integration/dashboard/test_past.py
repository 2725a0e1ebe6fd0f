"""The past by the dashboard: states, changes, differences and stories, for those who may see."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

from paddock import ACL, Identity, Permission, connect
from paddock.dashboard.past import Place
from paddock.testing import EmbeddedServer
from tests.support.dashboard import dashboard


def test_without_a_history_it_is_said_how_to_have_one() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, dashboard(server.hosts) as stage:
            browser = await stage.browser()
            for path, query in (
                ("/api/node", {"path": "/", "at": "0x1"}),
                ("/api/children", {"path": "/", "at": "2026-11-18T00:12:03.000Z"}),
                ("/api/overview", {"at": "0x1"}),
                ("/api/history", {"path": "/"}),
                ("/api/diff", {"path": "/", "from": "0x1", "to": "0x2"}),
            ):
                answer = await browser.get(path, **query)
                assert answer.status == 409
                assert "--data" in answer.json()["error"]
            assert (await browser.get("/api/node", path="/", at="nonsense")).status == 400

    asyncio.run(main())


def test_the_past_is_shown_and_hides_what_the_present_hides(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            EmbeddedServer(tmp_path) as server,
            connect(server.hosts) as client,
            dashboard(server.hosts, place=Place(data=tmp_path)) as stage,
        ):
            alice, bob = await stage.browser(), await stage.browser()
            await client.add_auth("digest", b"alice:secret")
            hers = [ACL(Permission.ALL, Identity("auth", ""))]
            await client.create("/open", b"v1")
            await client.create("/private", b"hers", acl=hers)
            stat = await client.exists("/private")
            assert stat is not None
            then = f"0x{stat.mzxid:x}"
            await client.set("/open", b"v2")
            await client.set("/private", b"hers, too")
            await client.create("/new")
            await client.create("/worker", ephemeral=True)
            now = f"0x{client.last_zxid:x}"
            await alice.post("/api/identity", {"scheme": "digest", "credentials": "alice:secret"})

            # States.
            root = (await bob.get("/api/children", path="/", at=then)).json()
            assert [one["name"] for one in root["children"]] == ["open", "private", "zookeeper"]
            node = (await bob.get("/api/node", path="/open", at=then)).json()
            assert base64.b64decode(node["data"]) == b"v1"
            hidden = (await bob.get("/api/node", path="/private", at=then)).json()
            assert (hidden["data"], hidden["acl"]) == (None, None)
            shown = (await alice.get("/api/node", path="/private", at=then)).json()
            assert base64.b64decode(shown["data"]) == b"hers"
            overview = (await bob.get("/api/overview", at=then)).json()
            assert overview["servers"][0]["zxid"] == then
            moment = (await bob.get("/api/moment", at=then)).json()
            assert moment == {"zxid": then, "time_ms": stat.mtime}
            assert (await bob.get("/api/moment")).status == 400
            later = (await bob.get("/api/sessions", at=now)).json()
            assert [one["session"] for one in later["sessions"]] == [f"0x{client.session_id:x}"]
            assert (await bob.get("/api/node", path="/", at="0x7fffffff")).status == 409

            # What has changed.
            changed = (await bob.get("/api/history", path="/open", limit=1)).json()
            [last] = changed["changes"]
            assert (last["kind"], last["version"]) == ("changed", 1)
            assert base64.b64decode(last["before"]["data"]) == b"v1"
            assert base64.b64decode(last["after"]["data"]) == b"v2"
            older = (await bob.get("/api/history", path="/open", before=changed["next"])).json()
            assert [one["kind"] for one in older["changes"]] == ["created"]
            assert older["next"] is None
            of_hers = (await bob.get("/api/history", path="/private")).json()["changes"]
            assert [one["after"]["data"] for one in of_hers] == [None, None]
            assert all(one["after"]["hidden"] for one in of_hers)
            query = {"path": "/", "from": then, "to": now}
            his = (await bob.get("/api/diff", **query)).json()
            assert [one["path"] for one in his["changes"]] == ["/new", "/open", "/worker"]
            assert his["hidden"] == 1
            all_of_it = (await alice.get("/api/diff", **query)).json()
            assert [(one["path"], one["kind"]) for one in all_of_it["changes"]] == [
                ("/new", "created"),
                ("/open", "changed"),
                ("/private", "changed"),
                ("/worker", "created"),
            ]

            # A session, and how far it all reaches.
            told = (await bob.get("/api/session", id=f"0x{client.session_id:x}")).json()
            assert "not over" in told["story"]["title"]
            assert any(one["time_ms"] for one in told["story"]["lines"])
            reach = (await bob.get("/api/about")).json()["history"]
            assert reach["from_ms"] <= stat.mtime <= reach["to_ms"]
            assert int(reach["from_zxid"], 16) <= int(then, 16) <= int(reach["to_zxid"], 16)

    asyncio.run(main())

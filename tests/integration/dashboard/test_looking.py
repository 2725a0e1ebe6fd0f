"""The dashboard on a real server: logging in, the tree, live changes, lost and found services."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from paddock import ACL, Identity, Permission, connect
from paddock.client.client import Client
from paddock.client.session.hosts import Host
from paddock.dashboard import sessions, tree, watched
from paddock.dashboard.access import CSP
from paddock.dashboard.figures import Watching
from paddock.monitor import mntr_of
from paddock.server.config.config import ServerConfig
from paddock.testing import EmbeddedServer
from tests.support.asgi import Browser, awaited, until
from tests.support.dashboard import Stage, dashboard

Story = Callable[[EmbeddedServer, Stage, Client], Coroutine[Any, Any, None]]


def run(story: Story, data: Path | None = None) -> None:
    async def main() -> None:
        config = ServerConfig(port=0, four_letter_words=frozenset({"*"}))
        async with EmbeddedServer(data, config) as server, connect(server.hosts) as client:
            async with dashboard(server.hosts) as stage:
                await story(server, stage, client)

    asyncio.run(main())


async def sessions_of(server: EmbeddedServer) -> int:
    said = await mntr_of(Host(*server.address), None, 60.0)
    return int(said["zk_global_sessions"])


def test_a_link_works_once_and_the_page_is_for_those_who_have_used_one() -> None:
    async def story(server: EmbeddedServer, stage: Stage, client: Client) -> None:
        used: list[None] = []
        stage.dashboard.on_enter = lambda: used.append(None)
        stranger = Browser(stage.dashboard.app)
        page = await stranger.get("/")
        assert page.status == 401
        assert b"Use the link" in page.body
        token = stage.dashboard.door.new_token()
        # What looks ahead at links does not use them up.
        assert (await stranger.ask("HEAD", "/login", {}, query={"token": token})).status == 204
        assert (await stranger.login(token)).status == 303
        assert (await stranger.get("/")).status == 200
        again = Browser(stage.dashboard.app)
        assert (await again.login(token)).status == 403
        assert (await again.get("/api/about")).status == 401
        assert len(used) == 1
        for answer in (
            page,
            await again.login(token),
            await stranger.get("/"),
            await stranger.get("/static/index.html"),
            await stranger.get("/static/../app.py"),
            await stranger.get("/nothing"),
            await stranger.get("/api/nothing"),
        ):
            assert answer.headers["content-security-policy"] == CSP

    run(story)


def test_a_file_of_the_page_is_served_and_nothing_beside_it() -> None:
    async def story(server: EmbeddedServer, stage: Stage, client: Client) -> None:
        browser = await stage.browser()
        page = await browser.get("/static/index.html")
        assert page.headers["content-type"].startswith("text/html")
        etag = {"if-none-match": page.headers["etag"]}.items()
        assert (await browser.get("/static/index.html", etag)).status == 304
        for path in ("/static/", "/static/../app.py", "/static//etc/passwd", "/app.py"):
            assert (await browser.get(path)).status == 404

    run(story)


def test_children_come_in_pages_by_name_or_by_row() -> None:
    async def story(server: EmbeddedServer, stage: Stage, client: Client) -> None:
        browser = await stage.browser()
        await client.create("/app")
        names = [f"node-{number:04}" for number in range(1200)]
        await asyncio.gather(*(client.create(f"/app/{name}") for name in names))
        await client.create("/app/node-0001/below", b"x" * 10, container=True)
        first = (await browser.get("/api/children", path="/app", limit=10_000)).json()
        assert [one["name"] for one in first["children"]] == names[: tree.PAGE_MAX]
        assert (first["total"], first["offset"], first["next"]) == (1200, 0, "node-0499")
        assert first["children"][1]["has_children"] is True
        assert first["children"][1]["kind"] == "persistent"
        after = (await browser.get("/api/children", path="/app", after="node-0999")).json()
        assert [one["name"] for one in after["children"]] == names[1000:]
        assert after["next"] is None
        row = (await browser.get("/api/children", path="/app", offset=700, limit=2)).json()
        assert [one["name"] for one in row["children"]] == ["node-0700", "node-0701"]
        # What is kept of a long list is not kept after a change.
        await client.create("/app/a-new-one")
        changed = (await browser.get("/api/children", path="/app", limit=1)).json()
        assert [one["name"] for one in changed["children"]] == ["a-new-one"]
        assert changed["total"] == 1201
        assert (await browser.get("/api/children", path="/nothing")).status == 404
        assert (await browser.get("/api/children", path="nothing")).status == 400
        assert (await browser.get("/api/children")).status == 400

    run(story)


def test_a_node_has_its_data_up_to_a_size_its_kind_its_owner_and_its_acl(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(server: EmbeddedServer, stage: Stage, client: Client) -> None:
        browser = await stage.browser()
        large = bytes(range(256)) * 4000
        monkeypatch.setattr(sessions, "_WATCHERS_SECONDS", 0.0)
        monkeypatch.setattr(sessions, "SHARE", 0)
        await client.create("/large", large)
        node = (await browser.get("/api/node", path="/large", bytes=100)).json()
        assert (node["size"], node["is_cut"]) == (len(large), True)
        assert base64.b64decode(node["data"]) == large[:100]
        whole = (await browser.get("/api/node", path="/large", bytes=2_000_000)).json()
        assert base64.b64decode(whole["data"]) == large
        assert whole["is_cut"] is False
        assert node["acl"] == [
            {
                "scheme": "world",
                "id": "anyone",
                "permissions": ["read", "write", "create", "delete", "admin"],
            }
        ]
        assert (node["kind"], node["owner"], node["hidden"]) == ("persistent", None, None)
        await client.create("/worker", ephemeral=True)
        await client.get("/worker", watch=lambda _: None)
        worker = (await browser.get("/api/node", path="/worker")).json()
        [watcher] = worker["watchers"]
        assert watcher["session"] == worker["owner"]
        assert watcher["address"].startswith("127.0.0.1:")
        assert (worker["kind"], worker["owner"]) == ("ephemeral", f"0x{client.session_id:x}")
        assert (await browser.get("/api/node", path="/nothing")).status == 404
        # Without any data it is what a row of the tree shows, and costs one request.
        row = (await browser.get("/api/node", path="/worker", bytes=0)).json()
        assert row == {name: worker[name] for name in ("path", "stat", "kind", "owner")}
        assert (await browser.get("/api/node", path="/nothing", bytes=0)).status == 404

    run(story)


@pytest.mark.parametrize("name", ["<script>alert(1)<script>", "\u202eabc", "ünï", "a b&c=d%2f"])
def test_hostile_names_are_names(name: str) -> None:
    async def story(server: EmbeddedServer, stage: Stage, client: Client) -> None:
        browser = await stage.browser()
        await client.create(f"/{name}", b"\xff\xfe<b>")
        root = (await browser.get("/api/children", path="/")).json()
        assert name in [one["name"] for one in root["children"]]
        node = (await browser.get("/api/node", path=f"/{name}")).json()
        assert (node["path"], base64.b64decode(node["data"])) == (f"/{name}", b"\xff\xfe<b>")
        # Bytes that are no text are no path, and no failure either.
        refused = await browser.ask("GET", "/api/node", {}, query={"path": b"/\xff\xfe"})
        assert refused.status == 400

    run(story)


def test_a_search_is_bounded_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "LOOKED_MAX", 40)

    async def story(server: EmbeddedServer, stage: Stage, client: Client) -> None:
        browser = await stage.browser()
        await client.create("/app")
        for number in range(10):
            await client.create(f"/app/{number}")
            for below in range(5):
                await client.create(f"/app/{number}/Find-{below}")
        found: list[str] = []
        query: dict[str, Any] = {"q": "find-3", "root": "/app"}
        rounds = 0
        while True:
            part = (await browser.get("/api/search", **query)).json()
            rounds += 1
            found += part["found"]
            if part["is_complete"]:
                break
            assert part["looked"] == 40
            query["next"] = part["next"]
        assert found == [f"/app/{number}/Find-3" for number in range(10)]
        assert rounds == 2
        for wrong in ({"q": ""}, {"q": "x", "root": "/app", "next": "/other"}, {"q": "y" * 2000}):
            assert (await browser.get("/api/search", **wrong)).status == 400

    run(story)


def test_all_browsers_see_a_change_by_one_session(monkeypatch: pytest.MonkeyPatch) -> None:
    async def look_at_no_recipes(watching: Watching) -> None:
        """They have a watch of their own, which outlives the pages."""

    monkeypatch.setattr(Watching, "_read_recipes", look_at_no_recipes)

    async def story(server: EmbeddedServer, stage: Stage, client: Client) -> None:
        await client.create("/app")
        before = await sessions_of(server)
        async with asyncio.TaskGroup() as group:
            ready = asyncio.Barrier(11)

            async def look() -> None:
                browser = await stage.browser()
                async with browser.live("/", "/app") as events:
                    assert await awaited(events, "state") == {
                        "connected": True,
                        "refused": False,
                        "text": "Connected.",
                    }
                    await until(
                        lambda: stage.dashboard.people.base.watched.watches == [("/", True)]
                    )
                    await ready.wait()
                    created = await awaited(events, "changed", path="/app/new")
                    assert created["kind"] == "created"
                    assert created["zxid"].startswith("0x")
                    changed = await awaited(events, "changed", path="/app")
                    assert changed["kind"] == "changed"
                    await awaited(events, "changed", path="/app/new", kind="deleted")
                    await ready.wait()

            for _ in range(10):
                group.create_task(look())
            await ready.wait()
            # The test's own, and one for all ten of them.
            assert await sessions_of(server) == before == 2
            # Nobody shows what is below this one.
            await client.create("/app/new")
            await client.create("/app/new/deep")
            await client.set("/app", b"v2")
            await client.delete("/app/new/deep")
            await client.delete("/app/new")
            await ready.wait()
        # Without pages there are no watches.
        await until(lambda: not stage.dashboard.people.base.watched.watches)

    run(story)


def test_a_page_is_told_of_nodes_that_it_shows_and_of_their_children_only() -> None:
    async def story(server: EmbeddedServer, stage: Stage, client: Client) -> None:
        browser = await stage.browser()
        await client.create("/app/a", make_parents=True)
        async with browser.live("/app") as events:
            await awaited(events, "resync")
            await client.create("/app/a/deep")
            await client.create("/other")
            await client.create("/app/b")
            async for name, fields in events:
                if name == "changed":
                    assert fields["path"] == "/app/b"
                    break

    run(story)


def test_where_too_much_happens_pages_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "EVENTS_MAX", 20)

    async def story(server: EmbeddedServer, stage: Stage, client: Client) -> None:
        browser = await stage.browser()
        await client.create("/busy")
        await client.create("/calm")
        async with browser.live("/", "/calm") as events:
            await awaited(events, "resync")
            stops = asyncio.Event()

            async def write() -> None:
                while not stops.is_set():
                    await asyncio.gather(*(client.set("/busy", b"x") for _ in range(100)))

            writing = asyncio.ensure_future(write())
            base = stage.dashboard.people.base.watched
            await until(lambda: ("/", True) not in base.watches)
            stops.set()
            await writing
            await awaited(events, "resync")
            await until(lambda: base.watches == [("/", False), ("/calm", True)])
            await client.set("/calm", b"x")
            await awaited(events, "changed", path="/calm")

    run(story)


def test_a_service_that_goes_away_and_comes_back_is_told_and_everything_goes_on(
    tmp_path: Path,
) -> None:
    async def story(server: EmbeddedServer, stage: Stage, client: Client) -> None:
        browser = await stage.browser()
        await client.create("/app")
        async with browser.live("/") as events:
            await awaited(events, "state", connected=True)
            await server.stop()
            lost = await awaited(events, "state", connected=False)
            assert lost["text"]
            answer = await browser.get("/api/children", path="/")
            assert (answer.status, answer.json()["error"]) == (503, lost["text"])
            assert (await browser.get("/api/about")).status == 200
            await server.start()
            await awaited(events, "state", connected=True)
            await awaited(events, "resync")
            assert (await browser.get("/api/children", path="/")).status == 200
            await client.create("/app/after")
            async with browser.live("/app") as below:
                # It is told, or to read anew if there is a watch for a few seconds only.
                async for name, fields in below:
                    if name == "resync" or fields.get("path") == "/app/after":
                        break

    run(story, tmp_path)


def test_a_session_that_expired_is_begun_anew_with_its_watches() -> None:
    async def story(server: EmbeddedServer, stage: Stage, client: Client) -> None:
        browser = await stage.browser()
        async with browser.live("/") as events:
            await awaited(events, "resync")
            # In memory: the sessions are gone.
            await server.restart()
            await awaited(events, "state", connected=False)
            await awaited(events, "state", connected=True)
            async with connect(server.hosts) as other:
                await until(lambda: stage.dashboard.people.base.watched.watches == [("/", True)])
                await other.create("/new")
                await awaited(events, "changed", path="/new")

    run(story)


def test_persons_see_what_their_credentials_allow_and_share_sessions() -> None:
    async def story(server: EmbeddedServer, stage: Stage, client: Client) -> None:
        alice, bob, other_alice = [await stage.browser() for _ in range(3)]
        await client.add_auth("digest", b"alice:secret")
        acl = [ACL(Permission.ALL, Identity("auth", ""))]
        await client.create("/private", b"hers", acl=acl)
        await client.create("/private/below", acl=acl)
        who = {"scheme": "digest", "credentials": "alice:secret"}
        assert "digest:alice" in (await alice.post("/api/identity", who)).json()["names"]
        await other_alice.post("/api/identity", who)
        # The test's own, everybody's, and one for both of her browsers.
        assert await sessions_of(server) == 3
        node = (await alice.get("/api/node", path="/private")).json()
        assert base64.b64decode(node["data"]) == b"hers"
        hidden = (await bob.get("/api/node", path="/private")).json()
        assert hidden["data"] is None
        assert hidden["hidden"]
        assert (await bob.get("/api/children", path="/private")).status == 403
        async with alice.live("/private") as hers, bob.live("/") as his:
            await awaited(hers, "resync")
            await awaited(his, "resync")
            await client.set("/private", b"v2")
            await awaited(hers, "changed", path="/private")
            await client.create("/open")
            # Of what happened before this one, he was told nothing.
            async for name, fields in his:
                if name == "changed":
                    assert fields["path"] == "/open"
                    break
        async with alice.live("/private") as hers:
            await awaited(hers, "state")
            # What she is told ends with her credentials, though others have the same.
            await alice.post("/api/identity", {})
            assert [name async for name, _ in hers if name == "changed"] == []
        for browser in (alice, other_alice):
            nobody = (await browser.post("/api/identity", {})).json()
            assert "digest:alice" not in nobody["names"]
        while await sessions_of(server) != 2:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        wrong_ones: list[Any] = [{"scheme": "digest"}, {"scheme": "digest", "credentials": "x"}, []]
        for wrong in wrong_ones:
            assert (await alice.post("/api/identity", wrong)).status == 400

    run(story)


def test_credentials_that_are_refused_leave_everything_as_it_was() -> None:
    async def story(server: EmbeddedServer, stage: Stage, client: Client) -> None:
        browser = await stage.browser()
        answer = await browser.post("/api/identity", {"scheme": "nosuch", "credentials": "x"})
        assert (answer.status, answer.json()) == (
            403,
            {"error": "The service refuses these credentials."},
        )
        assert (await browser.get("/api/children", path="/")).status == 200
        assert len(stage.dashboard.people.all()) == 1

    run(story)

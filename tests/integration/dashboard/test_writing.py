"""Writing by the dashboard: only when allowed, with the version that was shown, and with a line."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from paddock import ACL, Identity, Permission, connect
from paddock.client.client import Client
from paddock.dashboard import writing
from paddock.testing import EmbeddedServer
from tests.support.dashboard import Stage, dashboard

Story = Callable[[Stage, Client], Coroutine[Any, Any, None]]


def run(story: Story, *, allow_writes: bool = True) -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, connect(server.hosts) as client:
            async with dashboard(server.hosts, allow_writes=allow_writes) as stage:
                await story(stage, client)

    asyncio.run(main())


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_nothing_is_written_unless_it_is_allowed() -> None:
    async def story(stage: Stage, client: Client) -> None:
        browser = await stage.browser()
        await client.create("/app")
        assert (await browser.get("/api/about")).json()["allow_writes"] is False
        for name in ("create", "set", "delete", "acl"):
            fields = {"path": "/app", "version": 0, "data": "", "acl": []}
            assert (await browser.post(f"/api/{name}", fields)).status == 403
        assert sorted(await client.children("/")) == ["app", "zookeeper"]

    run(story, allow_writes=False)


def test_a_node_is_created_and_set_with_a_megabyte() -> None:
    async def story(stage: Stage, client: Client) -> None:
        browser = await stage.browser()
        made = await browser.post("/api/create", {"path": "/app", "data": b64(b"v1")})
        assert (made.status, made.json()) == (200, {"path": "/app"})
        numbered = {"path": "/app/job-", "is_sequential": True}
        assert (await browser.post("/api/create", numbered)).json() == {
            "path": "/app/job-0000000000"
        }
        large = bytes(range(256)) * 4000
        answer = await browser.post("/api/set", {"path": "/app", "data": b64(large), "version": 0})
        assert answer.json()["stat"]["version"] == 1
        assert (await client.get("/app")).data == large
        ttl = {"path": "/short", "kind": "ttl", "ttl_ms": 60_000}
        # A server does not have TTL nodes unless it is told to.
        assert (await browser.post("/api/create", ttl)).status in (200, 400)
        container = {"path": "/box", "kind": "container"}
        assert (await browser.post("/api/create", container)).status == 200
        assert (await browser.post("/api/create", {"path": "/app"})).status == 409
        assert (await browser.post("/api/create", {"path": "/no/parent"})).status == 404
        for wrong in (
            {},
            {"path": 5},
            {"path": "no"},
            {"path": "/x", "data": "?"},
            {"path": "/x", "kind": "ephemeral"},
            {"path": "/x", "kind": "ttl"},
            {"path": "/x", "acl": "all"},
            {"path": "/x", "acl": [{"scheme": "world", "id": "anyone", "permissions": ["fly"]}]},
        ):
            assert (await browser.post("/api/create", wrong)).status == 400

    run(story)


def test_a_conflict_shows_what_is_there() -> None:
    async def story(stage: Stage, client: Client) -> None:
        browser = await stage.browser()
        await client.create("/app", b"v1")
        await client.set("/app", b"theirs")
        fields: dict[str, Any] = {"path": "/app", "data": b64(b"mine"), "version": 0}
        answer = await browser.post("/api/set", fields)
        assert answer.status == 409
        current = answer.json()["current"]
        assert base64.b64decode(current["data"]) == b"theirs"
        assert current["stat"]["version"] == 1
        assert (await client.get("/app")).data == b"theirs"
        del fields["version"]
        assert (await browser.post("/api/set", fields)).status == 400
        await client.delete("/app")
        gone = await browser.post("/api/set", {**fields, "version": 1})
        assert (gone.status, gone.json()["current"]) == (409, None)

    run(story)


def test_a_tree_is_deleted_as_it_was_previewed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(stage: Stage, client: Client) -> None:
        browser = await stage.browser()
        await client.create("/app/a", b"xyz", make_parents=True)
        await client.create("/app/b", ephemeral=True)
        preview = (await browser.post("/api/delete", {"path": "/app", "preview": True})).json()
        assert preview == {
            "count": 3,
            "paths": ["/app", "/app/a", "/app/b"],
            "ephemeral_count": 1,
            "data_bytes": 3,
            "version": 0,
            "is_complete": True,
        }
        assert await client.exists("/app/a") is not None
        plain = await browser.post("/api/delete", {"path": "/app", "version": 0})
        assert plain.status == 409
        await client.create("/app/c")
        whole = {"path": "/app", "version": 0, "is_recursive": True, "count": 3}
        assert (await browser.post("/api/delete", whole)).status == 409
        assert await client.exists("/app/c") is not None
        answer = await browser.post("/api/delete", {**whole, "count": 4})
        assert (answer.status, answer.json()) == (200, {"count": 4})
        assert await client.exists("/app") is None
        for kept in ("/", "/zookeeper"):
            assert (await browser.post("/api/delete", {"path": kept, "version": 0})).status == 400
        monkeypatch.setattr(writing, "COUNTED_MAX", 1)
        await client.create("/many/below", make_parents=True)
        many = await browser.post("/api/delete", {"path": "/many", "preview": True})
        assert many.json()["is_complete"] is False
        many = await browser.post("/api/delete", {**whole, "path": "/many", "count": 1})
        assert many.status == 409
        assert await client.exists("/many/below") is not None

    run(story)


def test_an_acl_is_replaced_and_the_service_decides_who_may(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(stage: Stage, client: Client) -> None:
        browser = await stage.browser()
        await client.create("/app", b"v1")
        readers = [{"scheme": "world", "id": "anyone", "permissions": ["read"]}]
        answer = await browser.post("/api/acl", {"path": "/app", "acl": readers, "version": 0})
        assert answer.json()["stat"]["aversion"] == 1
        acl, _ = await client.get_acl("/app")
        assert acl == [ACL(Permission.READ, Identity("world", "anyone"))]
        refused = await browser.post("/api/set", {"path": "/app", "data": "", "version": 0})
        assert refused.status == 403
        await browser.post("/api/identity", {"scheme": "digest", "credentials": "alice:secret"})
        await browser.post("/api/create", {"path": "/line\u2028break", "data": b64(b"secret")})

    with caplog.at_level(logging.INFO, "paddock.dashboard.audit"):
        run(story)
    lines = [one.getMessage() for one in caplog.records if one.name.endswith(".audit")]
    assert [line.split("operation=")[1] for line in lines] == [
        "set_acl path='/app' result=success",
        "set path='/app' result=NoAuthError",
        "create path='/line\\u2028break' result=success",
    ]
    assert "digest:alice" in lines[2]
    assert "browser=1 ip=127.0.0.1" in lines[2]
    assert "secret" not in "".join(lines)

"""The dashboard of a service that serves users of SASL only."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from paddock import ACL, Identity, KerberosCredentials, Permission, SaslCredentials, connect
from paddock.dashboard import people
from paddock.dashboard.people import Service
from paddock.server.config.config import ServerConfig
from paddock.testing import EmbeddedServer
from tests.support.asgi import Browser, awaited, until
from tests.support.dashboard import dashboard
from tests.support.judges import skipped_where_missing
from tests.support.kerberos import REALM, Kdc, KerberosPaddock, within
from tests.support.sasl import ALICE, BOB, JAAS

REFUSED = "The service refuses these credentials."


def strict(folder: Path) -> ServerConfig:
    jaas = folder / "jaas.conf"
    jaas.write_text(JAAS)
    jaas.chmod(0o600)
    return ServerConfig(port=0, jaas_file=jaas, require_sasl=True)


def login(user: tuple[str, str]) -> dict[str, str]:
    return {"scheme": "sasl", "credentials": ":".join(user)}


async def names_of(browser: Browser) -> list[str]:
    names: list[str] = (await browser.get("/api/about")).json()["identity"]["names"]
    return [one for one in names if not one.startswith("ip:")]


def test_a_person_logs_in_where_nobody_else_is_served(tmp_path: Path) -> None:
    async def main() -> None:
        config = strict(tmp_path)
        async with EmbeddedServer(config=config) as server, dashboard(server.hosts) as stage:
            async with connect(server.hosts, sasl=SaslCredentials(*ALICE)) as client:
                hers = [ACL(Permission.ALL, Identity("sasl", "alice"))]
                await client.create("/hers", b"v1", acl=hers)
            browser, other = await stage.browser(), await stage.browser()
            # The page can be shown, and says what to do.
            assert await names_of(browser) == []
            refused = await browser.get("/api/children", path="/")
            assert refused.status == 503
            assert refused.json()["error"] == "The service serves only those who have logged in."

            async with browser.live("/") as events:
                await awaited(events, "state", connected=False, refused=True)
            answer = await browser.post("/api/identity", login(ALICE))
            assert "sasl:alice" in answer.json()["names"]
            assert (await browser.get("/api/node", path="/hers")).json()["data"] is not None
            async with browser.live("/") as events:
                await awaited(events, "state", connected=True, refused=False)
            assert await names_of(other) == []
            # A connection has one user of SASL: the last one that was entered.
            answer = await browser.post("/api/identity", login(BOB))
            assert await names_of(browser) == ["sasl:bob"]
            assert (await browser.get("/api/node", path="/hers")).json()["hidden"]

            wrong = await browser.post("/api/identity", login(("alice", "guessed")))
            assert (wrong.status, wrong.json()["error"]) == (
                403,
                f"{REFUSED} SASL as 'alice': the server did not accept user and password.",
            )
            assert await names_of(browser) == ["sasl:bob"]
            for credentials in ("alice", ":secret", "alice:"):
                body: dict[str, Any] = {"scheme": "sasl", "credentials": credentials}
                assert (await browser.post("/api/identity", body)).status == 400
            assert (await browser.post("/api/identity", {})).json()["names"] == []
            assert (await browser.get("/api/children", path="/")).status == 503

    asyncio.run(main())


def test_the_user_of_the_command_line_is_everybodys_until_another_is_entered(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with EmbeddedServer(config=strict(tmp_path)) as server:
            service = Service(server.hosts, sasl=SaslCredentials(*BOB))
            async with dashboard(server.hosts, service=service) as stage:
                browser = await stage.browser()
                assert await names_of(browser) == ["sasl:bob"]
                await browser.post("/api/identity", {"scheme": "digest", "credentials": "carol:c"})
                assert await names_of(browser) == ["sasl:bob", "digest:carol"]
                await browser.post("/api/identity", login(ALICE))
                assert await names_of(browser) == ["sasl:alice", "digest:carol"]
                await browser.post("/api/identity", {})
                assert await names_of(browser) == ["sasl:bob"]

    asyncio.run(main())


def test_a_wrong_password_of_the_command_line_is_told_and_tried_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people, "_REFUSED_SECONDS", 0.0)

    async def main() -> None:
        async with EmbeddedServer(config=strict(tmp_path)) as server:
            service = Service(server.hosts, sasl=SaslCredentials("bob", "guessed"))
            async with dashboard(server.hosts, service=service) as stage:
                base = stage.dashboard.people.base
                assert base._keeper is not None
                await asyncio.wait((base._keeper,))
                browser = await stage.browser()
                assert await names_of(browser) == []
                away = (await browser.get("/api/children", path="/")).json()["error"]
                assert away.startswith(f"{REFUSED} SASL as 'bob': the server did not accept")
                await browser.post("/api/identity", login(ALICE))
                assert await names_of(browser) == ["sasl:alice"]

    with caplog.at_level(logging.WARNING, "paddock.dashboard"):
        asyncio.run(main())
    [told] = [one.message for one in caplog.records if one.name == people.logger.name]
    assert REFUSED in told
    assert "guessed" not in told


@pytest.mark.judge
@pytest.mark.long
def test_by_kerberos_it_goes_on_once_there_is_a_ticket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "_REFUSED_SECONDS", 0.05)

    async def main(kdc: Kdc, server: KerberosPaddock, tickets: Path) -> None:
        service = Service(server.hosts, sasl=KerberosCredentials())
        async with dashboard(server.hosts, service=service) as stage:
            browser = await stage.browser()
            away = (await browser.get("/api/children", path="/")).json()["error"]
            assert "there is no ticket: run kinit" in away
            await asyncio.to_thread(kdc.renew, tickets, "alice")
            await until(lambda: stage.dashboard.people.base.is_connected)
            assert await names_of(browser) == [f"sasl:alice@{REALM}"]
            # What a person enters beside it is refused for good.
            wrong = await browser.post("/api/identity", {"scheme": "nosuch", "credentials": "x"})
            assert wrong.status == 403

    with skipped_where_missing(), Kdc() as kdc, KerberosPaddock(kdc) as server:
        tickets = kdc.folder / "later"
        with within(kdc.environment(tickets)):
            asyncio.run(main(kdc, server, tickets))

"""Locks, deadlocks and ended sessions in a browser, while they happen."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator

from paddock.sync import Client
from paddock.sync.recipes import Lock
from tests.support import requests as rq
from tests.support import wire
from tests.support.command import serving
from tests.support.dashboard_page import DashboardPage
from tests.support.dashboard_stage import Stage, dashboard_of


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("coordination")
    with serving(
        "--data", folder / "data", "--port", "0", "--min-session-timeout-ms", "400"
    ) as server:
        hosts = "{}:{}".format(*server.address)
        with dashboard_of(hosts, folder, "--data", folder / "data") as stage:
            yield stage


@pytest.fixture(scope="module")
def page(stage: Stage, browser: Browser) -> Iterator[DashboardPage]:
    page = DashboardPage(browser, stage.link())
    yield page
    assert page.complaints == []


def lock_of(stage: Stage, client: Client, path: str) -> Lock:
    return stage.run(lambda: Lock(client, path))


def session_of(client: Client) -> str:
    return f"0x{client.session_id:x}"


def recipe(page: DashboardPage, path: str) -> Locator:
    """Return the card of a recipe."""
    return page.page.locator(".recipe").filter(has=page.page.get_by_role("link", name=path))


def wait_line(page: DashboardPage, path: str, *clients: Client) -> None:
    """Wait until a lock is held by the first of them, and the others wait for it in this order."""
    for place, client in enumerate(clients):
        recipe(page, path).locator("li").nth(place).filter(has_text=session_of(client)).wait_for()
    recipe(page, path).locator("li").nth(len(clients)).wait_for(state="detached")


def test_a_lock_is_handed_over(stage: Stage, page: DashboardPage) -> None:
    page.choose("coordination")
    first, second, third = (stage.client() for _ in range(3))
    held = stage.run(lock_of(stage, first, "/locks/door").acquire)
    wait_line(page, "/locks/door", first)
    for client in (second, third):
        stage.start(lock_of(stage, client, "/locks/door").acquire)
        wait_line(page, "/locks/door", first, *((second,) if client is second else (second, third)))
    stage.run(held.release)
    wait_line(page, "/locks/door", second, third)
    # The one who holds it goes without a word.
    stage.run(second.close)
    wait_line(page, "/locks/door", third)
    # Where each is connected from, and the way to its session.
    line = recipe(page, "/locks/door").locator("li").first
    assert "127.0.0.1:" in line.inner_text()
    line.get_by_role("link").click()
    heading = page.page.get_by_role("heading", name=f"Session {session_of(third)}")
    heading.wait_for()
    page.page.locator(".paths a", has_text="/locks/door/").wait_for()
    stage.run(third.close)


def test_a_deadlock_appears_and_is_gone_when_a_session_ends(
    stage: Stage, page: DashboardPage
) -> None:
    page.choose("coordination")
    one, two = stage.client(), stage.client()
    stage.run(lock_of(stage, one, "/locks/left").acquire)
    stage.run(lock_of(stage, two, "/locks/right").acquire)
    waiting = stage.start(lock_of(stage, one, "/locks/right").acquire)
    wait_line(page, "/locks/right", two, one)
    assert page.page.locator(".deadlocks .notice").count() == 0
    stage.start(lock_of(stage, two, "/locks/left").acquire)
    notice = page.page.locator(".deadlocks .notice")
    notice.wait_for()
    assert {session_of(one), session_of(two)} == set(notice.get_by_role("link").all_inner_texts())
    assert page.page.locator("svg.waits .box.bad").count() == 2
    assert sorted(page.page.locator("svg.waits .wait-label").all_text_contents()) == [
        "left",
        "right",
    ]
    page.choose("overview")
    page.page.locator(".problems .what", has_text="wait for each other").wait_for()
    page.page.locator(".problems").get_by_role("link", name="Show").click()
    notice.wait_for()
    stage.run(two.close)
    notice.wait_for(state="detached")
    wait_line(page, "/locks/right", one)
    assert waiting.result(60).is_held


def test_it_is_found_why_a_session_has_ended(stage: Stage, page: DashboardPage) -> None:
    host, port = stage.hosts.split(":")
    with wire.connect((host, int(port)), timeout_ms=400) as lost:
        assert lost.call(rq.create("/worker", flags=1)).err == 0
        session = f"0x{lost.session_id:x}"
    # Only its connection was closed.
    closed = stage.client()
    stage.run(closed.close)
    page.choose("sessions")
    ended = page.page.get_by_role("table", name="Sessions that ended lately")
    row = ended.get_by_role("row").filter(has_text=session)
    row.locator(".badge", has_text="gone").wait_for()
    assert "did not come back" in row.inner_text()
    other = ended.get_by_role("row").filter(has_text=session_of(closed))
    other.locator(".badge", has_text="closed").wait_for()
    # The filter leaves one of them, and its story tells what went with it.
    page.page.get_by_label("Filter by session").fill(session)
    other.wait_for(state="detached")
    row.get_by_role("link").click()
    page.page.locator(".notice", has_text="Ended: gone").wait_for()
    page.page.locator(".story li", has_text="/worker").first.wait_for()

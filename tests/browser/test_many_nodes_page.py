"""A node with 100,000 children in a browser: opened, walked to its end, searched, and live."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from paddock.sync import Client
from tests.support.command import serving
from tests.support.dashboard_page import DashboardPage
from tests.support.dashboard_stage import Stage, dashboard_of

MANY = 100_000
AT_ONCE = 5_000
# What fits on the screen, and a little more.
ROWS_MAX = 60
# Counts the rows whenever some are added, so that none is missed in between.
COUNTING = """() => {
    window.mostRows = 0;
    new MutationObserver(() => {
        const rows = document.querySelectorAll("[role=treeitem]").length;
        window.mostRows = Math.max(window.mostRows, rows);
    }).observe(document.querySelector(".tree"), {childList: true, subtree: true});
}"""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with serving("--memory", "--port", "0") as server:
        hosts = "{}:{}".format(*server.address)
        with dashboard_of(hosts, tmp_path_factory.mktemp("many")) as stage:
            stage.call(fill)
            yield stage


def fill(client: Client) -> None:
    client.create("/many")
    for first in range(0, MANY, AT_ONCE):
        with client.transaction() as transaction:
            for number in range(first, first + AT_ONCE):
                transaction.create(f"/many/node-{number:06}")


def test_a_hundred_thousand_children_are_browsed(stage: Stage, browser: Browser) -> None:
    page = DashboardPage(browser, stage.link())
    asked: list[str] = []
    page.page.on("request", lambda request: asked.append(request.url))
    page.select("/many")
    page.page.evaluate(COUNTING)
    assert page.row("many").locator(".tree-count").inner_text().split()[0] == "100,000"
    page.page.locator(".tree").focus()
    page.page.keyboard.press("ArrowRight")
    page.row("node-000003").wait_for()
    # To the end, and to the middle: a page of names is read for each, not those between.
    page.page.keyboard.press("End")
    page.row("zookeeper").wait_for()
    page.row("node-099999").wait_for()
    page.select("/many/node-050000")
    assert page.row("node-050000").get_attribute("aria-posinset") == "50001"
    assert page.row("node-050000").get_attribute("aria-setsize") == "100000"
    for _ in range(20):
        page.page.keyboard.press("PageDown")
    # The server searches, a part at a time, and what is found comes at once.
    page.page.keyboard.press("/")
    page.page.locator(".tree-view input[type=search]:focus").fill("E-007777")
    page.page.locator(".found a", has_text="/many/node-007777").click()
    page.page.locator(".tree [aria-selected=true]", has_text="node-007777").wait_for()
    # What changes among them is seen as it happens.
    stage.call(lambda client: client.create("/many/node-007777-b", b"new"))
    page.row("node-007777-b").wait_for()
    stage.call(lambda client: client.delete("/many/node-007778"))
    page.row("node-007778").wait_for(state="detached")
    assert 0 < page.page.evaluate("window.mostRows") <= ROWS_MAX
    pages = [url for url in asked if "/api/children" in url]
    assert 0 < len(pages) < 60
    assert page.complaints == []
    page.close()

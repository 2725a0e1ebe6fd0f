"""The same walk on Apache ZooKeeper: what it cannot tell is left out, and the page says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from paddock.sync.recipes import Lock
from tests.support.dashboard_page import DashboardPage
from tests.support.dashboard_stage import Stage, dashboard_of
from tests.support.server import Server, named_release

pytestmark = pytest.mark.judge
ROOT = "/page-walk"


@pytest.fixture
def stage(shared_apache: Server, tmp_path: Path) -> Iterator[Stage]:
    with dashboard_of(shared_apache.hosts, tmp_path, "--allow-writes") as stage:
        stage.call(lambda client: client.create(ROOT, b"first"))
        yield stage
        stage.call(lambda client: client.delete_tree(ROOT))


def test_the_walk_on_apache_zookeeper(
    shared_apache: Server, stage: Stage, browser: Browser
) -> None:
    page = DashboardPage(browser, stage.link())
    page.page.locator("#service", has_text=f"ZooKeeper {named_release(shared_apache)}").wait_for()
    page.page.locator(".badge", has_text="standalone").wait_for()
    # Its figures have what the charts show.
    page.page.get_by_role("region", name="Latency").locator(".key", has_text="99 %").wait_for()

    page.select(ROOT)
    page.wait_data("first")
    stage.call(lambda client: client.set(ROOT, b"second"))
    page.wait_data("second")
    assert page.page.locator("details.past").is_hidden()
    page.press("Set data…")
    page.dialog().get_by_label("Data").fill("mine")
    stage.call(lambda client: client.set(ROOT, b"theirs"))
    page.press("Set")
    page.page.locator(".conflict .both", has_text="theirs").wait_for()
    page.press("Overwrite it with mine")
    page.wait_dialog_closed()
    assert stage.call(lambda client: client.get(ROOT).data) == b"mine"
    assert page.search("page-walk") == [ROOT]

    page.choose("coordination")
    first, second = stage.client(), stage.client()
    sessions = [f"0x{one.session_id:x}" for one in (first, second)]
    held = stage.run(stage.run(lambda: Lock(first, f"{ROOT}/lock")).acquire)
    stage.start(stage.run(lambda: Lock(second, f"{ROOT}/lock")).acquire)
    line = page.page.locator(".recipe", has_text=f"{ROOT}/lock").locator("li")
    line.nth(1).filter(has_text=sessions[1]).wait_for()
    stage.run(held.release)
    line.first.filter(has_text=sessions[1]).wait_for()
    line.nth(1).wait_for(state="detached")

    line.first.get_by_role("link").click()
    page.page.get_by_text("This service has none, or it does not go back that far").wait_for()
    page.choose("sessions")
    page.page.get_by_role("row").filter(has_text=sessions[1]).wait_for()
    page.page.locator(".lacking:visible", has_text="why others ended").wait_for()
    page.choose("time")
    page.page.locator(".empty", has_text="--data").wait_for()
    assert page.violations() == []
    assert page.complaints == []
    page.close()

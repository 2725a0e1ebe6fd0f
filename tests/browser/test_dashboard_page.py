"""A walk through the dashboard in a real browser, on a server with history."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import TypeVar

import pytest

from paddock.sync import Client, connect
from tests.support.command import COMMAND, DEADLINE_S, serving
from tests.support.dashboard_page import CHROMIUM, PHONE, DashboardPage, chromium

if find_spec("paddock.dashboard.app") is None or not CHROMIUM.exists():
    pytest.skip("needs the dashboard, and Debian's chromium", allow_module_level=True)

T = TypeVar("T")

LINK = re.compile(r"http://\S+/login\?token=\S+")
MANY = 3000
HOSTILE = (
    "<script>alert(1)<\u2215script>",
    "<img src=x onerror=alert(1)>",
    "\u05e9\u05dc\u05d5\u05dd",
    " edges ",
    "x" * 20_000,
)


class Stage:
    """A server with its dashboard, and a client of it."""

    def __init__(
        self, client: Client, process: subprocess.Popen[str], thread: ThreadPoolExecutor
    ) -> None:
        self._client = client
        self._process = process
        self._thread = thread

    def call(self, work: Callable[[Client], T]) -> T:
        """Let the client do something, in a thread where no event loop runs."""
        return self._thread.submit(work, self._client).result(DEADLINE_S)

    def link(self) -> str:
        """Return the next link that the dashboard prints."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if (match := LINK.search(line)) is not None:
                return match[0]
        raise AssertionError("it has ended without a link")


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    data = tmp_path_factory.mktemp("dashboard") / "data"
    with serving("--data", data, "--port", "0") as server:
        hosts = "{}:{}".format(*server.address)
        process = subprocess.Popen(
            [
                *(*COMMAND, "dashboard", "--server", hosts, "--port", "0", "--no-open"),
                *("--allow-writes", "--data", str(data)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            with connect(hosts) as client, ThreadPoolExecutor(1) as thread:
                stage = Stage(client, process, thread)
                stage.call(fill)
                yield stage
        finally:
            process.terminate()
            process.communicate(timeout=DEADLINE_S)


def fill(client: Client) -> None:
    for path, data in {
        "/config": b"",
        "/config/app.json": json.dumps({"name": "shop", "rate": 120}).encode(),
        "/config/motd": b"first",
        "/hostile": b"",
        "/many": b"",
    }.items():
        client.create(path, data)
    for name in HOSTILE:
        client.create(f"/hostile/{name}", b"<b>bold</b>\x1b[2J")
    with client.transaction() as transaction:
        for number in range(MANY):
            transaction.create(f"/many/node-{number:05}")


@pytest.fixture(scope="module")
def page(stage: Stage) -> Iterator[DashboardPage]:
    with chromium() as browser:
        page = DashboardPage(browser, stage.link())
        yield page
        assert page.complaints == []


def test_many_children_are_walked_by_keys_and_only_some_are_in_the_page(
    page: DashboardPage,
) -> None:
    page.select("/many")
    page.page.locator(".tree").focus()
    page.page.keyboard.press("ArrowRight")
    page.row("node-00003").wait_for()
    page.page.keyboard.press("ArrowDown")
    page.page.keyboard.press("End")
    page.row("zookeeper").wait_for()
    assert page.page.locator("[role=treeitem]").count() < 100
    page.select("/many/node-01500")
    assert page.row("node-01500").get_attribute("aria-posinset") == "1501"


def test_a_change_is_seen_at_once(page: DashboardPage, stage: Stage) -> None:
    page.select("/config/motd")
    page.wait_data("first")
    stage.call(lambda client: client.set("/config/motd", b"second"))
    page.wait_data("second")
    stage.call(lambda client: client.create("/config/fresh", b"x"))
    page.row("fresh").wait_for()
    stage.call(lambda client: client.delete("/config/fresh"))
    page.row("fresh").wait_for(state="detached")


def test_hostile_names_and_data_are_text(page: DashboardPage, stage: Stage) -> None:
    page.select("/hostile/" + HOSTILE[0])
    assert page.row(HOSTILE[0]).count() == 1
    assert page.row(HOSTILE[1]).count() == 1
    assert "<b>bold</b>\\x1b[2J" in page.data()
    assert page.page.locator(".tree img, .node img, .data b").count() == 0
    assert page.row("20 kB in all").count() == 1
    assert page.row("·edges·").count() == 1
    assert page.complaints == []


def test_a_search_finds_names_below_the_root(page: DashboardPage) -> None:
    page.show("overview")
    assert page.search("app.js") == ["/config/app.json"]
    page.page.locator(".found a").click()
    page.page.locator(".tree [aria-selected=true]", has_text="app.json").wait_for()


def test_a_write_with_an_old_version_shows_both(page: DashboardPage, stage: Stage) -> None:
    page.select("/config/app.json")
    page.press("Set data…")
    page.dialog().get_by_label("Data").fill("mine")
    stage.call(lambda client: client.set("/config/app.json", b"theirs"))
    page.press("Set")
    page.page.locator(".conflict .both", has_text="theirs").wait_for()
    page.press("Overwrite it with mine")
    page.wait_dialog_closed()
    page.wait_data("mine")
    assert stage.call(lambda client: client.get("/config/app.json").data) == b"mine"


def test_a_delete_says_first_what_goes(page: DashboardPage, stage: Stage) -> None:
    stage.call(lambda client: client.create("/doomed", b""))
    stage.call(lambda client: client.create("/doomed/child", b""))
    page.select("/doomed")
    page.press("Delete…")
    page.dialog().locator(".preview", has_text="/doomed/child").wait_for()
    page.press("Delete 2 nodes")
    page.wait_dialog_closed()
    page.row("doomed").wait_for(state="detached")
    assert stage.call(lambda client: client.exists("/doomed")) is None


def test_a_node_is_shown_as_it_was_after_a_write(page: DashboardPage, stage: Stage) -> None:
    stage.call(lambda client: client.create("/past", b"old"))
    stage.call(lambda client: client.set("/past", b"new"))
    page.select("/past")
    page.wait_data("new")
    page.page.locator("details.past summary").first.click()
    page.page.locator("details.change").nth(1).locator("summary").click()
    page.page.locator("details.change[open] a", has_text="right after it").click()
    page.wait_data("old")
    assert page.page.get_by_role("button", name="Set data…").count() == 0
    page.back_to_now()
    page.wait_data("new")


@pytest.mark.parametrize("view", ["overview", "tree", "coordination", "sessions", "time"])
def test_no_view_keeps_anybody_out(page: DashboardPage, view: str) -> None:
    page.show(view)
    page.page.locator(".reading[aria-busy=true]:visible").first.wait_for(state="hidden")
    assert page.violations() == []
    assert page.scroll_overflow() <= 0


def test_a_second_browser_on_a_phone_sees_the_same(stage: Stage, page: DashboardPage) -> None:
    browser = page.page.context.browser
    assert browser is not None
    phone = DashboardPage(browser, stage.link(), PHONE, is_dark=True)
    phone.show("tree", path="/config/motd")
    phone.wait_data(stage.call(lambda client: client.get("/config/motd").data).decode())
    assert phone.scroll_overflow() <= 0
    phone.press("‹ Tree")
    phone.row("config").wait_for()
    phone.close()
    assert phone.complaints == []

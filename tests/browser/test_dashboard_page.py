"""A walk through the dashboard in a real browser, on a server with history."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from paddock.sync import Client
from paddock.sync.recipes import Lock
from tests.support.command import serving
from tests.support.dashboard_page import PHONE, DashboardPage
from tests.support.dashboard_stage import Stage, dashboard_of

MANY = 3000
MARKUP = "<img src=x onerror=alert(1)>"
HOSTILE = (
    "<script>alert(1)<\u2215script>",
    MARKUP,
    "\u05e9\u05dc\u05d5\u05dd",
    "\u202egnp.exe\u2028\u200b",
    " edges ",
    "x" * 20_000,
)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("dashboard")
    with serving("--data", folder / "data", "--port", "0") as server:
        hosts = "{}:{}".format(*server.address)
        with dashboard_of(hosts, folder, "--allow-writes", "--data", folder / "data") as stage:
            stage.call(fill)
            yield stage


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
def page(stage: Stage, browser: Browser) -> Iterator[DashboardPage]:
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
    # What turns texts around, and what cannot be seen, is a sign.
    assert page.row("[U+202E]gnp.exe[U+2028][U+200B]").count() == 1
    assert page.complaints == []


def test_a_name_of_a_megabyte_is_cut(page: DashboardPage, stage: Stage) -> None:
    name = "x" * 1_000_000
    stage.call(lambda client: client.create(f"/huge/{name}", make_parents=True))
    page.select("/huge")
    page.row("huge").locator(".toggle.closed").click()
    page.row("1 MB in all").click()
    page.page.locator(".node .empty", has_text="too long to ask for").wait_for()
    assert page.scroll_overflow() <= 0
    stage.call(lambda client: client.delete_tree("/huge"))
    page.select("/config/motd")
    page.row("huge").wait_for(state="detached")


def test_hostile_names_change_no_view(page: DashboardPage, stage: Stage) -> None:
    client = stage.client()
    stage.run(lambda: client.add_auth("digest", f"{MARKUP}:secret".encode()))
    stage.run(stage.run(lambda: Lock(client, f"/hostile/\u202e{MARKUP}")).acquire)
    session = f"0x{client.session_id:x}"
    page.show("coordination")
    shown = page.page.locator(".recipe", has_text=f"[U+202E]{MARKUP}")
    shown.locator("li", has_text=session).wait_for()
    page.show("sessions")
    page.page.get_by_role("row").filter(has_text=f"digest:{MARKUP}").wait_for()
    page.show("sessions", id=session)
    page.page.locator(".paths a", has_text=MARKUP).wait_for()
    page.page.locator(".story li").first.wait_for()
    for strange in (MARKUP, f"/{MARKUP}", "\u202e", "/" + "x" * 5_000):
        for view in ("tree", "sessions", "time", "coordination"):
            page.show(view, path=strange, id=strange, at=strange)
    page.show("overview")
    page.page.locator(".badge", has_text="standalone").wait_for()
    assert page.page.locator("main img, main b, main script, [onerror]").count() == 0
    assert page.scroll_overflow() <= 0
    assert page.complaints == []
    stage.run(client.close)


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


def test_a_second_browser_on_a_phone_sees_the_same(stage: Stage, browser: Browser) -> None:
    phone = DashboardPage(browser, stage.link(), PHONE, is_dark=True)
    phone.show("tree", path="/config/motd")
    phone.wait_data(stage.call(lambda client: client.get("/config/motd").data).decode())
    assert phone.scroll_overflow() <= 0
    phone.press("‹ Tree")
    phone.row("config").wait_for()
    phone.close()
    assert phone.complaints == []

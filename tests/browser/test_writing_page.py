"""Writing in a browser: with and without the right to, and what the logs say of who it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from paddock import ACL, Identity, Permission
from paddock.sync import Client
from tests.support.command import serving
from tests.support.dashboard_page import DashboardPage
from tests.support.dashboard_stage import Stage, dashboard_of

LONG = "a line of thirty characters...\n" * 2000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("writing")


@pytest.fixture(scope="module")
def stage(folder: Path) -> Iterator[Stage]:
    with serving("--data", folder / "data", "--port", "0", "--audit-enabled") as server:
        hosts = "{}:{}".format(*server.address)
        with dashboard_of(hosts, folder, "--allow-writes") as stage:
            stage.call(fill)
            yield stage


def fill(client: Client) -> None:
    client.add_auth("digest", b"alice:secret")
    hers = [ACL(Permission.ALL, Identity("auth", ""))]
    client.create("/private", b"hers", acl=hers)
    client.create("/open", b"first")
    client.create("/long", b"short")
    client.create("/windows", b"one\r\ntwo\r\n")


@pytest.fixture(scope="module")
def page(stage: Stage, browser: Browser) -> Iterator[DashboardPage]:
    page = DashboardPage(browser, stage.link())
    yield page
    assert page.complaints == []


def test_who_has_no_right_reads_and_writes_nothing_until_a_password_is_given(
    stage: Stage, page: DashboardPage, folder: Path
) -> None:
    page.show("tree", path="/private")
    page.page.locator(".node", has_text="You may not read the rights of this node").wait_for()
    assert "hers" not in page.page.locator(".node").inner_text()
    page.press("Create a child…")
    page.dialog().get_by_label("Name, below").fill("child")
    page.press("Create")
    page.dialog().locator(".problem-text", has_text=".").wait_for()
    page.press("Cancel")
    page.log_in("alice", "secret")
    page.wait_dialog_closed()
    page.wait_data("hers")
    page.press("Create a child…")
    page.dialog().get_by_label("Name, below").fill("child")
    page.press("Create")
    page.wait_dialog_closed()
    page.select("/private/child")
    lines = [line for line in stage.log().splitlines() if "operation=create" in line]
    assert [line.rpartition("result=")[2] for line in lines] == ["NoAuthError", "success"]
    assert ["digest:alice" in line for line in lines] == [False, True]
    # The server says the same in its own words.
    audit = (folder / "data" / "audit.log").read_text().splitlines()
    [theirs] = [line for line in audit if "znode=/private/child" in line and "success" in line]
    assert "alice" in theirs
    assert "secret" not in stage.log() + theirs
    page.show("tree", path="/private")
    page.wait_data("hers")
    page.page.click("#identity")
    page.press("Forget what was entered")
    page.wait_dialog_closed()
    page.page.locator(".node", has_text="You may not read the rights of this node").wait_for()


def test_rights_are_changed_and_a_conflict_shows_both(stage: Stage, page: DashboardPage) -> None:
    page.select("/open")
    page.press("Change rights…")
    row = page.dialog().locator(".acl-row").first
    row.get_by_label("write").uncheck()
    readers = [ACL(Permission.READ | Permission.ADMIN, Identity("world", "anyone"))]
    stage.call(lambda client: client.set_acl("/open", readers))
    page.press("Set these rights")
    page.dialog().locator(".conflict li", has_text="may read and change rights").wait_for()
    assert row.get_by_label("delete").is_checked()
    page.press("Set these rights")
    page.wait_dialog_closed()
    page.page.locator(".acl li", has_text="may read, create children, delete children").wait_for()
    page.press("Set data…")
    page.dialog().get_by_label("Data").fill("second")
    page.press("Set")
    page.dialog().locator(".problem-text", has_text=".").wait_for()
    page.press("Cancel")
    assert stage.call(lambda client: client.get("/open").data) == b"first"


def test_what_is_taken_over_from_a_conflict_is_whole(stage: Stage, page: DashboardPage) -> None:
    page.select("/long")
    page.wait_data("short")
    page.press("Set data…")
    page.dialog().get_by_label("Data").fill("mine")
    stage.call(lambda client: client.set("/long", LONG.encode()))
    page.press("Set")
    page.press("Take what is there now")
    assert page.dialog().get_by_label("Data").input_value() == LONG
    page.press("Set")
    page.wait_dialog_closed()
    data, stat = stage.call(lambda client: client.get("/long"))
    assert (data, stat.version) == (LONG.encode(), 2)


def test_data_that_a_text_field_would_change_is_not_edited(page: DashboardPage) -> None:
    page.select("/windows")
    page.press("Set data…")
    page.dialog().get_by_text("carriage return").wait_for()
    page.press("Close")
    page.wait_dialog_closed()


def test_without_allow_writes_there_is_nothing_to_press_and_nothing_is_done(
    stage: Stage, browser: Browser, tmp_path: Path
) -> None:
    with dashboard_of(stage.hosts, tmp_path) as other:
        page = DashboardPage(browser, other.link())
        page.select("/long")
        assert page.page.locator(".node .actions button").count() == 0
        status = page.page.evaluate(
            """async () => (await fetch("/api/delete", {
                method: "POST",
                headers: {"Content-Type": "application/json", "X-Paddock-Dashboard": "1"},
                body: JSON.stringify({path: "/long", version: -1}),
            })).status"""
        )
        assert status == 403
        assert stage.call(lambda client: client.exists("/long")) is not None
        # It was told of no data folder, and the server has no words for it.
        page.choose("sessions")
        page.page.locator(".empty", has_text="does not tell who is there").wait_for()
        page.page.locator(".lacking:visible code", has_text="--data").wait_for()
        assert "`" not in page.page.locator("main").inner_text()
        page.close()
        assert page.complaints == []

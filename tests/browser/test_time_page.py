"""The past in a browser: the slider, every view at that moment, and what changed between two."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser

from paddock.sync import Client
from paddock.sync.recipes import Lock
from tests.support.command import serving
from tests.support.dashboard_page import DashboardPage
from tests.support.dashboard_stage import Stage, dashboard_of


@dataclass(frozen=True, slots=True)
class Lived:
    """A service with a past: at `then`, one client held a lock that another one holds now."""

    stage: Stage
    then: int
    holder: str
    successor: str


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lived]:
    folder = tmp_path_factory.mktemp("time")
    with serving("--data", folder / "data", "--port", "0") as server:
        hosts = "{}:{}".format(*server.address)
        with dashboard_of(hosts, folder, "--data", folder / "data", "--allow-writes") as stage:
            yield live(stage)


def live(stage: Stage) -> Lived:
    first, second = stage.client(), stage.client()

    def begin(client: Client) -> None:
        client.create("/config", b'{"rate": 1}')
        client.create("/config/old", b"going")

    def go_on(client: Client) -> None:
        client.set("/config", b'{"rate": 2}')
        client.delete("/config/old")
        client.create("/config/new", b"fresh")

    stage.call(begin)
    stage.run(stage.run(lambda: Lock(first, "/locks/door")).acquire)
    # The slider has whole seconds: everything until now is before the next one, what follows after.
    then = int(time.time()) + 1
    while time.time() < then + 0.01:
        time.sleep(then + 0.01 - time.time())
    stage.call(go_on)
    stage.run(first.close)
    stage.run(stage.run(lambda: Lock(second, "/locks/door")).acquire)
    return Lived(stage, then, *(f"0x{one.session_id:x}" for one in (first, second)))


@pytest.fixture(scope="module")
def page(lived: Lived, browser: Browser) -> Iterator[DashboardPage]:
    page = DashboardPage(browser, lived.stage.link())
    yield page
    assert page.complaints == []


def test_the_slider_takes_every_view_to_its_moment_and_back(
    lived: Lived, page: DashboardPage
) -> None:
    page.select("/config")
    page.wait_data('"rate": 2')
    page.choose("time")
    page.page.get_by_label("Moment", exact=True).fill(str(lived.then))
    page.page.locator(".time-bar", has_text="You look at the past").wait_for()
    page.choose("tree")
    page.row("config").locator(".toggle.closed").click()
    page.row("old").wait_for()
    assert page.row("new").count() == 0
    page.row("config").click()
    page.wait_data('"rate": 1')
    assert page.page.get_by_role("button", name="Set data…").count() == 0
    page.choose("coordination")
    page.page.locator(".recipe li", has_text=lived.holder).wait_for()
    assert page.page.locator(".recipe li", has_text=lived.successor).count() == 0
    page.choose("sessions")
    page.page.get_by_role("row").filter(has_text=lived.holder).wait_for()
    # Where it was connected from nobody knows, and that is said.
    page.page.locator(".lacking", has_text="where they were connected from").wait_for()
    page.choose("overview")
    page.page.locator(".badge", has_text="past").wait_for()
    page.page.locator(".empty", has_text="The charts show the last hour up to now").wait_for()
    page.back_to_now()
    page.page.locator(".badge", has_text="standalone").wait_for()
    page.choose("coordination")
    page.page.locator(".recipe li", has_text=lived.successor).wait_for()
    assert page.page.locator(".recipe li", has_text=lived.holder).count() == 0


def test_a_write_is_a_moment_too_and_its_time_is_found(lived: Lived, page: DashboardPage) -> None:
    stat = lived.stage.call(lambda client: client.exists("/config"))
    assert stat is not None
    page.choose("time")
    page.page.get_by_label("zxid of a write").fill(f"0x{stat.czxid:x}")
    page.press("Go")
    page.page.locator(".time-said", has_text=f"after the write 0x{stat.czxid:x}, ").wait_for()
    page.page.locator(".time-said", has_text=" ago").wait_for()
    page.choose("tree")
    page.row("config").click()
    # Ages are counted from that moment.
    page.page.locator(".facts time", has_text="at that moment").first.wait_for()
    page.back_to_now()


def test_what_changed_between_two_moments(lived: Lived, page: DashboardPage) -> None:
    page.choose("time")
    form = page.page.locator("form.between")
    # The time of the page is that of the machine.
    local = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(lived.then))
    form.get_by_label("From").fill(local)
    form.get_by_label("Below this path").fill("/config")
    page.press("Compare")
    page.page.locator(".hint", has_text="3 nodes differ: ").wait_for()
    rows = page.page.locator("details.change")
    assert [" ".join(one.split()[:2]) for one in rows.all_inner_texts()] == [
        "changed /config",
        "created /config/new",
        "deleted /config/old",
    ]
    rows.first.locator("summary").click()
    difference = rows.first.locator(".difference")
    difference.locator(".went", has_text='{"rate": 1}').wait_for()
    difference.locator(".came", has_text='{"rate": 2}').wait_for()
    rows.nth(2).locator("summary").click()
    rows.nth(2).get_by_role("link", name="Show the node as it was").click()
    page.wait_data("going")
    page.back_to_now()
    page.page.locator(".node .empty", has_text="cannot be shown").wait_for()

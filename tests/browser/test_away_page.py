"""Servers that go away and come back, while two browsers look: the pages say so, and go on."""

from __future__ import annotations

import re
import signal
from pathlib import Path

from playwright.sync_api import Browser

from tests.support.command import serving
from tests.support.dashboard_page import PHONE, DashboardPage
from tests.support.dashboard_stage import Links, Stage, dashboard_of, running
from tests.support.server import free_port


def test_two_browsers_see_a_server_die_and_come_back(browser: Browser, tmp_path: Path) -> None:
    port, data = str(free_port()), tmp_path / "data"
    with serving("--data", data, "--port", port) as server:
        with dashboard_of(f"127.0.0.1:{port}", tmp_path) as stage:
            stage.call(lambda client: client.create("/shared", b"before"))
            desk = DashboardPage(browser, stage.link())
            phone = DashboardPage(browser, stage.link(), PHONE, is_dark=True)
            pages = (desk, phone)
            for page in pages:
                page.show("tree", path="/shared")
                page.wait_data("before")
            stage.call(lambda client: client.set("/shared", b"while it was well"))
            for page in pages:
                page.wait_data("while it was well")
            server.process.send_signal(signal.SIGKILL)
            for page in pages:
                page.wait_away(is_away=True)
                # What was there last stays.
                assert "while it was well" in page.data()
            desk.choose("overview")
            desk.page.locator(".problems li.bad", has_text="is away").wait_for()
            assert desk.violations() == []
            with serving("--data", data, "--port", port):
                for page in pages:
                    page.wait_away(is_away=False)
                desk.page.locator(".badge", has_text="standalone").wait_for()
                desk.page.locator(".problems li.bad").wait_for(state="detached")
                desk.show("tree", path="/shared")
                desk.wait_data("while it was well")
                stage.call(lambda client: client.set("/shared", b"and after"))
                for page in pages:
                    page.wait_data("and after")
                for page in pages:
                    page.close()
                    assert page.complaints == []
                stage.close()


def test_the_dashboard_of_a_server_goes_with_it_and_a_new_one_wants_a_new_link(
    browser: Browser, tmp_path: Path
) -> None:
    errors = (tmp_path / "errors").open("w")
    shown = str(free_port())
    arguments = ("--data", tmp_path / "data", "--dashboard", shown)
    with errors, running("serve", errors, *arguments) as server:
        page = DashboardPage(browser, Links(server).next())
        hosts = page.page.locator("#service bdi").inner_text()
        assert re.fullmatch(r"127\.0\.0\.1:\d+", hosts)
        stage = Stage(hosts, Links(server), tmp_path / "errors")
        stage.call(lambda client: client.create("/app", b"served"))
        page.select("/app")
        page.wait_data("served")
        # It knows all about its server, by the socket in the data folder.
        page.choose("sessions")
        own = stage.call(lambda client: f"0x{client.session_id:x}")
        page.page.get_by_role("row").filter(has_text=own).wait_for()
        assert page.page.locator(".lacking").count() == 0
        stage.close()
        server.send_signal(signal.SIGTERM)
        page.wait_away(is_away=True)
        assert page.page.locator("#away-notice", has_text="The dashboard is away").count() == 1
        server.communicate(timeout=60)
        assert server.returncode == 0
        with running("serve", errors, *arguments) as second:
            # The old login is not the new server's.
            page.page.get_by_text("This page is no longer logged in").wait_for()
            page.page.goto(Links(second).next())
            page.show("tree", path="/app")
            page.wait_data("served")
        page.close()
        assert page.complaints == []

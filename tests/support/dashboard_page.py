"""The dashboard's page in a real browser, as a person uses it.

The browser is Debian's chromium, driven by Playwright. Its blocking API has an event loop in this
thread, so a test that uses it talks to servers with `paddock.sync`. What the page complains about
(errors of scripts, dialogs that no node's name may open) is kept in `complaints`, and a test fails
on it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Browser, Locator, Page, sync_playwright

CHROMIUM = Path("/usr/bin/chromium")
DEADLINE_MS = 60_000
# axe-core, as a package of PyPI carries it.
AXE = resources.files("axe_playwright_python") / "axe.min.js"
WIDE = (1440, 900)
PHONE = (390, 844)


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser."""
    with sync_playwright() as playwright:
        # As root there is no sandbox, and in a container hardly any shared memory.
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        try:
            yield browser
        finally:
            browser.close()


class DashboardPage:
    """A page of the dashboard that somebody has opened with a link."""

    def __init__(
        self, browser: Browser, link: str, size: tuple[int, int] = WIDE, *, is_dark: bool = False
    ) -> None:
        self._context = browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme="dark" if is_dark else "light",
        )
        self.page: Page = self._context.new_page()
        self.page.set_default_timeout(DEADLINE_MS)
        self.complaints: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(f"opened {dialog.message}"))
        self.page.goto(link)
        self._base = self.page.url.partition("#")[0]
        self.page.wait_for_selector(".view")

    def close(self) -> None:
        self._context.close()

    def show(self, view: str, **parameters: str) -> None:
        """Go to a view, by its address."""
        query = f"?{urlencode(parameters)}" if parameters else ""
        self.page.goto(f"{self._base}#/{view}{query}")
        self.page.wait_for_selector(f"body[data-view={view}]")

    def choose(self, view: str) -> None:
        """Go to a view, by the navigation."""
        self.page.click(f"nav a[data-view={view}]")
        self.page.wait_for_selector(f"body[data-view={view}]")

    # The tree.

    def row(self, name: str) -> Locator:
        """Return the row of the tree with a name."""
        return self.page.locator(".tree-row").filter(
            has=self.page.locator(".tree-name", has_text=name)
        )

    def select(self, path: str) -> None:
        """Show a node, and the tree open as far as it."""
        self.show("tree", path=path)
        self.page.wait_for_selector(".tree [aria-selected=true]")
        self.page.wait_for_selector(".node .facts")

    def data(self) -> str:
        """Return the data of the node that is shown, as it is shown."""
        return self.page.locator(".data").inner_text()

    def wait_data(self, text: str) -> None:
        self.page.locator(".data", has_text=text).wait_for()

    def wait_flash(self, name: str) -> None:
        """Wait until the row of a node flashes."""
        self.page.locator(".tree-row.flash").filter(has_text=name).wait_for()

    def search(self, text: str) -> list[str]:
        """Search in names; return the paths that are found when the search has ended."""
        self.page.keyboard.press("/")
        self.page.locator(".tree-view input[type=search]:focus").fill(text)
        self.page.locator(".search-results [role=status]", has_text=".").wait_for()
        return self.page.locator(".found a").all_inner_texts()

    # Writing.

    def press(self, label: str) -> None:
        """Press the button with this text."""
        self.page.get_by_role("button", name=label, exact=True).click()

    def dialog(self) -> Locator:
        return self.page.locator("dialog[open]")

    def wait_dialog_closed(self) -> None:
        self.page.locator("dialog").wait_for(state="detached")

    def log_in(self, name: str, password: str) -> None:
        """Enter a digest identity."""
        self.page.click("#identity")
        self.dialog().get_by_label("Name").fill(name)
        self.dialog().get_by_label("Password").fill(password)
        self.press("Add this identity")

    # What all views have.

    def is_away(self) -> bool:
        """Return whether the page says that the service is away."""
        return self.page.locator("#away-notice").is_visible()

    def wait_away(self, *, is_away: bool) -> None:
        self.page.locator("#away-notice").wait_for(state="visible" if is_away else "hidden")

    def back_to_now(self) -> None:
        self.press("Back to now")
        self.page.locator(".time-bar").wait_for(state="hidden")

    def scroll_overflow(self) -> int:
        """Return by how many pixels the page is wider than the screen."""
        found = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert isinstance(found, int)
        return found

    def violations(self) -> list[str]:
        """Return what axe-core finds here, as one line each."""
        found: Any = self.page.evaluate(f"{AXE.read_text()}\n;axe.run(document)")
        return [
            f"{one['id']}: {one['nodes'][0]['html']}: {one['nodes'][0]['failureSummary']}"
            for one in found["violations"]
        ]

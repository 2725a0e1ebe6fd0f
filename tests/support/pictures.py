"""The pictures of the dashboard in the documentation: what each shows, and how they are kept.

* `SCENES` has a function for each view, which brings a page there. Each scene is taken in every one
  of `LOOKS`, and the documentation uses all of them.
* A picture that is kept is replaced only if another one is to be seen: numbers, times and lines of
  charts are never the same twice.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PIL import Image, ImageChops, ImageStat

from tests.support.command import success
from tests.support.dashboard_page import PHONE, WIDE, DashboardPage
from tests.support.documents import ROOT

FOLDER: Final = ROOT / "docs" / "pictures"
BYTES_MAX: Final = 1_000_000
# The size of the window, and whether it is dark.
LOOKS: Final = {"light": (WIDE, False), "dark": (WIDE, True), "phone": (PHONE, False)}
# How much of its brightness a picture changes by texts alone.
_CHANGE_MAX: Final = 0.006
_SMALLER: Final = 8


@dataclass(frozen=True, slots=True)
class Shop:
    """The service in the pictures (`tests.support.shop`), and a moment before its last changes."""

    hosts: str
    filled: str


def overview(page: DashboardPage, shop: Shop) -> None:
    """A deadlock and a quota among the problems, and charts."""
    page.show("overview")
    page.page.locator(".problems", has_text="quota of /catalogue").wait_for()
    page.page.locator(".problems", has_text="wait for each other").wait_for()


def tree(page: DashboardPage, shop: Shop) -> None:
    """A node with JSON."""
    _select(page, "/config/payment.json", "acme-pay")


def coordination(page: DashboardPage, shop: Shop) -> None:
    """Locks, two of which are in a deadlock."""
    page.show("coordination")
    page.page.locator(".deadlocks", has_text="Deadlock of 2 sessions").wait_for()
    page.page.locator(".chip", has_text="Locks").first.click()
    page.page.locator(".recipe", has_text="/locks/orders").wait_for()


def sessions(page: DashboardPage, shop: Shop) -> None:
    """Those that live, and why others ended."""
    page.show("sessions")
    for cause in ("gone", "silent", "closed"):
        page.page.locator("tr", has_text=cause).first.wait_for()


def session(page: DashboardPage, shop: Shop) -> None:
    """The story of one that has ended."""
    sessions(page, shop)
    page.page.locator("tr", has_text="silent").first.locator("a").first.click()
    page.page.locator(".story li").first.wait_for()


def time(page: DashboardPage, shop: Shop) -> None:
    """A moment of the past, and what has changed in the configuration since."""
    now = page.page.evaluate("new Date().toISOString()")
    page.show("time", at=shop.filled, path="/config", **{"from": shop.filled, "to": now})
    page.page.locator(".changes", has_text="gift-cards").wait_for()
    changed = page.page.locator("details.change", has_text="checkout-v2")
    changed.locator("summary").click()
    changed.locator("text=50 %").first.wait_for()


def writing(page: DashboardPage, shop: Shop) -> None:
    """A write that somebody else was faster with."""
    _select(page, "/config/mail.json", "per_minute")
    page.press("Set data…")
    page.dialog().get_by_label("Data").fill('{"from": "shop@example.com", "per_minute": 60}')
    faster = '{"from": "shop@example.com", "per_minute": 90}'
    success("set", "/config/mail.json", faster, "--server", shop.hosts)
    page.press("Set")
    page.page.locator(".conflict .both", has_text="90").wait_for()


def _select(page: DashboardPage, path: str, text: str) -> None:
    """Show a node with a text. On a phone it stands in front of the tree."""
    page.show("tree", path=path)
    page.page.locator(".tree [aria-selected=true]").wait_for(state="attached")
    page.wait_data(text)


# A window as high as what it shows, unless it is a phone.
HEIGHTS: Final = {"overview": 1060, "coordination": 1280, "sessions": 1020, "session": 560}
# The charts grow meanwhile, so they are late; the last one ends with an open dialog.
SCENES: Final[dict[str, Callable[[DashboardPage, Shop], None]]] = {
    one.__name__: one for one in (tree, coordination, sessions, session, time, overview, writing)
}
NAMES: Final = frozenset(f"{scene}-{look}.webp" for scene in SCENES for look in LOOKS)


def taken(page: DashboardPage, look: str, shop: Shop) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each picture of a page."""
    for scene, show in SCENES.items():
        if look != "phone":
            page.page.set_viewport_size({"width": WIDE[0], "height": HEIGHTS.get(scene, WIDE[1])})
        show(page, shop)
        page.page.locator(".reading[aria-busy=true]:visible").first.wait_for(state="hidden")
        # From the top, and nothing is pointed at.
        page.page.evaluate("for (const one of [main, document.scrollingElement]) one.scrollTop = 0")
        page.page.mouse.move(0, 0)
        shot = page.page.screenshot(animations="disabled", caret="hide")
        yield f"{scene}-{look}.webp", _webp(shot)
        assert page.complaints == []


def keep(folder: Path, name: str, content: bytes) -> bool:
    """Write a picture, unless the one that is there shows the same; return whether it did."""
    path = folder / name
    if path.exists() and not differ(path.read_bytes(), content):
        return False
    folder.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return True


def differ(one: bytes, other: bytes) -> bool:
    """Return whether two pictures show something else, not only other numbers."""
    first, second = (Image.open(io.BytesIO(each)).convert("RGB") for each in (one, other))
    if first.size != second.size:
        return True
    size = first.width // _SMALLER, first.height // _SMALLER
    difference = ImageChops.difference(*(each.resize(size) for each in (first, second)))
    return max(ImageStat.Stat(difference).mean) / 255 > _CHANGE_MAX


def _webp(shot: bytes) -> bytes:
    """Return a screenshot in few bytes: few colours, without loss."""
    found = io.BytesIO()
    with Image.open(io.BytesIO(shot)) as image:
        few = image.convert("RGB").quantize(128, dither=Image.Dither.NONE)
        few.convert("RGB").save(found, "WEBP", lossless=True, quality=100, method=4)
    return found.getvalue()

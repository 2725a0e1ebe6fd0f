"""A browser for the tests of one file.

It is not shared by files: Playwright keeps an event loop running in the thread of the tests, and
tests of other files that the same process runs have loops of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.support.dashboard_page import CHROMIUM, chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.skip("needs Debian's chromium")
    with chromium() as running:
        yield running

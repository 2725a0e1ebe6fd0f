"""The pictures of the documentation: taken in a browser, of a service in use.

`make docs` keeps them in docs/pictures, where the pages use them (`PICTURES` names the folder). In
other runs they are taken and thrown away, so that it is known that they can be.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.command import COMMAND, DEADLINE_S, serving
from tests.support.dashboard_page import CHROMIUM, DashboardPage, chromium
from tests.support.pictures import BYTES_MAX, LOOKS, NAMES, Shop, keep, taken

if find_spec("paddock.dashboard.app") is None or not CHROMIUM.exists():
    pytest.skip("needs the dashboard, and Debian's chromium", allow_module_level=True)

READY = re.compile(r"ready \S+")
LINK = re.compile(r"http://\S+/login\?token=\S+")


@contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program until it is not needed any more."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=DEADLINE_S)


def said(process: subprocess.Popen[str], pattern: re.Pattern[str]) -> str:
    """Return the next part of what a program says that fits."""
    assert process.stdout is not None
    for line in process.stdout:
        if (match := pattern.search(line)) is not None:
            return match[0]
    raise AssertionError(f"it has ended and said nothing like {pattern.pattern}")


@pytest.mark.long
def test_every_picture_is_taken(tmp_path: Path) -> None:
    folder = Path(os.environ.get("PICTURES") or tmp_path / "pictures")
    with serving("--data", tmp_path / "data", "--port", "0") as server:
        hosts = "{}:{}".format(*server.address)
        dashboard = (*COMMAND, "dashboard", "--server", hosts, "--port", "0", "--no-open")
        options = ("--allow-writes", "--data", str(tmp_path / "data"))
        with running(*dashboard, *options) as process, chromium() as browser:
            # While somebody looks, the charts have a point for each second.
            first = DashboardPage(browser, said(process, LINK))
            with running(sys.executable, "-m", "tests.support.shop", hosts) as clients:
                shop = Shop(hosts, said(clients, READY).removeprefix("ready "))
                first.close()
                for look, (size, is_dark) in LOOKS.items():
                    page = DashboardPage(browser, said(process, LINK), size, is_dark=is_dark)
                    for name, content in taken(page, look, shop):
                        keep(folder, name, content)
                    page.close()
    assert {one.name for one in folder.iterdir()} == NAMES
    assert sum(one.stat().st_size for one in folder.iterdir()) <= BYTES_MAX

"""A dashboard of a service, in this process, and browsers that have logged in."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from paddock.dashboard.access import Door
from paddock.dashboard.app import Dashboard, Options
from paddock.dashboard.people import Service
from tests.support.asgi import Browser, lifespan

PORT = 8090


class Stage:
    """A dashboard that runs."""

    def __init__(self, hosts: str, **options: Any) -> None:
        service = options.pop("service", None) or Service(hosts)
        self.dashboard = Dashboard(
            Options(service, **options), lambda leave: Door(PORT, time.monotonic, on_leave=leave)
        )

    async def browser(self) -> Browser:
        """Return a browser that has logged in."""
        browser = Browser(self.dashboard.app, f"127.0.0.1:{PORT}")
        answer = await browser.login(self.dashboard.door.new_token())
        assert (answer.status, answer.headers["location"]) == (303, "/")
        return browser


@asynccontextmanager
async def dashboard(hosts: str, **options: Any) -> AsyncIterator[Stage]:
    """Run a dashboard, connected unless the service is away."""
    stage = Stage(hosts, **options)
    async with lifespan(stage.dashboard.app):
        await stage.dashboard.people.base.wait_first(10.0)
        yield stage

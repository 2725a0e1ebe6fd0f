"""A service with its dashboard as processes, for browsers, and clients that do something there.

Playwright's blocking API has an event loop in the thread of a test, where `paddock.sync` refuses to
work. So clients work in a thread of their own.
"""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from paddock.sync import Client, connect
from tests.support.command import COMMAND, DEADLINE_S

T = TypeVar("T")

LINK = re.compile(r"http://\S+/login\?token=\S+")


class Links:
    """The links that a process prints, one for each browser."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def next(self) -> str:
        """Return the next one."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if (match := LINK.search(line)) is not None:
                return match[0]
        raise AssertionError("it has ended without a link")


class Stage:
    """A dashboard of a service, and a client of that service."""

    def __init__(self, hosts: str, links: Links, log: Path) -> None:
        self.hosts = hosts
        self._links = links
        self._log = log
        self._threads = ThreadPoolExecutor(20)
        self._clients: list[Client] = []
        self._client = self.client()

    def call(self, work: Callable[[Client], T]) -> T:
        """Let the client do something."""
        return self.run(lambda: work(self._client))

    def run(self, work: Callable[[], T]) -> T:
        """Do something in a thread where no event loop runs."""
        return self.start(work).result(DEADLINE_S)

    def start(self, work: Callable[[], T]) -> Future[T]:
        """Begin something that takes its time."""
        return self._threads.submit(work)

    def client(self) -> Client:
        """Return another client, connected. It is closed at the end, if it was not before."""
        client = self.run(lambda: _connected(self.hosts))
        self._clients.append(client)
        return client

    def link(self) -> str:
        """Return the next link that the dashboard prints."""
        return self._links.next()

    def log(self) -> str:
        """Return what the dashboard has logged, the audit lines among it."""
        return self._log.read_text()

    def close(self) -> None:
        """Close all clients, which ends what waits for them, if that was not done before."""
        while self._clients:
            self.run(self._clients.pop().close)
        self._threads.shutdown()


@contextlib.contextmanager
def dashboard_of(hosts: str, folder: Path, *options: str | Path) -> Iterator[Stage]:
    """Run `paddock dashboard` beside a service that runs."""
    log = folder / "dashboard.log"
    with log.open("w") as errors, running("dashboard", errors, "--server", hosts, *options) as made:
        stage = Stage(hosts, Links(made), log)
        try:
            yield stage
        finally:
            stage.close()


def _connected(hosts: str) -> Client:
    client = connect(hosts)
    client.start()
    return client


@contextlib.contextmanager
def running(
    command: str, errors: int | object, *options: str | Path
) -> Iterator[subprocess.Popen[str]]:
    """Run a command with `--port 0` until it is told to end."""
    extra = ("--no-open",) if command == "dashboard" else ()
    process = subprocess.Popen(
        [*COMMAND, command, "--port", "0", *extra, *map(str, options)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=errors,  # type: ignore[arg-type]
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.communicate(timeout=DEADLINE_S)

"""kazoo for tests: clients and threads that end with the test, also when it fails.

    with KazooClients(server.address) as clients:
        client = clients.connect()
        winner = clients.run(client.Lock("/lock").acquire)
        assert winner.result(DEADLINE_S)

kazoo has no types: its clients are `Any` to mypy, so what a test expects it must assert.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Final, ParamSpec, Self, TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

P = ParamSpec("P")
T = TypeVar("T")

DEADLINE_S: Final = 60.0
#: Nobody listens there: a client that is sent there is cut off and cannot come back.
NOWHERE: Final = "127.0.0.1:1"

_RETRY: Final = {"max_tries": -1, "delay": 0.02, "backoff": 1, "max_jitter": 0.0}


class KazooClients:
    """The kazoo clients of one test, and the threads it runs them in."""

    def __init__(self, *addresses: tuple[str, int]) -> None:
        self.hosts = ",".join(f"{host}:{port}" for host, port in addresses)
        self._clients: list[KazooClient] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The clients first: a thread that waits for one of them is woken by its end.
        for client in self._clients:
            with contextlib.suppress(KazooException, OSError):
                client.stop()
            client.close()
        for thread in self._threads:
            thread.join(DEADLINE_S)
        # A failure of the test itself says more than a thread that waits because of it.
        if error is None:
            stuck = [thread.name for thread in self._threads if thread.is_alive()]
            assert not stuck, f"threads did not end: {stuck}"

    def connect(self, *, chroot: str = "", **options: Any) -> KazooClient:
        """Open a session."""
        client = self.prepare(chroot=chroot, **options)
        client.start(timeout=DEADLINE_S)
        return client

    def prepare(self, *, chroot: str = "", **options: Any) -> KazooClient:
        """Make a client that the test starts itself."""
        client = KazooClient(
            hosts=self.hosts + chroot,
            **{"connection_retry": _RETRY, "command_retry": _RETRY, **options},
        )
        self._clients.append(client)
        return client

    def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call something that waits, in a thread of its own."""
        future: Future[T] = Future()

        def body() -> None:
            try:
                future.set_result(function(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        name = getattr(function, "__qualname__", repr(function))
        thread = threading.Thread(target=body, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()
        return future

    def cut(self, client: KazooClient) -> None:
        """Break a client's connection; it comes back by itself with the same session."""
        client._connection._socket.shutdown(socket.SHUT_RDWR)

    def cut_off(self, client: KazooClient) -> None:
        """Break a client's connection and keep it away until `let_back`."""
        client.set_hosts(NOWHERE)
        self.cut(client)

    def let_back(self, client: KazooClient) -> None:
        client.set_hosts(self.hosts)


class Inbox(queue.Queue[Any]):
    """What callbacks were told, in order: give `put` to kazoo, and `take` it in the test."""

    def take(self) -> Any:
        """Wait for the next one."""
        return self.get(timeout=DEADLINE_S)

    def take_until(self, wanted: Callable[[Any], bool]) -> Any:
        """Wait for one that fits, and forget those before it."""
        limit = time.monotonic() + DEADLINE_S
        while True:
            message = self.get(timeout=max(0.0, limit - time.monotonic()))
            if wanted(message):
                return message


def watch_states(client: KazooClient) -> Inbox:
    """Collect the states a client goes through from now on."""
    states = Inbox()

    def listen(state: str) -> None:
        states.put(state)

    client.add_listener(listen)
    return states


def wait_children(client: KazooClient, path: str, count: int) -> list[str]:
    """Wait until a node has that many children; return their names, sorted."""
    limit = time.monotonic() + DEADLINE_S
    while True:
        changed = threading.Event()
        children: list[str] = client.get_children(path, watch=lambda _, at=changed: at.set())
        if len(children) == count:
            return sorted(children)
        if not changed.wait(max(0.0, limit - time.monotonic())):
            raise TimeoutError(f"{path} has {children}, not {count} children")

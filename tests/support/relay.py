"""A way to a server that can be cut: faults are made at the socket, not inside a client."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from tests.support.wire import Address

_CHUNK_BYTES: Final = 65536


class Relay:
    """Forwards connections to a server, on threads of its own. `with` ends it."""

    def __init__(self, target: Address) -> None:
        self._target = target
        self._lock = threading.Lock()
        #: Both ends of every connection. Invariant: empty while closed.
        self._ends: set[socket.socket] = set()
        self._closed = False
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))

    @property
    def address(self) -> Address:
        host, port = self._listener.getsockname()
        return host, port

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A listener that another thread waits on is woken by a shutdown, not by a close.
        self._listener.shutdown(socket.SHUT_RDWR)
        self.close()
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def cut(self) -> None:
        """Cut every connection; clients may come back at once."""
        with self._lock:
            for end in self._ends:
                _cut(end)
            self._ends.clear()

    def close(self) -> None:
        """Cut every connection, and each new one too, until it is open again."""
        self._closed = True
        self.cut()

    def open(self) -> None:
        self._closed = False

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._target)
            except OSError:
                client.close()
                continue
            with self._lock:
                if self._closed:
                    client.close()
                    server.close()
                    continue
                self._ends |= {client, server}
            self._start(self._forward, client, server)
            self._start(self._forward, server, client)

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while chunk := source.recv(_CHUNK_BYTES):
                target.sendall(chunk)
        # Either side's end is the end of both; the thread that reads from an end closes it.
        _cut(target)
        with self._lock:
            self._ends -= {source, target}
        source.close()

    def _start(self, action: Callable[..., None], *arguments: socket.socket) -> None:
        thread = threading.Thread(target=action, args=arguments, name="relay")
        self._threads.append(thread)
        thread.start()


def _cut(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)

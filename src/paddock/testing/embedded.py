"""A server inside the process of a test: on the test's own event loop, or in a thread.

    async with EmbeddedServer() as server:
        host, port = server.address

    with ServerThread() as server:               # for tests without asyncio
        host, port = server.address

Each has a port that the system has chosen, and keeps it when it is stopped and started again. With
a data folder what it holds survives that, too; without one it is in memory and gone.
"""

from __future__ import annotations

import asyncio
import dataclasses
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from paddock.log.file.disk import Disk
from paddock.server.config.config import ServerConfig
from paddock.server.server import Server
from paddock.testing.clock import VirtualClockLoop
from paddock.testing.listening import BackgroundLoop, Listening


def _wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


def _wall_clock_of(loop: asyncio.AbstractEventLoop) -> Callable[[], int]:
    """Return a wall clock that follows the loop's time."""
    began_ms = _wall_clock_ms() - int(loop.time() * 1000)
    return lambda: began_ms + int(loop.time() * 1000)


class EmbeddedServer(Listening):
    """A server on the running event loop.

        async with EmbeddedServer() as server:
            async with paddock.connect(server.hosts) as client:
                print(await client.children("/"))  # ['zookeeper']

    `data` is its folder; without one everything is in memory. `config` says everything else, as a
    rule with port 0. In virtual time (`run_virtually`) sessions and TTL nodes expire without
    waiting; then it must be in memory, since time does not wait for a disk. Time of day, randomness
    and the disk can be handed in, as to the server itself.
    """

    def __init__(
        self,
        data: Path | None = None,
        config: ServerConfig | None = None,
        *,
        disk: Disk | None = None,
        wall_clock_ms: Callable[[], int] | None = None,
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        config = ServerConfig(port=0) if config is None else config
        if data is not None:
            config = dataclasses.replace(config, data_directory=data)
        self._config = config
        self._disk = disk
        self._wall_clock_ms = wall_clock_ms
        self._random_bytes = random_bytes
        self._server: Server | None = None
        self._address: tuple[str, int] | None = None
        self._secure_address: tuple[str, int] | None = None

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens, or did before it was stopped."""
        assert self._address is not None, "the server has not been started"
        return self._address

    @property
    def secure_address(self) -> tuple[str, int]:
        """Where TLS is spoken, if the config says so."""
        assert self._secure_address is not None, "no TLS is spoken"
        return self._secure_address

    @property
    def is_running(self) -> bool:
        """Whether it has been started and not stopped."""
        return self._server is not None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *details: object) -> None:
        if self._server is not None:
            await self.stop()

    async def start(self) -> None:
        """Start it, as a new process would on this folder; raises what `Server.start` raises."""
        assert self._server is None, "the server runs already"
        loop = asyncio.get_running_loop()
        virtual = isinstance(loop, VirtualClockLoop)
        if virtual and self._config.data_directory is not None:
            raise ValueError("in virtual time a server must be in memory: time waits for no disk")
        if self._wall_clock_ms is None:
            # Kept over restarts: the time of day must not go back.
            self._wall_clock_ms = _wall_clock_of(loop) if virtual else _wall_clock_ms
        server = Server(
            self._config,
            wall_clock_ms=self._wall_clock_ms,
            random_bytes=self._random_bytes,
            disk=self._disk,
            monotonic=loop.time if virtual else time.monotonic,
        )
        await server.start()
        self._server = server
        self._config = server.config_with_ports()
        self._address = server.address
        self._secure_address = server.secure_address

    async def stop(self) -> None:
        """Stop it in good order: what is under way is answered, connections are closed."""
        server, self._server = self._server, None
        assert server is not None, "the server does not run"
        await server.stop()

    async def restart(self) -> None:
        """Stop it, and start it again on the same port and data."""
        await self.stop()
        await self.start()


class ServerThread(Listening):
    """A server in this process, on an event loop in a thread of its own.

        with ServerThread(tmp_path) as server:
            print(server.hosts)  # 127.0.0.1:...

    It takes what `EmbeddedServer` takes, or an event loop to run on. Leaving the `with` raises
    RuntimeError if one of the loop's callbacks has failed.
    """

    def __init__(
        self,
        data: Path | None = None,
        config: ServerConfig | None = None,
        *,
        disk: Disk | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._embedded = EmbeddedServer(data, config, disk=disk)
        self._background = BackgroundLoop(loop)

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens, or did before it was stopped."""
        return self._embedded.address

    @property
    def secure_address(self) -> tuple[str, int]:
        """Where TLS is spoken, if the config says so."""
        return self._embedded.secure_address

    @property
    def problems(self) -> list[str]:
        """The failures of the loop's callbacks."""
        return self._background.problems

    def __enter__(self) -> Self:
        self._background.open(self._embedded.start())
        return self

    def __exit__(self, *details: object) -> None:
        self._background.close(self._embedded.__aexit__(), details[1])

    def start(self) -> None:
        """Start it, as a new process would on this folder; raises what `Server.start` raises."""
        self._background.call(self._embedded.start())

    def stop(self) -> None:
        """Stop it in good order: what is under way is answered, connections are closed."""
        self._background.call(self._embedded.stop())

    def restart(self) -> None:
        """Stop it, and start it again on the same port and data."""
        self.stop()
        self.start()

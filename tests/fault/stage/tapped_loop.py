"""An event loop whose connections are recorded, for the judge of simulations on real networks.

    loop = TappedLoop(servers={"10.0.0.4:2181": "server 1"})
    with asyncio.Runner(loop_factory=lambda: loop) as runner: ...
    judge(loop.recorder.history)

Whoever connects is named by `client_name`, which a client's task sets; connections without a name
are not recorded. Time is that of the loop: all clients of a history are on one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any

from paddock.testing.simulation.recorder import ConnectionTap, Recorder

client_name: ContextVar[str] = ContextVar("client_name", default="")


class TappedLoop(asyncio.SelectorEventLoop):
    """A loop with a recorder. `servers` are the names of addresses."""

    def __init__(self, servers: dict[str, str]) -> None:
        super().__init__()
        self.recorder = Recorder(self)
        self._servers = servers

    async def create_connection(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.Protocol],
        host: str = "",
        port: int = 0,
        **options: Any,
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        client = client_name.get()
        if not client:
            return await super().create_connection(protocol_factory, host, port, **options)
        server = self._servers[f"{host}:{port}"]
        tap = self.recorder.tap(client, server)
        _, tapped = await super().create_connection(
            lambda: TappedProtocol(protocol_factory(), tap), host, port, **options
        )
        assert tapped.transport is not None
        return tapped.transport, tapped.inner


class TappedProtocol(asyncio.Protocol):
    """Hands everything on to a protocol, behind the tap."""

    def __init__(self, inner: asyncio.Protocol, tap: ConnectionTap) -> None:
        self.inner = inner
        self.transport: TappedTransport | None = None
        self._tap = tap

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = TappedTransport(transport, self._tap)
        self.inner.connection_made(self.transport)

    def data_received(self, data: bytes) -> None:
        self._tap.received(data)
        self.inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self.inner.eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        self._tap.ended(str(error or "closed"))
        self.inner.connection_lost(error)

    def pause_writing(self) -> None:
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        self.inner.resume_writing()


class TappedTransport(asyncio.Transport):
    """What a client writes to."""

    def __init__(self, inner: asyncio.Transport, tap: ConnectionTap) -> None:
        super().__init__()
        self._inner = inner
        self._tap = tap

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._tap.sent(bytes(data))
        self._inner.write(data)

    def writelines(self, pieces: Iterable[bytes | bytearray | memoryview]) -> None:
        self.write(b"".join(pieces))

    def close(self) -> None:
        self._tap.ended("closed here")
        self._inner.close()

    def abort(self) -> None:
        self._tap.ended("aborted here")
        self._inner.abort()

    def is_closing(self) -> bool:
        return self._inner.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._inner.get_extra_info(name, default)

    def get_write_buffer_size(self) -> int:
        return self._inner.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._inner.set_write_buffer_limits(high, low)

    def pause_reading(self) -> None:
        self._inner.pause_reading()

    def resume_reading(self) -> None:
        self._inner.resume_reading()

    def is_reading(self) -> bool:
        return self._inner.is_reading()

    def can_write_eof(self) -> bool:
        return self._inner.can_write_eof()

    def write_eof(self) -> None:
        self._inner.write_eof()

"""One end of a connection in memory: what the virtual and the simulated network have in common."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Final, cast

_HIGH_WATER_BYTES: Final = 1 << 16


class MemoryTransport(asyncio.Transport):
    """A transport whose subclass says how bytes get to the other end."""

    def __init__(self, extra: dict[str, Any], protocol: asyncio.BaseProtocol) -> None:
        super().__init__(extra)
        self._protocol: Any = protocol
        # What has been sent to us and not been taken: bytes, or the end of the connection, in good
        # order (None) or with an error.
        self._arrived: deque[bytes | Exception | None] = deque()
        self._is_paused = False
        self._is_closing = False
        self._wrote_eof = False
        # Whether the peer takes too little, and our protocol knows.
        self._is_choked = False
        self._high_water = _HIGH_WATER_BYTES

    def begin(self) -> None:
        self._protocol.connection_made(self)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return cast(asyncio.BaseProtocol, self._protocol)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def can_write_eof(self) -> bool:
        return True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high_water = _HIGH_WATER_BYTES if high is None else high

    def is_reading(self) -> bool:
        return not self._is_paused and not self._is_closing

    def pause_reading(self) -> None:
        self._is_paused = True

    def is_closing(self) -> bool:
        return self._is_closing

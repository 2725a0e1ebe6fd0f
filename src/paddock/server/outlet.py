"""What goes out to a client: gathered, sent with one write, and counted."""

from __future__ import annotations

import asyncio
from typing import Final

from librt.strings import BytesWriter, write_i32_be, write_i64_be

from paddock.server.statistics import Statistics

# How much may gather before it is sent; a peer that does not take it is served no further.
_GATHERED_BYTES_MAX: Final = 1 << 20


class Outlet:
    """One connection's way out."""

    def __init__(self, statistics: Statistics) -> None:
        self.transport: asyncio.Transport | None = None
        # Whether the peer takes what we send.
        self.peer_reads = True
        # Packets sent since the beginning.
        self.sent = 0
        self._statistics = statistics
        self._gathered = BytesWriter()
        self._packets = 0
        # Bytes handed to the transport, and how many of them the peer had taken when we last asked.
        self._written = 0
        self._taken = 0

    def reply(self, xid: int, zxid: int, error: int, body: bytes) -> None:
        gathered = self._gathered
        write_i32_be(gathered, 16 + len(body))
        write_i32_be(gathered, xid)
        write_i64_be(gathered, zxid)
        write_i32_be(gathered, error)
        gathered.write(body)
        self._packets += 1

    def packet(self, whole: bytes) -> None:
        """Send something that is encoded already, as it is."""
        self._gathered.write(whole)
        self._packets += 1

    def is_full(self) -> bool:
        return len(self._gathered) > _GATHERED_BYTES_MAX

    def flush(self) -> None:
        if not len(self._gathered):
            return
        self._statistics.packets_sent += self._packets
        self.sent += self._packets
        self._packets = 0
        data = self._gathered.getvalue()
        self._gathered = BytesWriter()
        if self.transport is not None:
            self._written += len(data)
            self.transport.write(data)

    def has_progressed(self) -> bool:
        """Tell whether the peer, or the system for it, took anything since this was last asked."""
        waiting = 0 if self.transport is None else self.transport.get_write_buffer_size()
        taken = self._written - waiting
        progressed = taken > self._taken
        self._taken = taken
        return progressed

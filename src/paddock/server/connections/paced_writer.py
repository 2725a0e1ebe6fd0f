"""A paced writer: sends an answer of any length piece by piece, at the pace of its reader.

A piece is made after the one before it was written, and other callbacks run in between. So a long
answer neither blocks the event loop nor fills the memory. A peer that reads nothing for too long is
disconnected.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from paddock.server.connections.turns import Turns

logger: Final = logging.getLogger(__name__)

_PIECE_CHARACTERS: Final = 16 << 10
_PIECE_PARTS: Final = 500


def in_pieces(parts: Iterable[str]) -> Iterator[bytes]:
    """Join short texts to pieces, each of which takes little time to make.

    Parts may be empty: they count as work, after which other callbacks run.
    """
    gathered: list[str] = []
    size = 0
    for part in parts:
        gathered.append(part)
        size += len(part)
        if size >= _PIECE_CHARACTERS or len(gathered) >= _PIECE_PARTS:
            yield "".join(gathered).encode()
            gathered.clear()
            size = 0
    yield "".join(gathered).encode()


class PacedWriter:
    """Writes pieces to a transport, whose protocol calls `pause` and `resume`."""

    def __init__(
        self,
        transport: asyncio.WriteTransport,
        pieces: Iterator[bytes],
        timeout: float,
        done: Callable[[], None],
        turns: Turns | None = None,
        bytes_min: int = 1,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport = transport
        self._pieces = pieces
        # A peer that reads less than `bytes_min` in so many seconds is disconnected.
        self._timeout = timeout
        self._bytes_min = bytes_min
        # Called after the last piece was written; not after an abort.
        self._done = done
        # Shares the loop's time; without it each piece takes one pass of the loop.
        self._turns = turns
        self._is_paused = False
        # Whether the next piece is scheduled.
        self._is_scheduled = False
        self._is_over = False
        # Bytes written, and how many of them the peer had read at the last check.
        self._written = 0
        self._taken = 0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Send the first piece at once."""
        self._timer = self._loop.call_later(self._timeout, self._check)
        self.take_turn()

    def pause(self) -> None:
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False
        self._schedule()

    def stop(self) -> None:
        """Send nothing more."""
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()

    def _schedule(self) -> None:
        if not (self._is_scheduled or self._is_paused or self._is_over):
            self._is_scheduled = True
            if self._turns is None:
                self._loop.call_soon(self.take_turn)
            else:
                self._turns.ask(self)

    def take_turn(self) -> None:
        """Send the next piece."""
        self._is_scheduled = False
        if self._is_paused or self._is_over:
            return
        try:
            piece = next(self._pieces, None)
        except Exception:
            logger.exception("an answer could not be made")
            self.stop()
            self._transport.abort()
            return
        if piece is None:
            self.stop()
            self._done()
            return
        if piece:
            self._written += len(piece)
            self._transport.write(piece)
        self._schedule()

    def _check(self) -> None:
        taken = self._written - self._transport.get_write_buffer_size()
        if self._is_paused and taken - self._taken < self._bytes_min:
            self.stop()
            self._transport.abort()
            return
        self._taken = taken
        self._timer = self._loop.call_later(self._timeout, self._check)

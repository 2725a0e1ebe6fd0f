"""Writes the history of a world: taps the connections of clients."""

from __future__ import annotations

import asyncio

from paddock.protocol.framing import FrameBuffer
from paddock.testing.simulation import history as h
from paddock.testing.simulation.frames import is_event
from paddock.testing.simulation.history import History, Moment

_FRAME_BYTES_MAX = 1 << 30
# Four-letter words, with which a client looks for a server.
_WORDS = (b"isro", b"ruok", b"srvr")


class Recorder:
    """The history of a world as it happens."""

    def __init__(self, world: asyncio.AbstractEventLoop) -> None:
        self.history = History()
        self._world = world
        self._last = 0

    def tap(self, client: str, server: str) -> ConnectionTap:
        """Return the tap of a new connection."""
        return ConnectionTap(self, client, server)

    def note(self, text: str) -> None:
        """Write down something that was done to the world."""
        self.add(h.FAULT, text=text)

    def say(self, who: str, text: str) -> None:
        """Write down what a process says of itself."""
        self.add(h.NOTE, text=f"{who} {text}")

    def add(self, kind: str, connection: int = 0, frame: bytes = b"", text: str = "") -> None:
        # Rounded, so that a history that was stored and read again is the same.
        at = round(self._world.time(), 9)
        self.history.add(Moment(at, kind, connection, frame, text))

    def number(self) -> int:
        self._last += 1
        return self._last


class ConnectionTap:
    """One connection. It is in the history from its handshake on."""

    def __init__(self, recorder: Recorder, client: str, server: str) -> None:
        self._recorder = recorder
        self._text = f"{client} {server}"
        self._number = 0
        self._out = FrameBuffer(_FRAME_BYTES_MAX)
        self._in = FrameBuffer(_FRAME_BYTES_MAX)
        self._is_granted = False
        self._is_ignored = False

    def sent(self, data: bytes) -> None:
        if not self._number and data[:4] in _WORDS:
            self._is_ignored = True
        if self._is_ignored:
            return
        for frame in self._out.receive_data(data):
            if not self._number:
                self._number = self._recorder.number()
                self._recorder.add(h.CONNECT, self._number, frame, self._text)
            else:
                self._recorder.add(h.REQUEST, self._number, frame)

    def received(self, data: bytes) -> None:
        if self._is_ignored:
            return
        for frame in self._in.receive_data(data):
            if not self._is_granted:
                self._is_granted = True
                self._recorder.add(h.GRANTED, self._number, frame)
            elif is_event(frame):
                self._recorder.add(h.EVENT, self._number, frame)
            else:
                self._recorder.add(h.REPLY, self._number, frame)

    def ended(self, reason: str) -> None:
        if self._number and not self._is_ignored:
            self._is_ignored = True
            self._recorder.add(h.LOST, self._number, text=reason)

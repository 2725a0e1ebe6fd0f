"""One connection through a proxy: two sockets, and a lane for each direction between them.

A lane forwards frames in order, unless it is held. A frame is decoded when it is forwarded: a held
one has not been seen. The connection to the server is made for the first frame, so that nothing
reaches it through a held lane.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from paddock.client.requests.encoder import framed
from paddock.protocol.framing import FrameBuffer
from paddock.testing.conversation import Conversation, SeenReply, SeenRequest
from paddock.testing.faults import AT_REPLY, CUTS, Direction, Fault, FaultKind

# Larger than servers allow; a nonsensical length is not waited for.
_FRAME_BYTES_MAX: Final = 1 << 28
# Backpressure: a held lane with more than this pauses its source.
_HELD_BYTES_MAX: Final = 1 << 20
_LINGER_NOT: Final = struct.pack("ii", 1, 0)


class Lane:
    """One direction of a connection."""

    def __init__(self, let_out: Callable[[bytes | None, bool], None]) -> None:
        self._let_out = let_out
        self.frames = FrameBuffer(_FRAME_BYTES_MAX)
        # Where it comes from: not read from while too much is held.
        self.source: End
        # Frames with their lengths, or what is no frame; None is the end. Each with whether it has
        # been looked at before.
        self.waiting: deque[tuple[bytes | None, bool]] = deque()
        self._waiting_bytes = 0
        # The faults that hold it: nothing is let out while there are any.
        self.holds: set[object] = set()
        # Whether its destination is connected.
        self.is_ready = True
        self._is_letting_out = False

    def put(self, item: bytes | None) -> None:
        self.waiting.append((item, False))
        self._waiting_bytes += len(item or b"")
        self.go_on()
        if self._waiting_bytes > _HELD_BYTES_MAX:
            self.source.pause(self)

    def put_back(self, item: bytes, *, is_seen: bool) -> None:
        """Put something in front of everything that waits."""
        self.waiting.appendleft((item, is_seen))
        self._waiting_bytes += len(item)

    def release(self, reason: object) -> None:
        self.holds.discard(reason)
        self.go_on()

    def heal(self) -> None:
        """Let go of whatever a fault held."""
        self.holds.clear()
        self.go_on()

    def clear(self) -> None:
        self.waiting.clear()
        self._waiting_bytes = 0

    def go_on(self) -> None:
        """Let out what may go."""
        # Letting something out may put more in: that has to wait its turn.
        if self._is_letting_out:
            return
        self._is_letting_out = True
        try:
            while self.waiting and self.is_ready and not self.holds:
                item, is_seen = self.waiting.popleft()
                self._waiting_bytes -= len(item or b"")
                self._let_out(item, is_seen)
        finally:
            self._is_letting_out = False
        if not self.waiting:
            self.source.resume(self)


class End(asyncio.Protocol):
    """One of the two sockets of a link."""

    def __init__(self, received: Callable[[bytes | None], None], lost: Callable[[], None]) -> None:
        self._received = received
        self._lost = lost
        self.transport: Any = None
        # The other one: it is not read from while this one takes too little.
        self.opposite: End
        # Why it is not read from just now.
        self._pauses: set[object] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._received(data)

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        self._received(None)
        self._lost()

    def pause_writing(self) -> None:
        self.opposite.pause(self)

    def resume_writing(self) -> None:
        self.opposite.resume(self)

    def pause(self, reason: object) -> None:
        """Read nothing for now."""
        if not self._pauses and self.transport is not None and not self.transport.is_closing():
            self.transport.pause_reading()
        self._pauses.add(reason)

    def resume(self, reason: object) -> None:
        """Read again, if this was the last reason not to."""
        was_paused = bool(self._pauses)
        self._pauses.discard(reason)
        if was_paused and not self._pauses and self.transport and not self.transport.is_closing():
            self.transport.resume_reading()

    def write(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)

    def close(self, *, reset: bool = False) -> None:
        """Close once everything is written; or, with `reset`, as if it had crashed."""
        if self.transport is not None and reset:
            sock = self.transport.get_extra_info("socket")
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
            self.transport.abort()
        elif self.transport is not None:
            self.transport.close()


class Link:
    """A client's connection, and the one to the server that belongs to it."""

    def __init__(
        self,
        conversation: Conversation,
        *,
        choose_fault: Callable[[SeenRequest], Fault | None],
        connect: Callable[[Link], None],
        refuse_clients: Callable[[], None],
        forget: Callable[[Link], None],
    ) -> None:
        self.conversation = conversation
        self._choose_fault = choose_fault
        self._connect = connect
        self._refuse_clients = refuse_clients
        self._forget = forget
        self.to_server = Lane(self._let_out_to_server)
        self.to_client = Lane(self._let_out_to_client)
        self.client = End(self._from_client, self._lost)
        self.server = End(lambda data: self._received(self.to_client, data), self._lost)
        self.client.opposite, self.server.opposite = self.server, self.client
        self.to_server.source, self.to_client.source = self.client, self.server
        # The first bytes, while they are too few to tell a frame from a four-letter word.
        self._first: bytes | None = b""
        # Whether they were such a word: no frames follow.
        self._is_plain = False
        # What is to happen at the reply to a request.
        self._faults: dict[SeenRequest, Fault] = {}
        # What is to cut the connection before this request, once those before it are answered.
        self._cut_before: tuple[Fault, SeenRequest] | None = None
        self._was_connected = False
        self._is_cut = False

    def connected(self) -> None:
        """Go on, since the server's end is there."""
        if self._is_cut:
            self.server.close()
        self.to_server.is_ready = True
        self.to_server.go_on()

    def cut(self, *, reset: bool = False) -> None:
        """End both connections; what was held is lost."""
        self._is_cut = True
        self.to_server.clear()
        self.to_client.clear()
        self.client.close(reset=reset)
        self.server.close()

    def abort(self) -> None:
        """End both connections now, whatever is still to be written."""
        self._is_cut = True
        for end in (self.client, self.server):
            if end.transport is not None:
                end.transport.abort()

    def hold(self, directions: frozenset[Direction]) -> None:
        """Let nothing through until it is healed."""
        if Direction.TO_SERVER in directions:
            self.to_server.holds.add(FaultKind.BLACKHOLE)
        if Direction.TO_CLIENT in directions:
            self.to_client.holds.add(FaultKind.BLACKHOLE)

    def heal(self) -> None:
        """Let everything through again; what was held goes first."""
        self._faults.clear()
        self._cut_before = None
        self.to_server.heal()
        self.to_client.heal()

    def _from_client(self, data: bytes | None) -> None:
        if self._first is not None and data is not None:
            data = self._first + data
            if len(data) < 4:
                self._first = data
                return
            self._first = None
            # As a length, four letters would be more than a gigabyte.
            self._is_plain = data[:4].isalpha()
        self._received(self.to_server, data)

    def _received(self, lane: Lane, data: bytes | None) -> None:
        if self._is_cut:
            return
        if data is None or self._is_plain:
            lane.put(data)
            return
        for frame in lane.frames.receive_data(data):
            lane.put(framed(frame))
        if lane.frames.error is not None:
            # Nothing can be understood after what is no frame.
            self.cut()

    def _lost(self) -> None:
        if self.client.transport is None and self.server.transport is None:
            self._forget(self)

    # From the client.

    def _let_out_to_server(self, frame: bytes | None, is_seen: bool) -> None:
        if self._is_cut:
            return
        if frame is None:
            # The client has left.
            self.cut()
        elif not self._was_connected:
            self._was_connected = True
            self.to_server.put_back(frame, is_seen=is_seen)
            self.to_server.is_ready = False
            self._connect(self)
        elif is_seen or self._is_plain:
            self.server.write(frame)
        else:
            self._look_at_request(frame)

    def _look_at_request(self, frame: bytes) -> None:
        request = self.conversation.request(frame[4:])
        fault = self._choose_fault(request)
        if fault is None:
            self.server.write(frame)
            return
        effect = fault.effect
        if effect.kind in AT_REPLY:
            self._faults[request] = fault
            self.server.write(frame)
            if effect.kind in CUTS:
                # Nothing behind it is to be carried out: after a cut, it is known what was.
                self.to_server.holds.add(fault)
            return
        # Healed before it comes to a cut, it goes on like any other.
        self.to_server.put_back(frame, is_seen=True)
        if effect.kind is FaultKind.CUT_BEFORE:
            self.to_server.holds.add(fault)
            self._cut_before = fault, request
            self._cut_before_request()
            return
        if effect.kind is FaultKind.DELAY:
            self._hold_for(self.to_server, effect.seconds)
        else:
            self.hold(effect.directions)
        fault.hit(request)

    def _cut_before_request(self) -> None:
        """Cut where it was to be cut, if everything before that is answered."""
        if self._cut_before is None or self.to_client.waiting:
            return
        fault, request = self._cut_before
        if self.conversation.is_answered_but(request):
            self._cut_for(fault)
            fault.hit(request)

    # From the server.

    def _let_out_to_client(self, frame: bytes | None, is_seen: bool) -> None:
        if self._is_cut:
            return
        if frame is None:
            self.cut()
        elif is_seen or self._is_plain:
            self.client.write(frame)
        else:
            self._look_at_answer(frame)
        self._cut_before_request()

    def _look_at_answer(self, frame: bytes) -> None:
        message = self.conversation.answer(frame[4:])
        if not isinstance(message, SeenReply) or message.request not in self._faults:
            self.client.write(frame)
            return
        fault = self._faults.pop(message.request)
        effect = fault.effect
        if effect.kind is FaultKind.DELAY_REPLY:
            self.to_client.put_back(frame, is_seen=True)
            self._hold_for(self.to_client, effect.seconds)
        elif effect.kind is not FaultKind.DROP_REPLY:
            if effect.kind is FaultKind.TRUNCATE:
                self.client.write(frame[: effect.length])
            self._cut_for(fault)
        fault.hit(message.request)

    def _cut_for(self, fault: Fault) -> None:
        if fault.effect.stay_away:
            self._refuse_clients()
        self.cut(reset=fault.effect.reset)

    def _hold_for(self, lane: Lane, seconds: float) -> None:
        # A reason of its own: delays may overlap.
        reason = object()
        lane.holds.add(reason)
        asyncio.get_running_loop().call_later(seconds, lane.release, reason)

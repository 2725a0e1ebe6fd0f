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
from typing import Any, Final, Protocol

from paddock.protocol.framing import FrameBuffer
from paddock.testing.conversation import Conversation, SeenReply, SeenRequest
from paddock.testing.faults import CUTS, Direction, Fault, FaultKind

# Larger than servers allow; a nonsensical length is not waited for.
_FRAME_BYTES_MAX: Final = 1 << 28
# Backpressure: a held lane with more than this pauses its source.
_HELD_BYTES_MAX: Final = 1 << 20
_LINGER_NOT: Final = struct.pack("ii", 1, 0)


class Owner(Protocol):
    """The proxy, as its links see it."""

    def choose_fault(self, request: SeenRequest) -> Fault | None: ...
    def connect(self, link: Link) -> None: ...
    def stay_away(self) -> None: ...
    def forget(self, link: Link) -> None: ...


class Lane:
    """One direction of a connection."""

    def __init__(self, let_out: Callable[[bytes | None, bool], None]) -> None:
        self._let_out = let_out
        # Where it comes from: not read from while too much is held.
        self.source: End | None = None
        # Frames with their lengths, or what is no frame; None is the end. Each with whether it has
        # been looked at before.
        self._waiting: deque[tuple[bytes | None, bool]] = deque()
        self._waiting_bytes = 0
        # The faults that hold it: nothing is let out while there are any.
        self._holds: set[object] = set()
        # Whether those are there whom it leads to.
        self.is_ready = True
        self._is_letting_out = False

    def put(self, item: bytes | None) -> None:
        self._waiting.append((item, False))
        self._waiting_bytes += len(item or b"")
        self.go_on()
        if self._waiting_bytes > _HELD_BYTES_MAX and self.source is not None:
            self.source.pause(self)

    def put_back(self, item: bytes, *, is_seen: bool) -> None:
        """Put something in front of everything that waits."""
        self._waiting.appendleft((item, is_seen))
        self._waiting_bytes += len(item)

    def hold(self, reason: object) -> None:
        self._holds.add(reason)

    def release(self, reason: object) -> None:
        self._holds.discard(reason)
        self.go_on()

    def heal(self) -> None:
        """Let go of whatever a fault held."""
        self._holds.clear()
        self.go_on()

    def clear(self) -> None:
        self._waiting.clear()
        self._waiting_bytes = 0

    def is_empty(self) -> bool:
        return not self._waiting

    def go_on(self) -> None:
        """Let out what may go."""
        # Letting something out may put more in: that has to wait its turn.
        if self._is_letting_out:
            return
        self._is_letting_out = True
        try:
            while self._waiting and self.is_ready and not self._holds:
                item, is_seen = self._waiting.popleft()
                self._waiting_bytes -= len(item or b"")
                self._let_out(item, is_seen)
        finally:
            self._is_letting_out = False
        if not self._waiting and self.source is not None:
            self.source.resume(self)


class End(asyncio.Protocol):
    """One of the two sockets of a link."""

    def __init__(self, received: Callable[[bytes | None], None], lost: Callable[[], None]) -> None:
        self._received = received
        self._lost = lost
        self.transport: Any = None
        # The other one: it is not read from while this one takes too little.
        self.opposite: End | None = None
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
        if self.opposite is not None:
            self.opposite.pause(self)

    def resume_writing(self) -> None:
        if self.opposite is not None:
            self.opposite.resume(self)

    def pause(self, reason: object) -> None:
        """Read nothing for now."""
        if not self._pauses and self.transport is not None and not self.transport.is_closing():
            self.transport.pause_reading()
        self._pauses.add(reason)

    def resume(self, reason: object) -> None:
        """Read again, if this was the last reason not to."""
        if reason not in self._pauses:
            return
        self._pauses.remove(reason)
        if not self._pauses and self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()

    def write(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)

    def close(self, *, reset: bool = False) -> None:
        """Close once everything is written; or, with `reset`, as if it had crashed."""
        if self.transport is None:
            return
        if not reset:
            self.transport.close()
            return
        sock = self.transport.get_extra_info("socket")
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
        self.transport.abort()


class _Splitter:
    """Cuts what comes into frames with their lengths, or leaves it as it is."""

    def __init__(self) -> None:
        self._frames = FrameBuffer(_FRAME_BYTES_MAX)
        # Set from outside, where frames are not what is spoken.
        self.is_plain = False

    def split(self, data: bytes) -> list[bytes]:
        if self.is_plain:
            return [data]
        frames = self._frames.receive_data(data)
        return [len(frame).to_bytes(4, "big") + frame for frame in frames]

    @property
    def is_lost(self) -> bool:
        """Whether something came that is no frame, after which nothing can be understood."""
        return self._frames.error is not None


class Link:
    """A client's connection, and the one to the server that belongs to it."""

    def __init__(self, owner: Owner, conversation: Conversation) -> None:
        self._owner = owner
        self._conversation = conversation
        self.to_server = Lane(self._let_out_to_server)
        self.to_client = Lane(self._let_out_to_client)
        self.client = End(self._from_client, self._lost)
        self.server = End(self._from_server, self._lost)
        self.client.opposite, self.server.opposite = self.server, self.client
        self.to_server.source, self.to_client.source = self.client, self.server
        self._requests = _Splitter()
        self._replies = _Splitter()
        # The first bytes, while they are too few to tell a frame from a four-letter word.
        self._first: bytes | None = b""
        # What is to happen at the reply to a request.
        self._faults: dict[SeenRequest, Fault] = {}
        # What is to cut the connection before this request, once those before it are answered.
        self._cut_before: tuple[Fault, SeenRequest] | None = None
        self._was_connected = False
        self._is_cut = False

    @property
    def lanes(self) -> tuple[tuple[Direction, Lane], ...]:
        return (Direction.TO_SERVER, self.to_server), (Direction.TO_CLIENT, self.to_client)

    @property
    def session_id(self) -> int:
        """The session that its client asked for or has; 0 before that."""
        return self._conversation.session_id

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
        for direction, lane in self.lanes:
            if direction in directions:
                lane.hold(FaultKind.BLACKHOLE)

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
            self._requests.is_plain = self._replies.is_plain = data[:4].isalpha()
        self._received(self.to_server, self._requests, data)

    def _from_server(self, data: bytes | None) -> None:
        self._received(self.to_client, self._replies, data)

    def _received(self, lane: Lane, splitter: _Splitter, data: bytes | None) -> None:
        if self._is_cut:
            return
        if data is None:
            lane.put(None)
            return
        for frame in splitter.split(data):
            lane.put(frame)
        if splitter.is_lost:
            self.cut()

    def _lost(self) -> None:
        if self.client.transport is None and self.server.transport is None:
            self._owner.forget(self)

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
            self._owner.connect(self)
        elif is_seen or self._requests.is_plain:
            self.server.write(frame)
        else:
            self._look_at_request(frame)

    def _look_at_request(self, frame: bytes) -> None:
        request = self._conversation.request(frame[4:])
        fault = self._owner.choose_fault(request)
        if fault is None:
            self.server.write(frame)
            return
        effect = fault.effect
        if effect.kind is FaultKind.CUT_BEFORE:
            # Healed before it comes to that, it goes on like any other.
            self.to_server.put_back(frame, is_seen=True)
            self.to_server.hold(fault)
            self._cut_before = fault, request
            self._cut_before_request()
        elif effect.kind is FaultKind.DELAY:
            self.to_server.put_back(frame, is_seen=True)
            self._hold_for(self.to_server, effect.seconds)
            fault.hit(request)
        elif effect.kind is FaultKind.BLACKHOLE:
            self.to_server.put_back(frame, is_seen=True)
            self.hold(effect.directions)
            fault.hit(request)
        else:
            self._faults[request] = fault
            self.server.write(frame)
            if effect.kind in CUTS:
                # Nothing behind it is to be carried out: after a cut, it is known what was.
                self.to_server.hold(fault)

    def _cut_before_request(self) -> None:
        """Cut where it was to be cut, if everything before that is answered."""
        if self._cut_before is None or not self.to_client.is_empty():
            return
        fault, request = self._cut_before
        if self._conversation.is_answered_but(request):
            self._cut_for(fault)
            fault.hit(request)

    # From the server.

    def _let_out_to_client(self, frame: bytes | None, is_seen: bool) -> None:
        if self._is_cut:
            return
        if frame is None:
            self.cut()
        elif is_seen or self._replies.is_plain:
            self.client.write(frame)
        else:
            self._look_at_answer(frame)
        self._cut_before_request()

    def _look_at_answer(self, frame: bytes) -> None:
        message = self._conversation.answer(frame[4:])
        fault = self._faults.pop(message.request, None) if isinstance(message, SeenReply) else None
        if fault is None or not isinstance(message, SeenReply):
            self.client.write(frame)
            return
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
            self._owner.stay_away()
        self.cut(reset=fault.effect.reset)

    def _hold_for(self, lane: Lane, seconds: float) -> None:
        # A reason of its own: delays may overlap.
        reason = object()
        lane.hold(reason)
        asyncio.get_running_loop().call_later(seconds, lane.release, reason)

"""The frame that tells of an event."""

from __future__ import annotations

from paddock.protocol import events
from paddock.protocol.framing import FrameBuffer
from paddock.protocol.jute import Reader
from paddock.protocol.records import NOTIFICATION_XID, ReplyHeader, WatcherEvent


def test_a_notification_is_a_frame_with_a_header_and_an_event() -> None:
    frame = events.notification(events.NODE_DELETED, b"/a/b", 1 << 40)
    [payload] = FrameBuffer(100).receive_data(frame)
    reader = Reader(payload)
    assert ReplyHeader.read(reader) == ReplyHeader(NOTIFICATION_XID, 1 << 40, 0)
    assert WatcherEvent.read(reader) == WatcherEvent(
        events.NODE_DELETED, events.SYNC_CONNECTED, b"/a/b"
    )
    assert reader.rest() == b""

"""Events: their types, the session states, and the notification frame."""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_i32_be, write_i64_be

from paddock.protocol.records import NOTIFICATION_XID

NONE: Final = -1
NODE_CREATED: Final = 1
NODE_DELETED: Final = 2
NODE_DATA_CHANGED: Final = 3
NODE_CHILDREN_CHANGED: Final = 4
DATA_WATCH_REMOVED: Final = 5
CHILD_WATCH_REMOVED: Final = 6
PERSISTENT_WATCH_REMOVED: Final = 7

DISCONNECTED: Final = 0
SYNC_CONNECTED: Final = 3
AUTH_FAILED: Final = 4
CONNECTED_READ_ONLY: Final = 5
SASL_AUTHENTICATED: Final = 6
CLOSED: Final = 7
EXPIRED: Final = -112


NO_ZXID: Final = -1
"""The zxid of an event without a change, such as one that setWatches fires."""


def notification(kind: int, path: bytes, zxid: int) -> bytes:
    """Return the frame of an event, with its length; it is the same for every watcher.

    Its header has the zxid of the change, as in 3.9.
    """
    writer = BytesWriter()
    write_i32_be(writer, 28 + len(path))
    write_i32_be(writer, NOTIFICATION_XID)
    write_i64_be(writer, zxid)
    write_i32_be(writer, 0)
    write_i32_be(writer, kind)
    write_i32_be(writer, SYNC_CONNECTED)
    write_i32_be(writer, len(path))
    writer.write(path)
    return writer.getvalue()

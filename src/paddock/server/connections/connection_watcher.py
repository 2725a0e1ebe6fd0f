"""The watcher of a connection: it puts watch events into the connection's send buffer."""

from __future__ import annotations

from paddock.server.connections.send_buffer import SendBuffer
from paddock.server.replication.replica import Replica
from paddock.server.replication.submitter import Submitter
from paddock.state.watcher import Watcher


class ConnectionWatcher(Watcher):
    """Holds the watches of one connection, with the client's session and identities."""

    def __init__(self, replica: Replica, buffer: SendBuffer) -> None:
        super().__init__()
        # 0 until it is known which session the client gets.
        self.session = 0
        # Flushes the buffer after a batch; None once the connection is closed.
        self.submitter: Submitter | None = None
        self._replica = replica
        self._buffer = buffer

    def notify(self, event: bytes) -> None:
        self.notify_all(event, 1)

    def notify_all(self, frames: bytes, count: int) -> None:
        submitter = self.submitter
        if submitter is not None:
            self._buffer.packets(frames, count)
            self._replica.mark_dirty(submitter)

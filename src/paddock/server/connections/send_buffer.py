"""The send buffer of a connection: replies gather, go out in one write, and are counted.

Replies gather until a flush. As long as the peer reads, a flush hands all of it to the transport;
while the peer does not read, it waits here, large bodies by reference, so that a thousand replies
with the same node cost the memory of one. A body counts once as backlog, however often it waits:
its node may have other data by now. So does the piece at which the transport paused us. A peer with
too much backlog, its own or all peers' together, is overdue: nothing more is kept for it, and its
connection is to be dropped.
"""

from __future__ import annotations

import asyncio
import os
from typing import Final

from librt.strings import BytesWriter, write_i32_be, write_i64_be
from mypy_extensions import i32, i64

from paddock.server.replication.lease import Lease
from paddock.server.replication.proposals import Submitter
from paddock.server.replication.replica import Replica
from paddock.server.statistics import Statistics
from paddock.state.access import Identities
from paddock.state.queries import Queries
from paddock.state.watcher import Watcher

# How much may gather before it is sent.
_GATHERED_BYTES_MAX: Final = 1 << 20
# So much a writer holds without memory of its own; it is used again if it had no more.
_KEPT_BYTES_MAX: Final = 256
# A writer that has gathered more is not used again, nor are more of them kept.
_ROOM_BYTES_MAX: Final = 1 << 16
_IDLE_WRITERS_MAX: Final = 16
# A packet of this size is not copied.
_LARGE_BYTES: Final = 1 << 14
# Waiting pieces are joined up to this size.
_PIECE_BYTES_MIN: Final = 1 << 12
# The backlog that every peer may have, however much the others have.
_SHARE_BYTES: Final = 1 << 20


class Writers:
    """Writers with memory of their own, for buffers in which much will gather.

    A writer that grows from nothing copies what it has again and again: for the replies to 100 gets
    eight times, which took a twentieth of the time of all. To keep it would cost memory for each of
    many thousand connections. So they use a few by turns.
    """

    def __init__(self) -> None:
        self._idle: list[BytesWriter] = []

    def take(self) -> BytesWriter:
        """Return a writer that holds nothing."""
        return self._idle.pop() if self._idle else BytesWriter()

    def put_back(self, writer: BytesWriter) -> None:
        """Take a writer that is not used any more, with what it holds."""
        if len(writer) <= _ROOM_BYTES_MAX and len(self._idle) < _IDLE_WRITERS_MAX:
            writer.truncate(0)
            self._idle.append(writer)


class Backlog:
    """Bytes that wait for peers that do not read, of all connections of a server.

    The connections share their writers with it.
    """

    def __init__(self, bytes_max: int, size_max: int) -> None:
        # For how many peers each large body waits, by its identity: it counts once for all.
        self._bodies: dict[int, int] = {}
        # The limits for one connection and for all of them; 0 is unlimited.
        self.bytes_max = bytes_max
        self.size_max = size_max
        self.size = 0
        self.writers = Writers()

    def add_body(self, body: bytes) -> None:
        """Count a large body that waits for one more peer."""
        peers = self._bodies.get(id(body), 0)
        self._bodies[id(body)] = peers + 1
        if not peers:
            self.size += len(body)

    def remove_body(self, body: bytes) -> None:
        """Count a large body that waits for one peer less."""
        peers = self._bodies[id(body)] - 1
        if peers:
            self._bodies[id(body)] = peers
        else:
            del self._bodies[id(body)]
            self.size -= len(body)

    def is_over(self) -> bool:
        """Return whether the limit for all connections is exceeded."""
        return 0 < self.size_max < self.size


class SendBuffer:
    """The bytes on their way to one peer."""

    def __init__(self, statistics: Statistics, backlog: Backlog) -> None:
        self.transport: asyncio.Transport | None = None
        # The socket's descriptor, if bytes written there go out unchanged; otherwise -1.
        self.file = -1
        # Whether the peer takes what we send.
        self.peer_reads = True
        # Whether the peer has more backlog than it may.
        self.is_overdue = False
        # Whether the transport is closed once everything has been sent.
        self.is_last = False
        # Without it nothing is sent; None if that is no matter here.
        self.lease: Lease | None = None
        # Packets sent since the beginning, and the zxid of the last reply.
        self.sent: i64 = 0
        self.last_zxid: i64 = 0
        self._statistics = statistics
        self._backlog = backlog
        self._gathered = BytesWriter()
        # Whether that came from the writers, and goes back with the next flush.
        self._is_roomy = False
        # Bytes of large bodies since the last flush.
        self._large: i64 = 0
        self._packets: i64 = 0
        # What waits for the peer, in order, with what each piece counts for; -1 is a large body.
        # A list, since it is nearly always empty, and an empty deque is ten times as large.
        self._waiting: list[tuple[bytes, int]] = []
        # How often each large body waits, by its identity: it stays the same while it waits.
        self._bodies: dict[int, int] | None = None
        # The size of the piece at which the transport paused us.
        self._handed = 0
        # Invariant: the sum of what the pieces count for, and of what was handed; and the part of
        # it that counts for this peer alone.
        self._size = 0
        self._own_size = 0
        # Bytes handed to the transport, and how many of them the peer had taken when last asked.
        self._written = 0
        self._taken = 0

    def expect_much(self) -> None:
        """Gather what comes next in a writer that has memory for much."""
        if not self._is_roomy and not len(self._gathered):
            self._gathered = self._backlog.writers.take()
            self._is_roomy = True

    def reply(self, xid: i32, zxid: i64, error: i32, body: bytes) -> None:
        gathered = self._gathered
        write_i32_be(gathered, 16 + len(body))
        write_i32_be(gathered, xid)
        write_i64_be(gathered, zxid)
        write_i32_be(gathered, error)
        gathered.write(body)
        self._packets += 1
        self.last_zxid = zxid

    def reply_large(self, xid: i32, zxid: i64, head: bytes, body: bytes, tail: bytes) -> None:
        """Send a reply of three parts, of which `body` is not copied."""
        gathered = self._gathered
        write_i32_be(gathered, 16 + len(head) + len(body) + len(tail))
        write_i32_be(gathered, xid)
        write_i64_be(gathered, zxid)
        write_i32_be(gathered, 0)
        gathered.write(head)
        self._packets += 1
        self._put_body(body)
        self._gathered.write(tail)
        self.last_zxid = zxid

    def reply_to_plain_gets(
        self,
        queries: Queries,
        frames: bytes,
        position: i64,
        end: i64,
        count_max: i64,
        identities: Identities,
    ) -> tuple[i64, i64]:
        """Reply as `Queries.answer_plain_gets` answers; return the count and the end of the gets.

        It stops when so much has gathered that it should be sent.
        """
        size_max = _GATHERED_BYTES_MAX - self._large
        count, position = queries.answer_plain_gets(
            frames, position, end, count_max, identities, self._gathered, size_max
        )
        if count:
            self._packets += count
            self.last_zxid = queries.machine.zxid
        return count, position

    def packets(self, whole: bytes, count: i64) -> None:
        """Send `count` packets that are encoded already, one behind the other."""
        self._packets += count
        if len(whole) >= _LARGE_BYTES:
            # Many peers may get the same large event.
            self._put_body(whole)
            return
        self._gathered.write(whole)
        if len(self._gathered) > _GATHERED_BYTES_MAX:
            self.flush()

    def is_full(self) -> bool:
        """Return whether so much has gathered that it should be sent before more does."""
        return len(self._gathered) + self._large > _GATHERED_BYTES_MAX

    def has_gathered(self) -> bool:
        """Return whether a flush would send something small."""
        return len(self._gathered) > 0

    def is_lagging(self) -> bool:
        """Return whether the peer has more backlog than its share."""
        return self._size > _SHARE_BYTES

    def give_up(self) -> None:
        """Forget what waits, and keep nothing more: the connection is to be dropped."""
        self.is_overdue = True
        self.discard()

    def abort(self) -> None:
        """Close the transport at once."""
        if self.transport is not None:
            self.transport.abort()

    def resume(self) -> None:
        """Note that the peer reads again."""
        self.peer_reads = True
        self._discount(self._handed)
        self._handed = 0

    def flush(self, gives_way: bool = False) -> None:
        """Send what has gathered; with `gives_way` other threads may run meanwhile."""
        transport = self.transport
        if self.lease is not None and self.lease.is_over():
            self.abort()
            return
        if self._waiting or not self.peer_reads:
            self._large = 0
            self._put_gathered()
            self._feed()
        elif len(self._gathered):
            data = self._take_gathered()
            if transport is not None:
                self._written += len(data)
                if gives_way:
                    data = self._write_now(transport, data)
                if data:
                    transport.write(data)
        if self.is_last and transport is not None and not self._waiting:
            self._close(transport)

    def _close(self, transport: asyncio.Transport) -> None:
        # Once: a transport of TLS that is closed again cannot be aborted any more.
        if not transport.is_closing():
            transport.close()

    def discard(self) -> None:
        """Forget what waits: there is no peer to take it any more."""
        if self._bodies is not None:
            # Each once, while what waits keeps its identity.
            for body, size in self._waiting:
                if size < 0 and self._bodies.pop(id(body), 0):
                    self._backlog.remove_body(body)
            self._bodies = None
        self._waiting.clear()
        self._backlog.size -= self._own_size
        self._size = 0
        self._own_size = 0
        self._handed = 0
        self._gathered = BytesWriter()
        self._is_roomy = False

    def has_progressed(self) -> bool:
        """Return whether the peer, or the system for it, took anything since the last call."""
        waiting = 0 if self.transport is None else self.transport.get_write_buffer_size()
        taken = self._written - waiting
        progressed = taken > self._taken
        self._taken = taken
        return progressed

    def _write_now(self, transport: asyncio.Transport, data: bytes) -> bytes:
        """Write past the transport what the system takes, and return the rest.

        uvloop's transport holds the GIL while it writes, which is nearly all that a busy server
        does. A thread that waits for the GIL, as the log's does after each sync if it is Python's,
        then waits for milliseconds.
        """
        if self.file < 0 or transport.is_closing() or transport.get_write_buffer_size():
            return data
        try:
            return data[os.write(self.file, data) :]
        except OSError:
            # The transport will meet the same error, and handles it.
            return data

    def _take_gathered(self) -> bytes:
        self._statistics.packets_sent += self._packets
        self.sent += self._packets
        self._packets = 0
        used = self._gathered
        data = used.getvalue()
        if self._is_roomy or len(data) > _KEPT_BYTES_MAX:
            # In this order: without memory for a new one, the old one must not be lent to others.
            self._gathered = BytesWriter()
            self._is_roomy = False
            self._backlog.writers.put_back(used)
        else:
            used.truncate(0)
        self._statistics.bytes_sent += len(data)
        return data

    def _put_gathered(self) -> None:
        if len(self._gathered):
            data = self._take_gathered()
            self._put(data, len(data))

    def _put_body(self, body: bytes) -> None:
        """Queue a large body behind what has gathered; it counts once, however often it waits."""
        self._put_gathered()
        self._large += len(body)
        self._statistics.bytes_sent += len(body)
        bodies = self._bodies
        if bodies is None:
            bodies = {}
            self._bodies = bodies
        waits = bodies.get(id(body), 0)
        if self._may_wait():
            bodies[id(body)] = waits + 1
            self._waiting.append((body, -1))
            if not waits:
                self._size += len(body)
                self._backlog.add_body(body)

    def _leave(self, piece: bytes, size: int) -> int:
        """Count a piece that does not wait any more; return what it counted for.

        From then on it counts for this peer alone: the transport has it.
        """
        bodies = self._bodies
        if size >= 0 or bodies is None:
            return size
        waits = bodies[id(piece)] - 1
        if waits:
            bodies[id(piece)] = waits
            return 0
        del bodies[id(piece)]
        if not bodies:
            self._bodies = None
        self._backlog.remove_body(piece)
        self._backlog.size += len(piece)
        self._own_size += len(piece)
        return len(piece)

    def _may_wait(self) -> bool:
        """Return whether one more piece may wait; if there is too much already, give up."""
        if self.is_overdue or self.transport is None:
            return False
        backlog = self._backlog
        # One more piece is taken whatever its size, but not on top of too much. For a peer that
        # reads, nothing waits for longer than until the next flush.
        if not self.peer_reads and (
            0 < backlog.bytes_max < self._size - self._handed
            or (backlog.is_over() and self.is_lagging())
        ):
            self.give_up()
            return False
        return True

    def _put(self, piece: bytes, size: int) -> None:
        if not self._may_wait():
            return
        self._size += size
        self._own_size += size
        self._backlog.size += size
        waiting = self._waiting
        last_size = waiting[-1][1] if waiting else 0
        if last_size > 0 < size and last_size + size <= _PIECE_BYTES_MIN:
            # Events come in small pieces. As many of them as the backlog allows would take far
            # more memory than they count for, and far too long to be handed over one by one.
            waiting[-1] = (waiting[-1][0] + piece, last_size + size)
        else:
            waiting.append((piece, size))

    def _feed(self) -> None:
        """Hand the transport what waits, until it pauses us."""
        waiting, transport = self._waiting, self.transport
        while waiting and self.peer_reads and transport is not None:
            piece, size = waiting.pop(0)
            self._written += len(piece)
            transport.write(piece)
            self._hand(self._leave(piece, size))

    def _hand(self, size: int) -> None:
        """Discount what the transport took, unless it has paused us with that."""
        if self.peer_reads:
            self._discount(size)
        elif not self.is_overdue:
            self._handed = size

    def _discount(self, size: int) -> None:
        self._size -= size
        self._own_size -= size
        self._backlog.size -= size


class ConnectionWatcher(Watcher):
    """The watcher of one connection: puts events into its send buffer."""

    def __init__(self, replica: Replica, buffer: SendBuffer) -> None:
        super().__init__()
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

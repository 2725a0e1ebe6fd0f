"""The answers to one client's queries, and replies that are ready, in the order of its requests.

`answer` and `answer_gets` answer from memory and at once, so they are for queries that nothing is
ahead of. Behind writes in flight, queries and replies wait in the reply queue, and `answer_waiting`
sends them when the writes before them are answered. Not everything may wait there: what takes long
would be answered in the middle of a batch (`must_wait`, and heavy requests).

`send` and `send_answer` send at once in any case. Replies to writes are the request handler's.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i32_be
from mypy_extensions import i32, i64

from paddock.errors import AUTH_FAILED, OK, SESSION_CLOSED_REQUIRE_SASL, UNIMPLEMENTED
from paddock.protocol import opcodes
from paddock.protocol.framing import LENGTH_BYTES, REQUEST_HEADER_BYTES
from paddock.protocol.jute import DecodeError, Reader
from paddock.server.connections.core import Core
from paddock.server.connections.reply_queue import FINAL, QUERIES, ReplyQueue, Waiting
from paddock.server.connections.send_buffer import ConnectionWatcher, SendBuffer
from paddock.state.access import Identities
from paddock.state.queries import LARGE_BYTES
from paddock.storage import events

# A longer request is heavy, whatever it asks for: parsing its path takes long.
HEAVY_BYTES: Final = 1 << 15
# How many queries may wait for writes of their client, to be answered within a batch.
_WAITING_MAX: Final = 500
# A node with more children is not listed within a batch.
_CHILDREN_MAX: Final = 1_000

# Why the connection closes behind a reply with this code.
_FINAL_REASONS: Final = {
    OK: events.CLOSED,
    AUTH_FAILED: events.AUTHENTICATION,
    SESSION_CLOSED_REQUIRE_SASL: events.AUTHENTICATION,
    UNIMPLEMENTED: events.PROTOCOL_ERROR,
}


class Replies:
    """The part of a connection that answers queries: at once, or right after the writes before."""

    def __init__(
        self, core: Core, queue: ReplyQueue, buffer: SendBuffer, watcher: ConnectionWatcher
    ) -> None:
        self._queries = core.queries
        self._machine = core.machine
        self._replica = core.replica
        self._proposer = core.proposer
        self._queue = queue
        self._buffer = buffer
        self._watcher = watcher

    # At once.

    def send(self, xid: int, code: int) -> None:
        """Send a reply without a body."""
        self._buffer.reply(xid, self._machine.zxid, code, b"")

    def send_answer(self, xid: i32, error: i32, answer: bytes) -> None:
        """Send a reply with a body; a large one is never that of an error."""
        if len(answer) < LARGE_BYTES:
            self._buffer.reply(xid, self._machine.zxid, error, answer)
        else:
            self._buffer.reply_large(xid, self._machine.zxid, b"", answer, b"")

    def answer(
        self, operation: int, xid: i32, data: bytes, start: i64, end: i64, identities: Identities
    ) -> None:
        """Answer the query whose request `data` holds from `start` to `end`."""
        queries = self._queries
        error, answer = queries.answer(operation, data, start, end, self._watcher, identities)
        large = queries.large
        if large is not None:
            queries.large = None
            head, tail = answer[: queries.large_at], answer[queries.large_at :]
            self._buffer.reply_large(xid, self._machine.zxid, head, large, tail)
        elif len(answer) < LARGE_BYTES:
            # Not by `send_answer`: the call would be 2 % of an exists.
            self._buffer.reply(xid, self._machine.zxid, error, answer)
        else:
            self.send_answer(xid, error, answer)

    def answer_gets(
        self, data: bytes, start: i64, last_end: i64, count_max: i64, identities: Identities
    ) -> tuple[i64, i64]:
        """Answer the get whose frame begins at `start`, and with it the plain ones behind it.

        Returns how many plain ones there were, which is 0 if this one is not, and the end of all.
        """
        count, end = self._buffer.reply_to_plain_gets(
            self._queries, data, start, last_end, count_max, identities
        )
        if not count:
            end = self._answer_frame(data, start, identities)
        return count, end

    def _answer_frame(self, data: bytes, start: i64, identities: Identities) -> i64:
        """Answer the query whose frame begins at `start`; return where it ends."""
        length: int = read_i32_be(data, start)
        start += LENGTH_BYTES
        xid, operation = read_i32_be(data, start), read_i32_be(data, start + 4)
        self.answer(operation, xid, data, start + REQUEST_HEADER_BYTES, start + length, identities)
        return start + length

    # Behind writes.

    def must_wait(self, operation: int, data: bytes, start: i64, end: i64) -> bool:
        """Return whether a query behind a write has to wait until no write is in flight."""
        if self._queue.waiting_count >= _WAITING_MAX:
            return True
        if operation in (opcodes.GET_CHILDREN, opcodes.GET_CHILDREN2):
            tree = self._machine.tree
            try:
                node = tree.nodes.get(Reader(data[start:end]).string())
            except DecodeError:
                return False
            # Without room to keep it, a list would be made anew each time.
            return not tree.answers.has_room() or (
                node is not None and node.child_count() > _CHILDREN_MAX
            )
        return False

    def enqueue_queries(self, data: bytes, start: i64, end: i64, last_end: i64) -> i64:
        """Enqueue a query, and with it the gets and exists right behind it; return their end.

        They share one entry of the queue. With an entry each, one that waits took three times as
        long as one that is answered at once; now it takes twice as long.
        """
        room: i64 = _WAITING_MAX - self._queue.waiting_count
        count: i64 = 1
        while count < room and end < last_end:
            length: int = read_i32_be(data, end)
            if not REQUEST_HEADER_BYTES <= length <= HEAVY_BYTES:
                break
            operation = read_i32_be(data, end + LENGTH_BYTES + 4)
            if operation not in (opcodes.GET_DATA, opcodes.EXISTS):
                break
            end += LENGTH_BYTES + length
            count += 1
        self.enqueue(Waiting(QUERIES, data[start:end], count, self._watcher.identities))
        return end

    def enqueue(self, waiting: Waiting) -> None:
        """Put something into the queue.

        Invariant: `Proposer.waiting_bytes` is the sum of the queues' `waiting_bytes`.
        """
        self._queue.put(waiting)
        self._proposer.waiting_bytes += len(waiting.body)

    def answer_waiting(self) -> str:
        """Answer what is first in the queue, up to the next write.

        Returns why the connection is to be closed behind that, or "".
        """
        queue, reason = self._queue, ""
        while queue.can_answer() and not self._buffer.is_overdue:
            first = queue.take()
            self._proposer.waiting_bytes -= len(first.body)
            self._replica.work += first.count
            if first.kind == QUERIES:
                self._answer_queries(first)
                continue
            # A client never sees a zxid go back: what came before may have had a higher one.
            zxid = first.zxid if first.zxid <= 0 else self._machine.zxid
            self._buffer.reply(first.xid, zxid, first.error, first.body)
            if first.kind == FINAL:
                reason = _FINAL_REASONS.get(first.error, events.FAULT)
                break
        return reason

    def clear(self) -> None:
        """Drop what waits."""
        self._proposer.waiting_bytes -= self._queue.waiting_bytes
        self._queue.clear()

    def _answer_queries(self, waiting: Waiting) -> None:
        frames, identities = waiting.body, waiting.identities
        position: i64 = 0
        while position < len(frames) and not self._buffer.is_overdue:
            if read_i32_be(frames, position + LENGTH_BYTES + 4) == opcodes.GET_DATA:
                _, position = self.answer_gets(
                    frames, position, len(frames), waiting.count, identities
                )
            else:
                position = self._answer_frame(frames, position, identities)
            if self._buffer.is_full():
                self._buffer.flush()

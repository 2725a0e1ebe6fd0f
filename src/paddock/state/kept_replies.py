"""The last replies of an exact session, as the state keeps them; see `paddock.protocol.exact`.

They are part of the state: of its snapshots, and of the digest of a state that servers share. So a
client finds them after a restart, and on another server. The rules:

* Kept is what was applied under the session's generation, whether it succeeded or not; also a
  transaction, as one. What never reached the log is not kept, nor what was answered SESSION_MOVED
  or SESSION_EXPIRED: it had no effect. A sync has none either, and is sent again like a read.
* The last `WINDOW` replies are kept, of the last generation that has written. When one is dropped,
  its xid is the confirmed one.
* Bodies are bounded: `SESSION_BYTES_MAX` for a session, `ALL_BYTES_MAX` for all of them. A reply
  that does not fit takes the place of the eldest bodies of its own session, or has none itself.
  What is left of such a reply is its xid, its zxid and its error.
* Time plays no part: a session that does not write keeps what it has until it ends. Each reply
  takes 20 bytes beside its body: 10,000 sessions with full windows take 50 MB, and 64 MiB for the
  bodies at most.
"""

from __future__ import annotations

from hashlib import blake2b
from struct import Struct
from typing import Final

from librt.strings import BytesWriter, write_i64_be
from mypy_extensions import i64

# How many replies a session keeps, and how many writes its client may have in flight.
WINDOW: Final = 256
# How many bytes of bodies are kept, for one session and for all.
SESSION_BYTES_MAX: Final = 64 << 10
ALL_BYTES_MAX: Final = 64 << 20

# A reply without its body: xid, zxid, error, and the length of the body. It is packed and unpacked
# at once: there is one for each write.
_HEAD: Final = Struct(">iqii")
REPLY_BYTES_MIN: Final = 20
_LENGTH_AT: Final = 16
# The length of a body that is not there.
_NO_BODY: Final = b"\xff\xff\xff\xff"
# How many bytes of dropped replies are left in place, so that not each drop moves all others.
_SLACK_BYTES_MAX: Final = 4 << 10


class KeptReplies:
    """The replies that are kept for one session."""

    __slots__ = (
        "_bare_count",
        "_data",
        "_start",
        "confirmed",
        "count",
        "generation",
        "size",
        "term",
    )

    def __init__(self) -> None:
        # The generation under which they were given. Invariant: 0 if and only if there are none.
        self.generation = 0
        # The xid of the last reply of this generation that was dropped; 0 if there is none.
        self.confirmed = 0
        # How many there are. Invariant: at most WINDOW.
        self.count: i64 = 0
        # The bytes of all bodies. Invariant: at most SESSION_BYTES_MAX.
        self.size: i64 = 0
        # The sum of their terms, where servers share a log; else 0.
        self.term = 0
        # A `KeptReply` each, encoded, the eldest first, from a position on: as one object, since
        # small ones take several times their bytes.
        self._data = bytearray()
        self._start: i64 = 0
        # How many of the eldest are known to have no body.
        self._bare_count: i64 = 0

    def data(self) -> bytes:
        """Return the replies, a `KeptReply` each, the eldest first."""
        return bytes(self._data[self._start :])

    def add(
        self,
        session: int,
        generation: int,
        xid: int,
        zxid: int,
        error: int,
        body: bytes,
        room: i64,
        digests: bool,
    ) -> None:
        """Keep a reply; all sessions together may have `room` more bytes of bodies."""
        if generation != self.generation:
            room += self.size
            self.generation = generation
            self.confirmed = 0
            self.count = self.size = self._start = self._bare_count = 0
            self.term = 0
            self._data = bytearray()
        elif self.count >= WINDOW:
            room += self._drop(session, digests)
        size: i64 = len(body)
        if size > 0 and (size > room or self.size + size > SESSION_BYTES_MAX):
            if size > SESSION_BYTES_MAX or size > room + self.size:
                size = -1
            else:
                while size > room or self.size + size > SESSION_BYTES_MAX:
                    room += self._strip(session, digests)
        record = _HEAD.pack(xid, zxid, error, size)
        if size > 0:
            record += body
            self.size += size
        self._data += record
        self.count += 1
        if digests:
            self.term += self._term_of(session, record)

    def _drop(self, session: int, digests: bool) -> i64:
        """Drop the eldest reply; return the bytes of its body."""
        start = self._start
        head: tuple[int, int, int, int] = _HEAD.unpack_from(self._data, start)
        self.confirmed = head[0]
        size: i64 = max(0, head[3])
        if digests:
            self.term -= self._term_at(session, start, size)
        self._start = start + REPLY_BYTES_MIN + size
        self.count -= 1
        self.size -= size
        if self._bare_count:
            self._bare_count -= 1
        if self._start > _SLACK_BYTES_MAX:
            del self._data[: self._start]
            self._start = 0
        return size

    def _strip(self, session: int, digests: bool) -> i64:
        """Let go of the eldest body, or note that it is none; return its bytes."""
        at = self._start + REPLY_BYTES_MIN * self._bare_count
        self._bare_count += 1
        size = self._size_at(at)
        if size > 0:
            if digests:
                self.term -= self._term_at(session, at, size)
            length_at = at + _LENGTH_AT
            self._data[length_at : length_at + 4 + size] = _NO_BODY
            self.size -= size
            if digests:
                self.term += self._term_at(session, at, 0)
        return size

    def adopt(self, generation: int, confirmed: int, count: int, data: bytes) -> bool:
        """Take over what a snapshot has; return False if that cannot be."""
        self.generation = generation
        self.confirmed = confirmed
        self.count = count
        self._data = bytearray(data)
        position: i64 = 0
        for _ in range(count):
            if position + REPLY_BYTES_MIN > len(data):
                return False
            size = self._size_at(position)
            self.size += size
            position += REPLY_BYTES_MIN + size
        return position == len(data)

    def adopt_term(self, session: int) -> None:
        """Compute the term anew, after the state came to be shared."""
        self.term = 0
        position = self._start
        for _ in range(self.count):
            size = self._size_at(position)
            self.term += self._term_at(session, position, size)
            position += REPLY_BYTES_MIN + size

    def _size_at(self, position: i64) -> i64:
        """Return the bytes of the body of a reply."""
        head: tuple[int, int, int, int] = _HEAD.unpack_from(self._data, position)
        return max(0, head[3])

    def _term_at(self, session: int, position: i64, size: i64) -> int:
        return self._term_of(
            session, bytes(self._data[position : position + REPLY_BYTES_MIN + size])
        )

    def _term_of(self, session: int, record: bytes) -> int:
        """Return what a reply contributes to the digest of the sessions."""
        writer = BytesWriter()
        write_i64_be(writer, session)
        write_i64_be(writer, self.generation)
        writer.write(record)
        return int.from_bytes(blake2b(writer.getvalue(), digest_size=8).digest(), "big")

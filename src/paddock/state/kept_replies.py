"""The last replies of an exact session, as the state keeps them; see `paddock.protocol.exact`.

They are part of the state: of its snapshots, and of the digest of a state that servers share. So a
client finds them after a restart, and on another server. The rules:

* Kept is what was applied under the session's generation, whether it succeeded or not; also a
  transaction, as one. What never reached the log is not kept, nor what was answered SESSION_MOVED
  or SESSION_EXPIRED: it had no effect. A sync has none either, and is sent again like a read.
* The last `WINDOW` replies are kept, of the last generation that has written; and some more, since
  they lie in chunks. The eldest chunk goes when there are `WINDOW` without it, and its last xid is
  the confirmed one. So a write costs little more than the bytes of its reply.
* Bodies are bounded: `SESSION_BYTES_MAX` for a session, of which `OWN_BYTES` are its own, and
  `ALL_BYTES_MAX` for what all of them have beyond that. A reply that does not fit takes the place
  of the bodies of the eldest chunks of its own session, or has none itself. What is left of a reply
  without its body is its xid, its zxid and its error.
* A refused transaction has no body: kept is which of its operations failed, in the place of the
  length (`paddock.protocol.exact`).
* Chunks without bodies are joined, up to the count of one.
* Where the chunks end is part of the state: what goes, goes everywhere with the same write.
* Time plays no part: a session that does not write keeps what it has until it ends. Each reply
  takes 20 bytes beside its body, and each chunk about 150: 10,000 sessions with full windows take
  about 300 MiB, 64 of them for bodies beyond their own.
* All of this is state: another window, another end of a chunk or another bound needs new rules.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i32_be, write_i32_be, write_i64_be
from mypy_extensions import i32, i64

from paddock._checksums import crc32
from paddock.protocol.exact import FIRST_FAILED, NOT_KEPT

# How many writes a client may have in flight. With this many, a crowd of a thousand is not slower.
WINDOW: Final = 1024
# How many bytes of bodies are kept: for one session, of them in any case, and for all of the rest.
SESSION_BYTES_MAX: Final = 256 << 10
OWN_BYTES: Final = 2 << 10
ALL_BYTES_MAX: Final = 64 << 20
# A chunk ends with so many replies, or so many bytes.
CHUNK: Final = 256
CHUNK_BYTES: Final = 16 << 10

# A reply without its body: xid, zxid, error, and the length of the body or what stands for it.
REPLY_BYTES_MIN: Final = 20
_LENGTH_AT: Final = 16


class Chunk:
    """Some replies, a `KeptReply` each, encoded: as one object, since small ones take more."""

    __slots__ = ("count", "data", "last_xid", "size", "term")

    def __init__(self, data: bytes, count: i64, size: i64, last_xid: int, term: int) -> None:
        self.data = data
        self.count = count
        # The bytes of all bodies.
        self.size = size
        self.last_xid = last_xid
        # What it contributes to the digest of the sessions, where servers share a log; else 0.
        self.term = term


class KeptReplies:
    """The replies that are kept for one session."""

    __slots__ = (
        "_chunks",
        "_last",
        "_last_count",
        "_last_size",
        "_last_term",
        "_last_xid",
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
        # How many there are. Invariant: less than WINDOW and two chunks.
        self.count: i64 = 0
        # The bytes of all bodies. Invariant: at most SESSION_BYTES_MAX.
        self.size: i64 = 0
        # The sum of the terms of all chunks, where servers share a log; else 0.
        self.term = 0
        # The chunks that have ended, the eldest first; and the one to which replies are added.
        self._chunks: list[Chunk] = []
        self._last = BytesWriter()
        self._last_count: i64 = 0
        self._last_size: i64 = 0
        self._last_xid = 0
        self._last_term = 0

    def excess(self) -> i64:
        """Return how many bytes of bodies it has beyond its own."""
        return max(self.size - OWN_BYTES, 0)

    def data(self) -> bytes:
        """Return the replies, a `KeptReply` each, the eldest first."""
        return b"".join([chunk.data for chunk in self._chunks]) + self._last.getvalue()

    def add(
        self,
        session: int,
        generation: int,
        xid: int,
        zxid: int,
        error: int,
        failed: i64,
        body: bytes,
        room: i64,
        digests: bool,
    ) -> None:
        """Keep a reply; all sessions together may have `room` more bytes beyond their own.

        Of a refused transaction kept is which operation `failed`, for all others that is -1.
        """
        if generation != self.generation:
            room += self.excess()
            self._begin(session, generation, digests)
        size: i64 = len(body)
        if failed >= 0:
            size = FIRST_FAILED - failed
        elif size > 0:
            most = min(SESSION_BYTES_MAX, max(self.size, OWN_BYTES) + room)
            if self.size + size > most:
                size = self._make_room(session, size, most, digests)
        last = self._last
        if digests:
            record = BytesWriter()
            _write_reply(record, xid, zxid, error, size, body)
            last.write(record.getvalue())
            term = crc32(record.getvalue(), self._last_term)
            self.term += term - self._last_term
            self._last_term = term
        else:
            _write_reply(last, xid, zxid, error, size, body)
        if size > 0:
            self.size += size
            self._last_size += size
        self.count += 1
        self._last_count += 1
        self._last_xid = xid
        if self._last_count >= CHUNK or len(last) >= CHUNK_BYTES:
            self._end_chunk(session, digests)

    def _begin(self, session: int, generation: int, digests: bool) -> None:
        """Forget everything: there is another generation."""
        self.generation = generation
        self.confirmed = 0
        self.count = self.size = 0
        self.term = 0
        self._chunks = []
        self._open_chunk(session, digests)

    def _open_chunk(self, session: int, digests: bool) -> None:
        self._last = BytesWriter()
        self._last_count = self._last_size = 0
        self._last_term = self._first_term(session) if digests else 0
        self.term += self._last_term

    def _end_chunk(self, session: int, digests: bool) -> None:
        """End the last chunk, and drop those that are needed no more."""
        data = self._last.getvalue()
        self._chunks.append(
            Chunk(data, self._last_count, self._last_size, self._last_xid, self._last_term)
        )
        self._open_chunk(session, digests)
        while self.count - self._chunks[0].count >= WINDOW:
            eldest = self._chunks.pop(0)
            self.confirmed = eldest.last_xid
            self.count -= eldest.count
            self.size -= eldest.size
            self.term -= eldest.term

    def _make_room(self, session: int, size: i64, most: i64, digests: bool) -> i64:
        """Let go of the bodies of the eldest chunks until another one fits, with `most` in all.

        Return its size, or NOT_KEPT if it cannot fit.
        """
        if size > most:
            return NOT_KEPT
        chunks = self._chunks
        number = 0
        while self.size + size > most:
            if number == len(chunks):
                self._end_chunk(session, digests)
                number = len(chunks) - 1
            if chunks[number].size:
                number = self._strip(number, session, digests)
            else:
                number += 1
        return size

    def _strip(self, number: int, session: int, digests: bool) -> int:
        """Let go of the bodies of a chunk; return the number of the next one."""
        chunk = self._chunks[number]
        self.size -= chunk.size
        self.term -= chunk.term
        chunk.size = 0
        chunk.data = _bare(chunk.data)
        if number > 0:
            elder = self._chunks[number - 1]
            if not elder.size and elder.count + chunk.count <= CHUNK:
                self.term -= elder.term
                chunk.data = elder.data + chunk.data
                chunk.count += elder.count
                number -= 1
                del self._chunks[number]
        if digests:
            chunk.term = crc32(chunk.data, self._first_term(session))
            self.term += chunk.term
        return number + 1

    def chunks(self) -> list[bytes]:
        """Return the chunks, for a snapshot; the last one may be empty."""
        return [*(chunk.data for chunk in self._chunks), self._last.getvalue()]

    def adopt(self, generation: int, confirmed: int, chunks: list[bytes]) -> bool:
        """Take over what a snapshot has; return False if that cannot be."""
        self.generation = generation
        self.confirmed = confirmed
        for data in chunks:
            if self._last_count:
                ended = self._last.getvalue()
                self._chunks.append(
                    Chunk(ended, self._last_count, self._last_size, self._last_xid, 0)
                )
            self._last = BytesWriter()
            self._last.write(data)
            self._last_count = self._last_size = 0
            position: i64 = 0
            while position < len(data):
                if position + REPLY_BYTES_MIN > len(data):
                    return False
                size = _size_at(data, position)
                self._last_xid = read_i32_be(data, position)
                self._last_count += 1
                self._last_size += size
                position += REPLY_BYTES_MIN + size
            if position != len(data):
                return False
            self.count += self._last_count
            self.size += self._last_size
        return True

    def adopt_term(self, session: int) -> None:
        """Compute the terms anew, after the state came to be shared."""
        first = self._first_term(session)
        self.term = 0
        for chunk in self._chunks:
            chunk.term = crc32(chunk.data, first)
            self.term += chunk.term
        self._last_term = crc32(self._last.getvalue(), first) if self.generation else 0
        self.term += self._last_term

    def forget_term(self) -> None:
        """Have no terms: the state is not shared any more."""
        self.term = self._last_term = 0
        for chunk in self._chunks:
            chunk.term = 0

    def _first_term(self, session: int) -> int:
        """Return the term of a chunk without replies."""
        writer = BytesWriter()
        write_i64_be(writer, session)
        write_i64_be(writer, self.generation)
        return crc32(writer.getvalue())


def _write_reply(
    writer: BytesWriter, xid: int, zxid: int, error: int, size: i64, body: bytes
) -> None:
    """Write a `KeptReply`, whose body may be left out."""
    write_i32_be(writer, xid)
    write_i64_be(writer, zxid)
    write_i32_be(writer, error)
    write_i32_be(writer, i32(size))
    if size > 0:
        writer.write(body)


def _size_at(data: bytes, position: i64) -> i64:
    """Return the bytes of the body of a reply."""
    return i64(max(0, read_i32_be(data, position + _LENGTH_AT)))


def _bare(data: bytes) -> bytes:
    """Return replies without their bodies; one that was empty stays empty."""
    writer = BytesWriter()
    position: i64 = 0
    while position < len(data):
        length_at = position + _LENGTH_AT
        writer.write(data[position:length_at])
        size = _size_at(data, position)
        if size:
            write_i32_be(writer, NOT_KEPT)
        else:
            writer.write(data[length_at : length_at + 4])
        position += REPLY_BYTES_MIN + size
    return writer.getvalue()

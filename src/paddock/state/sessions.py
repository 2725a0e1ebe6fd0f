"""The sessions, as the log knows them.

A session has a generation, which goes up each time a connection is attached to it. A request
carries the generation under which it was received, and is refused when the session has moved on:
so nothing from an abandoned connection can land after its client has come back and looked.

Whether a session is opened, attached or over is decided when the entry that asks for it is applied:
its id, its password and its generation are those of the log. The outcome says what became of the
session (`SessionChange`).

Where servers share a log, a session has an owner: the member that has attached its client last, or
has inherited it. The owner alone may say that it was silent for too long; where no log is shared,
all have the owner 0, and so has the server.

An exact session keeps its last replies (`paddock.state.kept_replies`). It is exact from its
beginning to its end.
"""

from __future__ import annotations

from hashlib import blake2b
from hmac import compare_digest
from typing import Final, Protocol

from librt.strings import BytesWriter, write_i32_be, write_i64_be
from mypy_extensions import i64, mypyc_attr

from paddock.state.kept_replies import ALL_BYTES_MAX, KeptReplies

# What may become of a session.
OPENED: Final = 1
ATTACHED: Final = 2
ENDED: Final = 3

# Ids stay positive and below this: upstream gives the higher bits a meaning.
SESSION_ID_MASK: Final = (1 << 56) - 1
_DIGEST_MASK: Final = (1 << 63) - 1


@mypyc_attr(acyclic=True)
class SessionChange:
    """What an entry made of a session: OPENED, ATTACHED or ENDED."""

    __slots__ = ("generation", "kind", "session", "timeout_ms")

    def __init__(self, kind: int, session: int, generation: int, timeout_ms: int) -> None:
        self.kind = kind
        self.session = session
        # The generation and the timeout that it has now, or had at its end.
        self.generation = generation
        self.timeout_ms = timeout_ms


class Session:
    """One client's session."""

    __slots__ = ("generation", "id", "kept", "owner", "password", "timeout_ms")

    def __init__(
        self, id: i64, password: bytes, timeout_ms: int, generation: i64, owner: int = 0
    ) -> None:
        self.id: i64 = id
        self.password = password
        self.timeout_ms = timeout_ms
        # How often a connection was attached. Invariant: at least 1.
        self.generation: i64 = generation
        # The join number of a member; 0 on a single server, or if no member is left.
        self.owner = owner
        # Its last replies; None if it is not exact.
        self.kept: KeptReplies | None = None

    def admits(self, password: bytes) -> bool:
        """Return whether this is its password, in a time that does not depend on that."""
        return compare_digest(self.password, password)

    def term(self) -> int:
        """Return what it contributes to the digest of the sessions of its owner."""
        writer = BytesWriter()
        write_i64_be(writer, self.id)
        write_i64_be(writer, self.generation)
        write_i32_be(writer, self.timeout_ms)
        writer.write(self.password)
        term = int.from_bytes(blake2b(writer.getvalue(), digest_size=8).digest(), "big")
        return term if self.kept is None else term + self.kept.term + 1

    def changed(self, kind: int) -> SessionChange:
        return SessionChange(kind, self.id, self.generation, self.timeout_ms)


class ReplyImages(Protocol):
    """A snapshot that is being written."""

    def save_replies(self, session: int, kept: KeptReplies) -> None:
        """Write what a session keeps, before it changes, unless it is written."""
        ...


class Sessions:
    """All sessions that are not over."""

    def __init__(self) -> None:
        self.by_id: dict[int, Session] = {}
        # The session that was found last. Invariant: it is the one that `by_id` has, or None.
        self._found: Session | None = None
        # The highest id that was ever given, so that none is given twice.
        self.last_id = 0
        # The sums of their terms by owner, kept up to date where servers share a log. By owner, so
        # that all sessions of one can be handed on at once. Invariant: no sum is 0.
        self.digests: dict[int, int] = {}
        # The bytes of the bodies that exact sessions keep beyond their own. Invariant: at most
        # ALL_BYTES_MAX.
        self.kept_bytes = 0
        # The snapshot being written, if there is one.
        self.images: ReplyImages | None = None

    def find(self, id: i64) -> Session | None:
        """Return a session that is not over; the last one that was found is looked at first.

        What one client has sent is applied together, so it is nearly always that one.
        """
        found = self._found
        if found is None or found.id != id:
            found = self.by_id.get(id)
            self._found = found
        return found

    def next_id(self, time_ms: int) -> int:
        """Return the id of a session that is opened now: never one that was given before."""
        return max(self.last_id + 1, (time_ms << 16) & SESSION_ID_MASK)

    def open(self, id: int, password: bytes, timeout_ms: int) -> Session:
        session = Session(id, password, timeout_ms, 1)
        self.by_id[id] = session
        # Under former rules it may replace one with this id.
        self._found = None
        self.last_id = max(self.last_id, id)
        return session

    def keep(
        self,
        session: Session,
        xid: int,
        zxid: int,
        error: int,
        failed: int,
        body: bytes,
        digests: bool,
    ) -> None:
        """Keep the reply to a write of an exact session; `digests` in a shared state."""
        kept = session.kept
        assert kept is not None
        if self.images is not None:
            self.images.save_replies(session.id, kept)
        excess, term = kept.excess(), kept.term
        room = ALL_BYTES_MAX - self.kept_bytes
        kept.add(session.id, session.generation, xid, zxid, error, failed, body, room, digests)
        self.kept_bytes += kept.excess() - excess
        if digests:
            # Invariant: the sum is not 0, since the term of the session itself is in it.
            self.digests[session.owner] += kept.term - term

    def end(self, id: int) -> Session:
        """Remove a session that is over."""
        ended = self.by_id.pop(id)
        self._found = None
        if ended.kept is not None:
            self.kept_bytes -= ended.kept.excess()
        return ended

    def clear(self) -> None:
        """Forget all sessions, as if there had been none."""
        self.by_id.clear()
        self._found = None

    def hand_over(self, former: int, owner: int) -> int:
        """Give all sessions of an owner to another one, in a shared state; return how many."""
        moved = self.digests.pop(former, 0)
        if not moved:
            return 0
        self.digests[owner] = self.digests.get(owner, 0) + moved
        count = 0
        for session in self.by_id.values():
            if session.owner == former:
                session.owner = owner
                count += 1
        return count

    def count_in(self, session: Session) -> None:
        """Add a session to the digest, in a shared state."""
        self.digests[session.owner] = self.digests.get(session.owner, 0) + session.term()

    def count_out(self, session: Session) -> None:
        """Take a session out of the digest, before it changes or ends."""
        rest = self.digests.pop(session.owner) - session.term()
        if rest:
            self.digests[session.owner] = rest

    def adopt_digests(self) -> None:
        """Compute the digests anew, after the state came to be shared."""
        self.digests = {}
        for session in self.by_id.values():
            if session.kept is not None:
                session.kept.adopt_term(session.id)
            self.count_in(session)

    def give_up_digests(self) -> None:
        """Forget the digests, and all owners: the state is that of a single server from now on."""
        self.digests = {}
        for session in self.by_id.values():
            session.owner = 0
            if session.kept is not None:
                session.kept.forget_term()

    def write_digest(self, writer: BytesWriter) -> None:
        """Write what two servers at the same record must agree on."""
        write_i64_be(writer, self.last_id)
        write_i32_be(writer, len(self.digests))
        for owner in sorted(self.digests):
            write_i64_be(writer, owner)
            write_i64_be(writer, self.digests[owner] & _DIGEST_MASK)

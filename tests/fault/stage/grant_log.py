"""The log of grants: who held what, from when to when, with which token, and what was written then.

It is kept by those who play, at the moment at which they begin and end to hold something, and
judged by what the server says and by a clock that all of them share. The recipe's own word counts
for nothing but that it gave a grant. The rules:

* Never more is held than there is, in the order of what happened, not only by the clock.
* Tokens are never given twice; of two grants that exclude each other the later one's is larger.
* A hold ends at the latest when its client learns, by the service or its own clock, that its
  session is over or may be.
* What is written under a grant is never found behind what was written under a later one that
  excludes it, in the order of the server.

One thing is excused: a holder whose session was ended from outside does not know it yet. Until its
client learns of it, others may hold what it believes to hold.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from paddock.client.client import Client

WRITES: Final = "/guarded-writes"
# Virtual seconds until a client knows what the service has told it.
TOLD_S: Final = 1.0


@dataclass(slots=True, eq=False)
class Hold:
    """A grant held by one session."""

    session: SessionRecord
    token: int
    # How much of what there is.
    share: int
    begun_at: float
    ended_at: float = math.inf

    @property
    def is_over(self) -> bool:
        return self.ended_at < math.inf

    def __str__(self) -> str:
        end = f"{self.ended_at:.3f} s" if self.is_over else "now"
        return (
            f"{self.session.owner} with token {self.token}, from {self.begun_at:.3f} s until {end}"
        )


@dataclass(slots=True, eq=False)
class SessionRecord:
    """A session, as known from outside."""

    owner: str
    # When it was ended from outside, and when its client learnt that it is over, or may be.
    expired_at: float = math.inf
    learnt_at: list[float] = field(default_factory=list)
    # When its nodes were deleted by another client, and the tokens of these nodes.
    deleted_at: float = math.inf
    deleted: set[int] = field(default_factory=set)

    @property
    def is_expired(self) -> bool:
        return self.expired_at < math.inf


class GrantLog:
    """Everything that was granted in one play, of `capacity` that there is."""

    def __init__(self, capacity: int = 1, writes: str = WRITES) -> None:
        self.capacity = capacity
        # Where what is written under its grants is found, in the order in which it was written.
        self.writes = writes
        self.holds: list[Hold] = []
        # What was found wrong: not raised where it is seen, since players catch what they like.
        self.problems: list[str] = []

    @contextmanager
    def hold(self, session: SessionRecord, token: int, share: int | None = None) -> Iterator[Hold]:
        """Take down that something is held in a scope; without a share, all that there is."""
        loop = asyncio.get_running_loop()
        hold = Hold(session, token, self.capacity if share is None else share, loop.time())
        self._check_begin(hold)
        self.holds.append(hold)
        try:
            yield hold
        finally:
            hold.ended_at = loop.time()

    def of(self, owner: str) -> list[Hold]:
        """Return the holds of one owner."""
        return [hold for hold in self.holds if hold.session.owner == owner]

    def excludes(self, one: Hold, other: Hold) -> bool:
        """Tell whether two could never be held together."""
        return one.share + other.share > self.capacity

    def check(self) -> None:
        """Raise AssertionError with everything that was wrong."""
        for hold in self.holds:
            if not hold.is_over:
                self.problems.append(f"it is still held: {hold}")
            for learnt_at in hold.session.learnt_at:
                if hold.begun_at <= learnt_at < hold.ended_at:
                    self.problems.append(
                        f"held on, though its client knew at {learnt_at:.3f} s that its session was"
                        f" over, or might be: {hold}"
                    )
            record = hold.session
            told_at = record.deleted_at + TOLD_S
            # What it got anew after that is its own.
            was_deleted = hold.begun_at <= record.deleted_at or hold.token in record.deleted
            if was_deleted and told_at < hold.ended_at:
                self.problems.append(
                    f"held on, though its nodes were deleted at {record.deleted_at:.3f} s: {hold}"
                )
        if self.problems:
            raise AssertionError("\n".join(self.problems))

    def check_writes(self, tokens: Sequence[int]) -> None:
        """Judge the tokens of all that was written, in the order of the server."""
        by_token = {hold.token: hold for hold in self.holds}
        for position, token in enumerate(tokens):
            assert token in by_token, f"nobody ever held token {token}, which has written"
            for earlier in tokens[:position]:
                assert token >= earlier or not self.excludes(by_token[token], by_token[earlier]), (
                    f"token {token} has written after token {earlier}: {tokens}"
                )

    async def prepare(self, client: Client) -> None:
        """Make the place where writes go."""
        await client.create(self.writes)

    async def read_writes(self, client: Client) -> list[int]:
        """Return the tokens of all writes, in zxid order."""
        found = []
        for name in await client.children(self.writes):
            data, stat = await client.get(f"{self.writes}/{name}")
            found.append((stat.czxid, int(data or b"")))
        return [token for _, token in sorted(found)]

    def _check_begin(self, hold: Hold) -> None:
        alive = [one for one in self.holds if not one.is_over and not one.session.is_expired]
        if not hold.session.is_expired and sum(one.share for one in [*alive, hold]) > self.capacity:
            others = "; ".join(map(str, alive))
            self.problems.append(f"more is held than there is: {hold}; with {others}")
        for one in self.holds:
            if one.token == hold.token:
                self.problems.append(f"a token was given twice: {hold}; {one}")
            elif (
                one.token > hold.token and self.excludes(one, hold) and not hold.session.is_expired
            ):
                self.problems.append(f"a later grant has a smaller token: {hold}; {one}")

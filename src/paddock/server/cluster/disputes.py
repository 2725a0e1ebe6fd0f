"""Decides whose state is right when two servers at the same record differ.

A batch names the digest of the state that its proposer had. If another server had another one
there, one of the two is wrong: by a fault of ours, of the memory, or of a file. The members vote:

* Who sees the difference proposes the digest that it had at that record: a ballot. A vote begins
  when the first ballot comes out of the log: so it begins at the same place for all. Each member
  then proposes its own for the same record; -1 if it does not know it any more.
* Who was a member when the vote began has to vote. The vote is over when all of them have, or are
  members no more.
* A boot that replaces another is the same server: the vote begins anew, and all vote again, since
  the process may be a new one that knows of no vote. Until then, what was found before still holds.
* A server that is no member for now does not vote, but goes on to count. It may be outvoted.
* Who is outvoted drops its state with its cache, and starts again from the snapshot in etcd. The
  others have duty write a new snapshot: the one in etcd may be of a wrong state.
* With a tie nobody can say who is right. No client's write is accepted then, by nobody, until
  members that go decide it.
* What a member that was outvoted still sends is not compared any more; it comes back under another
  name.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Final

from paddock.server.replication.pacing import DISPUTED, Pacing
from paddock.state.entry import BALLOT, Entry
from paddock.state.roster import Roster
from paddock.state.roster_bodies import BallotRequest
from paddock.storage.replay import OtherStateError

logger: Final = logging.getLogger(__name__)

UNKNOWN: Final = -1
# How many votes may be under way. More are only begun by a fault, and would be about the same.
_VOTES_MAX: Final = 16


class _Vote:
    """The digests at one record."""

    def __init__(self, voters: set[bytes]) -> None:
        # Who has not voted yet.
        self.awaited = voters
        self.digests: dict[bytes, int] = {}
        # Whether we have proposed ours, what it was, and whether it was told that there is a tie.
        self.is_ours_sent = False
        self.ours: int | None = None
        self.is_tied = False

    def begin_anew(self, voters: set[bytes]) -> None:
        """Await all votes again; what is known of our own state is not forgotten by that."""
        self.awaited = voters
        self.digests = {}
        self.is_ours_sent = False


class Disputes:
    """The votes of one service, as one server counts them."""

    def __init__(
        self,
        roster: Roster,
        pacing: Pacing,
        digest_at: Callable[[int], int | None],
        propose: Callable[[Entry], None],
        name: Callable[[int], str],
    ) -> None:
        # The name of this server, or the last that it had, and whether it is a member.
        self.boot = b""
        self._is_member = False
        # Called when this server was outvoted, and when it was not and others were.
        self.on_outvoted: Callable[[OtherStateError], None] | None = None
        self.on_upheld: Callable[[], None] | None = None
        self._roster = roster
        self._pacing = pacing
        self._digest_at = digest_at
        self._propose = propose
        self._name = name
        # By the index of the record.
        self._votes: dict[int, _Vote] = {}
        # The index for which we have proposed a ballot that is to begin a vote.
        self._asked: int | None = None
        # Members that were outvoted.
        self._outvoted: set[bytes] = set()

    def is_open(self) -> bool:
        """Return whether it is not known whose state is right."""
        return len(self._votes) > 0 or self._asked is not None

    def joined(self, boot: bytes) -> None:
        """Take the news that this server is a member, and vote where that is awaited."""
        if not self.boot:
            # Of any other vote we may have missed the beginning, and would wait for its end.
            self._votes = {index: one for index, one in self._votes.items() if boot in one.awaited}
        self.boot = boot
        self._is_member = True
        for index, vote in self._votes.items():
            self._send(index, vote)

    def suspend(self) -> None:
        """Propose nothing more: this server is no member for now."""
        self._is_member = False
        self._asked = None

    def differs(self, boot: bytes, index: int) -> None:
        """Take the news that a member had another state than we at an index."""
        if self._is_member and not self.is_open() and boot not in self._outvoted:
            member = self._roster.members.get(boot)
            logger.error(
                "%s had another state at record %d than this server: the members vote now",
                "another server" if member is None else self._name(member.number),
                index,
                extra={"boot": boot.hex(), "index": index},
            )
            self._asked = index
            self._propose_ballot(index, self._digest_at(index))

    def voted(self, boot: bytes, ballot: BallotRequest) -> None:
        """Take a ballot that has come out of the log."""
        is_asked = self._asked == ballot.index
        if boot == self.boot:
            self._asked = None
        vote = self._votes.get(ballot.index)
        if vote is None:
            if len(self._votes) >= _VOTES_MAX or boot in self._outvoted:
                return
            vote = self._votes[ballot.index] = _Vote(set(self._roster.members))
            vote.is_ours_sent = is_asked
        if boot == self.boot:
            vote.ours = ballot.digest
        vote.awaited.discard(boot)
        vote.digests[boot] = ballot.digest
        self._send(ballot.index, vote)
        self._count(ballot.index, vote)

    def gone(self, boot: bytes, successor: bytes = b"") -> None:
        """Take the news that a member is one no more, and which boot replaces it, if one does."""
        self._outvoted.discard(boot)
        for index, vote in list(self._votes.items()):
            if successor and (boot in vote.awaited or boot in vote.digests):
                vote.begin_anew(set(self._roster.members))
                self._send(index, vote)
                continue
            vote.awaited.discard(boot)
            vote.digests.pop(boot, None)
            self._count(index, vote)

    def _send(self, index: int, vote: _Vote) -> None:
        if self._is_member and self.boot in vote.awaited and not vote.is_ours_sent:
            vote.is_ours_sent = True
            self._propose_ballot(index, self._digest_at(index) if vote.ours is None else vote.ours)

    def _propose_ballot(self, index: int, digest: int | None) -> None:
        ballot = BallotRequest(index, UNKNOWN if digest is None else digest)
        self._propose(Entry(BALLOT, ballot.encode()))

    def _count(self, index: int, vote: _Vote) -> None:
        if vote.awaited:
            return
        counted = Counter(one for one in vote.digests.values() if one != UNKNOWN)
        most = max(counted.values(), default=0)
        leading = [digest for digest, count in counted.items() if count == most]
        if len(leading) > 1:
            self._tell_tie(index, vote)
            self._restrain()
            return
        del self._votes[index]
        self._restrain()
        if leading:
            self._decide(index, vote, leading[0], most)

    def _decide(self, index: int, vote: _Vote, right: int, count: int) -> None:
        wrong = [boot for boot, digest in vote.digests.items() if digest not in (right, UNKNOWN)]
        if self.boot in wrong:
            error = OtherStateError(
                f"{count} of {len(vote.digests)} members had another state at record {index} than"
                " this server, which drops its own and loads it anew. Please report it; its"
                " snapshots are kept with the ending .aside"
            )
            self.suspend()
            if self.on_outvoted is not None:
                self.on_outvoted(error)
            return
        self._outvoted.update(wrong)
        for boot in wrong:
            member = self._roster.members[boot]
            logger.error(
                "%s was outvoted about its state at record %d, by %d members of %d, and is to load"
                " it anew",
                self._name(member.number),
                index,
                count,
                len(vote.digests),
                extra={"member": member.number, "index": index},
            )
        if (wrong or vote.is_tied) and self.on_upheld is not None:
            self.on_upheld()
        if vote.is_tied and not wrong:
            logger.warning("the states of the members do not differ any more: writes are accepted")

    def _tell_tie(self, index: int, vote: _Vote) -> None:
        if vote.is_tied:
            return
        vote.is_tied = True
        sides: dict[int, list[str]] = {}
        for boot, digest in vote.digests.items():
            if digest != UNKNOWN:
                name = self._name(self._roster.members[boot].number)
                sides.setdefault(digest, []).append(name)
        logger.critical(
            "no write is accepted: the members have different states since record %d, and it"
            " cannot be said who is right: %s. Stop those whose state is to be dropped, delete"
            " their data folders, and start them again",
            index,
            " against ".join(" and ".join(side) for side in sides.values()),
            extra={"index": index},
        )

    def _restrain(self) -> None:
        """Have writes refused as long as there is a tie."""
        is_tied = any(vote.is_tied for vote in self._votes.values())
        self._pacing.restrain(DISPUTED, is_tied)
